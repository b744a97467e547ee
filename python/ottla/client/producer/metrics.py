"""What a producer counts, by the names that Kafka's own client has for it.

Totals are since the start; rates, averages and largest values are of the last half to whole minute,
of two windows as Kafka has them.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COUNTED", "MEASURED", "Metrics"]

_WINDOW_MS = 30_000

COUNTED = (
    "record-send",
    "record-error",
    "record-retry",
    "record-drop",
    "batch-culprit-retry",
    "batch-split",
    "buffer-exhausted",
)
"""What there is a ``-total`` and a ``-rate`` of."""

MEASURED = (
    "batch-size",
    "compression-rate",
    "record-queue-time",
    "record-size",
    "records-per-request",
    "request-latency",
)
"""What there is an ``-avg`` and a ``-max`` of."""


class _Window:
    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.sum = 0.0
        self.count = 0
        self.max = -nan


class _Series:
    """Values over time."""

    def __init__(self, now_ms: int) -> None:
        self.total = 0
        self._windows = [_Window(now_ms)]

    def add(self, value: float, now_ms: int, count: int = 1) -> None:
        window = self._at(now_ms)
        window.sum += value
        window.count += count
        largest = value / count
        if not window.max >= largest:
            window.max = largest

    def _at(self, now_ms: int) -> _Window:
        window = self._windows[-1]
        if now_ms - window.start_ms >= _WINDOW_MS:
            window = _Window(now_ms)
            self._windows = [*self._windows[-1:], window]
        return window

    def _recent(self, now_ms: int) -> list[_Window]:
        self._at(now_ms)
        return [one for one in self._windows if now_ms - one.start_ms < 2 * _WINDOW_MS]

    def rate(self, now_ms: int) -> float:
        windows = self._recent(now_ms)
        # As Kafka's does, so that the first second of a producer has no enormous rate.
        elapsed_ms = max(now_ms - windows[0].start_ms, _WINDOW_MS)
        return 1000 * sum(one.sum for one in windows) / elapsed_ms

    def average(self, now_ms: int) -> float:
        windows = self._recent(now_ms)
        count = sum(one.count for one in windows)
        return sum(one.sum for one in windows) / count if count else nan

    def largest(self, now_ms: int) -> float:
        return max((one.max for one in self._recent(now_ms) if one.count), default=nan)


class Metrics:
    """The counts and measures of one producer."""

    def __init__(self, now_ms: int) -> None:
        self._counted = {name: _Series(now_ms) for name in COUNTED}
        self._measured = {name: _Series(now_ms) for name in MEASURED}

    def count(self, name: str, by: int, now_ms: int) -> None:
        """Counts something that happened."""
        series = self._counted[name]
        series.total += by
        series.add(by, now_ms)

    def measure(self, name: str, value: float, now_ms: int, count: int = 1) -> None:
        """Takes a measure.

        Args:
            name: of `MEASURED`.
            value: the measure, or the sum of some that only their sum is known of.
            now_ms: the time.
            count: how many those are.
        """
        self._measured[name].add(value, now_ms, count)

    def snapshot(self, now_ms: int, gauges: Mapping[str, float]) -> dict[str, float]:
        """Returns all of it, with what is only looked at."""
        found = dict(gauges)
        for name, series in self._counted.items():
            found[f"{name}-total"] = series.total
            found[f"{name}-rate"] = series.rate(now_ms)
        for name, series in self._measured.items():
            found[f"{name}-avg"] = series.average(now_ms)
            found[f"{name}-max"] = series.largest(now_ms)
        return dict(sorted(found.items()))
