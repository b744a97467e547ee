"""What a consumer measures, by Kafka's names.

Averages and maxima are of the last 30 to 60 seconds, as Kafka's are; totals of the consumer's life.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ConsumerMetrics", "Sampled"]

_WINDOW_MS: Final = 30_000


class Sampled:
    """Values of the last two windows of time."""

    __slots__ = ("_begun_ms", "_now", "_past")

    def __init__(self) -> None:
        self._begun_ms = 0
        self._now: tuple[int, float, float] = (0, 0.0, 0.0)
        self._past = self._now

    def add(self, value: float, now_ms: int) -> None:
        """Takes a value."""
        self._turn(now_ms)
        count, total, most = self._now
        self._now = (count + 1, total + value, max(most, value))

    def average(self, now_ms: int) -> float:
        """Returns the mean; 0 of nothing."""
        self._turn(now_ms)
        count = self._now[0] + self._past[0]
        return (self._now[1] + self._past[1]) / count if count else 0.0

    def most(self, now_ms: int) -> float:
        """Returns the largest; 0 of nothing."""
        self._turn(now_ms)
        return max(self._now[2], self._past[2])

    def rate(self, now_ms: int) -> float:
        """Returns the sum a second."""
        self._turn(now_ms)
        seconds = (now_ms - self._begun_ms + _WINDOW_MS) / 1000
        return (self._now[1] + self._past[1]) / seconds

    def _turn(self, now_ms: int) -> None:
        windows = (now_ms - self._begun_ms) // _WINDOW_MS
        if windows:
            self._past = self._now if windows == 1 else (0, 0.0, 0.0)
            self._now = (0, 0.0, 0.0)
            self._begun_ms += windows * _WINDOW_MS


class ConsumerMetrics:
    """What is counted as it happens."""

    def __init__(self) -> None:
        self._fetch_latency = Sampled()
        self._fetch_size = Sampled()
        self._throttle_time = Sampled()
        self._records_per_request = Sampled()
        self._records = Sampled()
        self._bytes = Sampled()
        self._commit_latency = Sampled()
        self._poll_interval = Sampled()
        self._fetch_total = 0
        self._bytes_total = 0
        self._records_total = 0
        self._commit_total = 0
        self._rebalance_total = 0
        self._polled_ms: int | None = None

    def fetched(self, latency_ms: int, size_bytes: int, throttle_time_ms: int, now_ms: int) -> None:
        """An answer to Fetch came."""
        self._fetch_total += 1
        self._fetch_latency.add(latency_ms, now_ms)
        self._fetch_size.add(size_bytes, now_ms)
        self._throttle_time.add(throttle_time_ms, now_ms)

    def consumed(self, count: int, size_bytes: int, now_ms: int) -> None:
        """All records of a partition's answer were delivered."""
        self._records_total += count
        self._bytes_total += size_bytes
        self._records_per_request.add(count, now_ms)
        self._records.add(count, now_ms)
        self._bytes.add(size_bytes, now_ms)

    def committed(self, latency_ms: int, now_ms: int) -> None:
        """A commit ended well."""
        self._commit_total += 1
        self._commit_latency.add(latency_ms, now_ms)

    def rebalanced(self) -> None:
        """The group has assigned anew."""
        self._rebalance_total += 1

    def polled(self, now_ms: int) -> None:
        """The application asked for records."""
        if self._polled_ms is not None:
            self._poll_interval.add(now_ms - self._polled_ms, now_ms)
        self._polled_ms = now_ms

    def values(self, now_ms: int) -> dict[str, float]:
        """Returns all of it, by name."""
        since_poll_ms = 0 if self._polled_ms is None else now_ms - self._polled_ms
        return {
            "bytes-consumed-rate": self._bytes.rate(now_ms),
            "bytes-consumed-total": self._bytes_total,
            "commit-latency-avg": self._commit_latency.average(now_ms),
            "commit-latency-max": self._commit_latency.most(now_ms),
            "commit-total": self._commit_total,
            "fetch-latency-avg": self._fetch_latency.average(now_ms),
            "fetch-latency-max": self._fetch_latency.most(now_ms),
            "fetch-size-avg": self._fetch_size.average(now_ms),
            "fetch-size-max": self._fetch_size.most(now_ms),
            "fetch-throttle-time-avg": self._throttle_time.average(now_ms),
            "fetch-throttle-time-max": self._throttle_time.most(now_ms),
            "fetch-total": self._fetch_total,
            "last-poll-seconds-ago": since_poll_ms // 1000,
            "rebalance-total": self._rebalance_total,
            "records-consumed-rate": self._records.rate(now_ms),
            "records-consumed-total": self._records_total,
            "records-per-request-avg": self._records_per_request.average(now_ms),
            "time-between-poll-avg": self._poll_interval.average(now_ms),
            "time-between-poll-max": self._poll_interval.most(now_ms),
        }
