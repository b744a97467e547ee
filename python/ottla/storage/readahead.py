"""Reading an object of a store ahead.

Behind the place where a thread reads, a few pieces of the object are on their way, asked for in
parallel.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

PIECE_BYTES = 8 << 20
"""Bytes asked for by one request, where an object is read from one end to the other."""

MAX_PIECES = 6
"""Pieces held for one thread: the one it reads, the one before it, and those on their way."""

BULK_BYTES = 256 << 10
"""From so many bytes on, a read is taken for the beginning of more."""

MARGIN_BYTES = 1 << 20
"""Read on behind a range that was told of: enough for the batches that end there."""

PARALLEL_REQUESTS = 32
"""Of one process, for all threads that read."""


class ReadAhead:
    """Reads one object for one thread.

    Reads that are large, or go on where the last one ended, are served from pieces:

        behind │ read now │ on their way, more of them the longer it goes on
        ───────┼────┬─────┼─────────┬─────────┬─────────
               piece  ▲ position

    Any other read is one request for just its bytes, and where two of those follow each other
    backwards, as in the search for the end of zeros, one for a piece before them.
    """

    def __init__(self, get: Callable[[int, int], memoryview], size: int) -> None:
        self._get = get
        self._size = size
        self._end = size
        """Where to go on asking no more."""
        self._pieces: deque[tuple[int, int, Future[memoryview]]] = deque()
        self._ahead = 1
        self._last = (-1, -1)
        self._aside = (0, memoryview(b""))

    @property
    def piece_count(self) -> int:
        """Pieces that are held, or on their way."""
        return len(self._pieces)

    def expect(self, stop: int) -> None:
        """Nothing far behind a position will be read."""
        self._end = min(stop + MARGIN_BYTES, self._size)

    def read(self, position: int, stop: int) -> memoryview:
        """Bytes of a range inside the object."""
        last_start, last_stop = self._last
        self._last = position, stop
        if self._holds(position):
            return self._from_pieces(position, stop)
        start, data = self._aside
        if start <= position and stop <= start + len(data):
            return data[position - start : stop - start]
        if position == last_stop or stop - position >= BULK_BYTES:
            self._restart(position)
            return self._from_pieces(position, stop)
        if stop == last_start:
            start = max(0, stop - PIECE_BYTES)
            data = self._get(start, stop)
            self._aside = start, data
            return data[position - start : stop - start]
        return self._get(position, stop)

    def close(self) -> None:
        """Holds nothing more."""
        for _, _, piece in self._pieces:
            piece.cancel()
        self._pieces.clear()
        self._aside = (0, memoryview(b""))

    def _holds(self, position: int) -> bool:
        return bool(self._pieces) and self._pieces[0][0] <= position <= self._pieces[-1][1]

    def _restart(self, position: int) -> None:
        self.close()
        self._ahead = 1
        self._ask(position)

    def _ask(self, start: int) -> None:
        if start >= self._end:
            # More is read than was told.
            self._end = self._size
        stop = min(start + PIECE_BYTES, self._end)
        self._pieces.append((start, stop, _executor().submit(self._get, start, stop)))

    def _from_pieces(self, position: int, stop: int) -> memoryview:
        parts: list[memoryview] = []
        while position < stop:
            start, end, piece = self._piece_at(position)
            data = piece.result()
            part = data[position - start : stop - start]
            parts.append(part)
            position += len(part)
            if len(data) < end - start:
                # The object has become shorter.
                break
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _piece_at(self, position: int) -> tuple[int, int, Future[memoryview]]:
        """The piece that holds a position, with others on their way behind it."""
        index = 0
        while index < len(self._pieces) and self._pieces[index][1] <= position:
            index += 1
        if index > 1:
            self._ahead = min(2 * self._ahead, MAX_PIECES - 2)
        # One is kept before it: after damage some is read again.
        for _ in range(index - 1):
            self._pieces.popleft()
        index = min(index, 1)
        if index == len(self._pieces):
            self._ask(self._pieces[-1][1])
        while len(self._pieces) <= index + self._ahead and self._pieces[-1][1] < self._end:
            self._ask(self._pieces[-1][1])
        return self._pieces[index]


_EXECUTORS: dict[int, ThreadPoolExecutor] = {}
_EXECUTORS_LOCK = threading.Lock()


def _executor() -> ThreadPoolExecutor:
    """The threads of this process that wait for stores; a forked process has none of its parent."""
    from concurrent.futures import ThreadPoolExecutor

    with _EXECUTORS_LOCK:
        executor = _EXECUTORS.get(os.getpid())
        if executor is None:
            executor = ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="ottla-objects")
            _EXECUTORS[os.getpid()] = executor
        return executor
