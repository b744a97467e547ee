"""Commits without being asked: each `auto_commit_interval_ms`, as the application polls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.partitions import OffsetAndMetadata, TopicPartition
    from ottla.client.pending import Pending

__all__ = ["AutoCommit"]


class AutoCommit:
    """When to commit by itself; what went wrong is kept for metrics and logs, not raised.

    Args:
        interval_ms: between two commits.
        commit: commits, as `Group.commit`.

    Attributes:
        error: why the last commit failed; ``None`` if it did not.
    """

    def __init__(
        self,
        interval_ms: int,
        commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata], int], Pending],
    ) -> None:
        self.error: BaseException | None = None
        self._interval_ms = interval_ms
        self._commit = commit
        self._pending: Pending | None = None
        self._next_ms: int | None = None

    def poll(
        self,
        now_ms: int,
        consumed: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]],
    ) -> None:
        """Commits what was consumed by the last poll, where it is time.

        Args:
            now_ms: the time.
            consumed: how far the application has come; asked only where it is time.
        """
        if self._next_ms is None:
            self._next_ms = now_ms + self._interval_ms
        if now_ms >= self._next_ms and self._pending is None:
            self._next_ms = now_ms + self._interval_ms
            self.commit(now_ms, consumed())

    def commit(self, now_ms: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Pending:
        """Commits now: before partitions are given up, and before the consumer is closed."""
        pending = self._commit(offsets, now_ms)
        self._pending = pending
        pending.when_done(lambda: self._ended(pending))
        return pending

    def _ended(self, pending: Pending) -> None:
        self.error = pending.error
        if self._pending is pending:
            self._pending = None
