"""Lines for logs: of faults, of which a flood makes no flood; of requests, which are all there."""

from __future__ import annotations

import os
import select
from functools import partial
from typing import TYPE_CHECKING

from ottla.net.clock import elapsed_ms
from ottla.net.limits import LOG_LINES_EVERY_MS, LOG_PATIENCE_MS
from ottla.net.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LineFile", "LogLines", "has_room"]


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


def has_room(descriptor: int, patience_ms: int = 0) -> bool:
    """Whether a file takes a short line without waiting: its reader goes on, or it has none."""
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    return bool(room.poll(patience_ms))


class LineFile:
    """A file or a stream that gets every line, and none of a half.

    A disk that is full or a reader that is gone costs lines, and a reader that does not go on costs
    a moment once and then lines as well; the broker goes on.

    Args:
        descriptor: of the file; it is written to, and never closed.
        complain: told, at most once a second, that lines are lost.
        patience_ms: how long a reader is waited for.
    """

    def __init__(
        self,
        descriptor: int,
        complain: Callable[[str], None],
        patience_ms: int = LOG_PATIENCE_MS,
    ) -> None:
        self._descriptor = descriptor
        self._complaints = LogLines(complain)
        self._patience_ms = self._whole_patience_ms = patience_ms
        self._begun = b""
        """What is left of a line whose beginning is written."""
        self._lost = 0

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self._lost

    def write(self, line: str) -> None:
        """Writes a line, whose end is added."""
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        try:
            self._begun = self._unwritten(self._begun)
            if self._begun:
                self._lose("its reader does not go on")
                return
            left = self._unwritten(data)
        except OSError as error:
            self._begun = b""
            self._lose(error.strerror or str(error))
            return
        if len(left) < len(data):
            self._begun = left
        else:
            self._lose("its reader does not go on")

    def _unwritten(self, data: bytes) -> bytes:
        """Writes what there is room for; returns the rest."""
        while data:
            # Where there is room at all, there is room for so much.
            if not has_room(self._descriptor, self._patience_ms):
                self._patience_ms = 0
                return data
            data = data[os.write(self._descriptor, data[: select.PIPE_BUF]) :]
            self._patience_ms = self._whole_patience_ms
        return data

    def _lose(self, why: str) -> None:
        self._lost += 1
        said = f"cannot write the log of requests: {why} ({self._lost:,} lines lost)"
        self._complaints.say(said, elapsed_ms())
