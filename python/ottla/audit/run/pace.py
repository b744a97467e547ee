"""Speed limit, progress and cancellation of a run, shared by its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

Progress = Callable[[int, int], object]
"""Called with the bytes read so far and the bytes to read, by one thread at a time."""


def check_rate(max_mb_per_s: float | None) -> None:
    """Raises ValueError for a limit on reading that is none."""
    if max_mb_per_s is not None and not 0 < max_mb_per_s < inf:
        raise ValueError(f"max_mb_per_s is {max_mb_per_s}, must be finite and above 0")


class Pace:
    """Counts the bytes that all threads read.

    Args:
        total: bytes to read.
        max_mb_per_s: limit on reading, in 10⁶ bytes per second.
        progress: called with the progress of the run.
    """

    def __init__(
        self, total: int, *, max_mb_per_s: float | None = None, progress: Progress | None = None
    ) -> None:
        self.cancelled = threading.Event()
        """Set to stop the threads at their next window."""
        self._throttle = None if max_mb_per_s is None else _Throttle(max_mb_per_s * 1e6)
        self._progress = progress
        self._lock = threading.Lock()
        self._read = 0
        self._total = total

    def advance(self, size: int) -> None:
        """Counts bytes read, and waits if they exceed the speed limit."""
        self.report(size)
        self._slow_down(size)

    def report(self, size: int) -> None:
        """Counts bytes for progress only."""
        if self._progress is not None and size:
            with self._lock:
                self._read += size
                self._progress(self._read, self._total)

    def may_read(self, size: int) -> bool:
        """Called before reading bytes again: waits, and returns whether to continue."""
        self._slow_down(size)
        return not self.cancelled.is_set()

    def again(self) -> Callable[[int], bool]:
        """Returns a callback for bytes read again, which count for the speed limit only."""
        known = 0

        def advance(read: int) -> bool:
            nonlocal known
            self._slow_down(read - known)
            known = read
            return not self.cancelled.is_set()

        return advance

    def _slow_down(self, size: int) -> None:
        if self._throttle is not None:
            self.cancelled.wait(self._throttle.delay_s(size))


class _Throttle:
    """Limits a rate: each amount delays the next one."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def delay_s(self, size: int) -> float:
        """Returns how long to wait after reading `size` bytes."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + size / self._bytes_per_s
            return self._free_at - now
