"""Reading ahead in an object of a store.

While a thread reads, the pieces after its position are requested in parallel.
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
"""Size of one request when an object is read from start to end."""

MAX_PIECES = 6
"""Pieces held for one thread: the current one, the one before it, and those requested ahead."""

BULK_BYTES = 256 << 10
"""A read of at least this size is expected to be followed by more."""

MARGIN_BYTES = 1 << 20
"""Read beyond an announced range: enough for the batches that end there."""

PARALLEL_REQUESTS = 32
"""Parallel requests of one process, over all threads."""


class ReadAhead:
    """Reads one object for one thread.

    Reads that are large, or continue where the last one ended, are served from pieces:

        behind │ read now │ requested ahead, more of it the longer reading continues
        ───────┼────┬─────┼─────────┬─────────┬─────────
               piece  ▲ position

    Any other read is one request for exactly its bytes. When two of those follow each other
    backwards, as in the search for the end of zeros, the second requests a whole piece.
    """

    def __init__(self, get: Callable[[int, int], memoryview], size: int) -> None:
        self._get = get
        self._size = size
        self._end = size
        """Where requesting ahead stops."""
        self._pieces: deque[tuple[int, int, Future[memoryview]]] = deque()
        self._ahead = 1
        self._last = (-1, -1)
        self._aside = (0, memoryview(b""))

    @property
    def piece_count(self) -> int:
        """Number of pieces held or requested."""
        return len(self._pieces)

    def expect(self, stop: int) -> None:
        """Announces that nothing far beyond `stop` will be read."""
        self._end = min(stop + MARGIN_BYTES, self._size)

    def read(self, position: int, stop: int) -> memoryview:
        """Returns the bytes of a range inside the object."""
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
        """Drops everything held and requested."""
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
            # The caller reads beyond the range it announced.
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
                # The object has shrunk.
                break
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _piece_at(self, position: int) -> tuple[int, int, Future[memoryview]]:
        """Returns the piece that holds a position, and requests pieces after it."""
        index = 0
        while index < len(self._pieces) and self._pieces[index][1] <= position:
            index += 1
        if index > 1:
            self._ahead = min(2 * self._ahead, MAX_PIECES - 2)
        # One piece before it is kept: after damage, some bytes are read again.
        for _ in range(index - 1):
            self._pieces.popleft()
        index = min(index, 1)
        if index == len(self._pieces):
            self._ask(self._pieces[-1][1])
        while len(self._pieces) <= index + self._ahead and self._pieces[-1][1] < self._end:
            self._ask(self._pieces[-1][1])
        return self._pieces[index]


def in_parallel(request: Callable[[], None]) -> Future[None]:
    """Runs a request by one of the threads that wait for stores; it must not wait for another."""
    return _executor().submit(request)


_EXECUTORS: dict[int, ThreadPoolExecutor] = {}
_EXECUTORS_LOCK = threading.Lock()


def _executor() -> ThreadPoolExecutor:
    """Threads of this process that wait for stores. A forked process starts its own."""
    from concurrent.futures import ThreadPoolExecutor

    with _EXECUTORS_LOCK:
        executor = _EXECUTORS.get(os.getpid())
        if executor is None:
            executor = ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="ottla-objects")
            _EXECUTORS[os.getpid()] = executor
        return executor
