"""Lines for logs: of faults, of which a flood makes no flood; of requests, which are all there."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from ottla.net.clock import elapsed_ms
from ottla.net.limits import LOG_LINES_EVERY_MS
from ottla.net.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LineFile", "LogLines"]


class LogLines:
    """Writes a line at most every `LOG_LINES_EVERY_MS`, and how many it left out before."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        self._write = write
        if write is not None:
            # Now: where a line is due, there may be no descriptor left to load anything.
            from ottla.text import visible

            self._visible = visible
        self._next_ms: int | None = None
        self._left_out = 0

    def say(self, line: str, elapsed_ms: int) -> None:
        """Writes a line, or counts it. A log that cannot be written stops nothing."""
        if self._write is None:
            return
        if self._next_ms is not None and elapsed_ms < self._next_ms:
            self._left_out += 1
            return
        more = f" ({self._left_out:,} more lines left out)" if self._left_out else ""
        self._left_out, self._next_ms = 0, elapsed_ms + LOG_LINES_EVERY_MS
        # What a peer has sent may be in it.
        outcome_of(partial(self._write, self._visible(line) + more))


class LineFile:
    """A file or a stream that gets every line at once, and none of a half.

    Args:
        descriptor: of the file; it is written to, and never closed.
        complain: told, at most once a second, that lines are lost: a disk that is full or a reader
            that is gone stops nothing.
    """

    def __init__(self, descriptor: int, complain: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._complaints = LogLines(complain)
        self._lost = 0

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self._lost

    def write(self, line: str) -> None:
        """Writes a line, whose end is added."""
        left = memoryview(f"{line}\n".encode("utf-8", "backslashreplace"))
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self._lost += 1
            why = f"{error.strerror or error} ({self._lost:,} lines lost)"
            self._complaints.say(f"cannot write the log of requests: {why}", elapsed_ms())
