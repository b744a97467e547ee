"""Small objects of stores, each requested once and held while it may be needed again.

A store takes as long to answer a request as to send a megabyte, and an audit looks at a file
several times: it scans it, plays a start over it, tries advice on it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from functools import partial
from io import DEFAULT_BUFFER_SIZE, BytesIO
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ottla.storage.paths import store_of
from ottla.storage.readahead import PARALLEL_REQUESTS, in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from ottla.storage.files import Entry, Files, Place

Item = TypeVar("Item")

SMALL_BYTES = 1 << 20
"""Objects up to this size are requested whole and held."""

HELD_BYTES = 64 << 20
"""What is held at once. Of more, what was not needed for longest is requested again."""


class HeldFiles:
    """The files of others, which hold the small objects of stores that were read.

    Args:
        files: where they are read.
        max_bytes: what is held at once.
    """

    def __init__(self, files: Files, max_bytes: int = HELD_BYTES) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._objects: OrderedDict[bytes, tuple[int, Future[bytes]]] = OrderedDict()
        """Size and bytes by path, in the order in which they were needed last."""
        self._held_bytes = 0
        self._ahead: dict[bytes, int] = {}
        """Sizes of the objects that were brought and not yet needed."""
        self._ahead_bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[Files], Files], tuple[Files]]:
        # What is held stays here. Where they are sent, others decide what to hold.
        return _as_they_are, (self._files,)

    def release(self) -> None:
        """Lets everything go; nothing is held from now on."""
        with self._lock:
            self._max_bytes = -1
            self._make_room(0)

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        return self._files.stat(path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        return self._files.list(directory)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        return self._files.exists(path)

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        return self._files.under(directory)

    def place(self, path: bytes, size: int | None = None) -> Place:
        """See `Files`. A small object is requested when it is first read, all of it."""
        place = self._files.place(path, size)
        is_held = size is not None and self._holds(path, size)
        return HeldObject(self, place, path) if is_held else place

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        if not self._holds(path, 0):
            return self._files.read(path, limit)
        with self._lock:
            known = self._known(path)
        if known is not None and len(held := known.result()) <= min(limit, SMALL_BYTES):
            return held
        data = self._files.read(path, limit)
        if len(data) <= min(limit, SMALL_BYTES):
            done = _future()
            done.set_result(data)
            with self._lock:
                self._add(path, len(data), done)
        return data

    def bring(self, files: Iterable[tuple[bytes, int]]) -> None:
        """Requests small objects in parallel, and does not wait for them.

        Args:
            files: their paths and sizes. Others are left out, and what is too much to be held until
                it is needed.
        """
        for path, size in files:
            with self._lock:
                is_wanted = size and self._holds(path, size) and path not in self._objects
                if not is_wanted or self._ahead_bytes + size > self._max_bytes // 2:
                    continue
                future = self._add(path, size, _future())
                self._ahead[path] = size
                self._ahead_bytes += size
            in_parallel(partial(self._answer, path, future))

    def data_of(self, path: bytes, size: int) -> bytes:
        """Returns what an object holds, and requests it if that is not known.

        Args:
            path: its path.
            size: its listed size, which it may have outgrown: then at least so many bytes.

        Raises:
            OSError: it cannot be read.
        """
        with self._lock:
            known = self._known(path)
            future = known or self._add(path, size, _future())
        if known is None:
            self._answer(path, future)
        return future.result()

    def _known(self, path: bytes) -> Future[bytes] | None:
        """An object that is held or on its way, and needed now."""
        known = self._objects.get(path)
        if known is None:
            return None
        self._objects.move_to_end(path)
        self._ahead_bytes -= self._ahead.pop(path, 0)
        return known[1]

    def _answer(self, path: bytes, future: Future[bytes]) -> None:
        try:
            future.set_result(self._files.read(path, SMALL_BYTES))
        except BaseException as error:
            # Whoever waits must hear of it; who asks next asks the store.
            with self._lock:
                self._drop(path)
            future.set_exception(error)
            if not isinstance(error, OSError):
                raise

    def _holds(self, path: bytes, size: int) -> bool:
        return size <= min(SMALL_BYTES, self._max_bytes) and store_of(path) is not None

    def _add(self, path: bytes, size: int, future: Future[bytes]) -> Future[bytes]:
        self._drop(path)
        self._make_room(size)
        self._objects[path] = size, future
        self._held_bytes += size
        return future

    def _drop(self, path: bytes) -> None:
        size, _ = self._objects.pop(path, (0, None))
        self._held_bytes -= size
        self._ahead_bytes -= self._ahead.pop(path, 0)

    def _make_room(self, size: int) -> None:
        while self._objects and self._held_bytes + size > self._max_bytes:
            self._drop(next(iter(self._objects)))


class HeldObject:
    """A small object of a store, which is there at once when it is read again."""

    is_local = False

    def __init__(self, files: HeldFiles, place: Place, path: bytes) -> None:
        self._files = files
        self._place = place
        self.path = path
        self.size = place.size
        """Size in bytes when it was listed."""

    def __reduce__(self) -> tuple[Callable[[Place], Place], tuple[Place]]:
        return _as_it_is, (self._place,)

    def read_at(self, position: int, size: int) -> memoryview:
        """See `Place`."""
        if position >= self.size:
            return memoryview(b"")
        data = self._files.data_of(self.path, self.size)
        return memoryview(data)[position : min(position + size, self.size)]

    def expect(self, start: int, stop: int) -> None:
        """See `Place`. All of it is requested."""

    def open(self, buffer_bytes: int = DEFAULT_BUFFER_SIZE) -> BinaryIO:
        """See `Place`."""
        del buffer_bytes
        return BytesIO(self.read_at(0, self.size))


def _future() -> Future[bytes]:
    # Imported here: it imports `logging`, a good part of the import time of `ottla`.
    from concurrent.futures import Future

    return Future()


def _as_it_is(place: Place) -> Place:
    return place


def _as_they_are(files: Files) -> Files:
    return files


def brought_ahead(
    items: Iterable[Item],
    files: Files,
    needed: Callable[[Item], Iterable[tuple[bytes, int]]],
) -> Iterator[Item]:
    """Yields items, and has `files` request the small objects of those that come next.

    Args:
        items: what is to be done.
        files: where their objects are read; nothing is requested of files that do not hold them.
        needed: path and size of the files an item needs.
    """
    if not isinstance(files, HeldFiles):
        yield from items
        return
    ahead: deque[Item] = deque()
    for item in items:
        files.bring(needed(item))
        ahead.append(item)
        if len(ahead) > PARALLEL_REQUESTS:
            yield ahead.popleft()
    yield from ahead
