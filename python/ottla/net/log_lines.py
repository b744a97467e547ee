"""Lines for a log, of which a flood of faults makes no flood."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.net.limits import LOG_LINES_EVERY_MS
from ottla.net.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LogLines"]


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
