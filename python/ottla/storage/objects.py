"""Files in object stores, through obstore.

A store has no directories: what stands before a slash in a key counts as one. Listing asks once for
all keys below a path and keeps their names and sizes, not the answers. Reading goes ahead
(`readahead`).
"""

from __future__ import annotations

import errno
import io
import os
import threading
import weakref
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.errors import MissingDependencyError, StorageError
from ottla.storage.files import Entry
from ottla.storage.readahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from _typeshed import WriteableBuffer

    from ottla.storage.files import Files, RemotePlace

MAX_OBJECTS = 10_000_000
"""Objects below one path, to be held in memory."""

_LIST_CHUNK = 1000

# What a text of a store is cut to: some answer with pages of XML.
_MAX_TEXT = 300

# Settings of the HTTP client, which obstore takes apart from those of the store.
_CLIENT_OPTIONS = frozenset(
    (
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "timeout",
        "user_agent",
    )
)
_VENDORS = ("aws_", "google_", "azure_")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_ENDPOINT")


class ObjectFiles:
    """The objects of one bucket or container; picklable, and connected anew where it arrives.

    Args:
        root: scheme and name of the bucket, as `store_of` gives it.
        storage_options: see `files_of`.
    """

    def __init__(self, root: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._storage_options = dict(storage_options or {})
        self._store: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ObjectFiles], tuple[bytes, dict[str, str]]]:
        return ObjectFiles, (self.root, self._storage_options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectFiles) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.root)

    @property
    def store(self) -> Any:
        """The store, as obstore knows it.

        Raises:
            MissingDependencyError: obstore is not installed.
            StorageError: a setting does not exist.
        """
        with self._lock:
            if self._store is None:
                self._store = connect(self.root.decode(), self._storage_options)
            return self._store

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        key = self.key(path)
        if key:
            try:
                return Entry(os.path.basename(path), is_directory=False, size=self.size(path))
            except FileNotFoundError:
                pass
        if next(self.listed(path), None) is None and key:
            raise FileNotFoundError(errno.ENOENT, "no object of this name, and none below it", path)
        return directory_entry(path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        with _faults_of(directory) as obstore:
            found = obstore.list_with_delimiter(self.store, self.key(directory) or None)
        names = {os.path.basename(prefix).encode() for prefix in found["common_prefixes"]}
        entries = [directory_entry(directory + b"/" + name) for name in names]
        for meta in found["objects"]:
            name = os.path.basename(meta["path"]).encode()
            if name not in names:
                entries.append(Entry(name, is_directory=False, size=meta["size"]))
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        try:
            self.stat(path)
        except OSError:
            return False
        return True

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        with _faults_of(path) as obstore:
            # What there is comes with its size, and with as much of it as is asked for.
            answer = obstore.get(self.store, self.key(path))
            if answer.meta["size"] <= limit:
                return bytes(answer.bytes())
        return bytes(self.get(path, 0, limit + 1))

    def place(self, path: bytes, size: int | None = None) -> ObjectPlace:
        """See `Files`."""
        return ObjectPlace(self, path, self.size(path) if size is None else size)

    def under(self, directory: bytes) -> Files:
        """See `Files`. Keeps the names and sizes of all objects below the directory."""
        return _Listed(self, directory)

    def key(self, path: bytes) -> str:
        """What the store calls a path."""
        return path[len(self.root) + 1 :].decode("utf-8", "replace")

    def size(self, path: bytes) -> int:
        """Bytes of an object, by asking."""
        with _faults_of(path) as obstore:
            return int(obstore.head(self.store, self.key(path))["size"])

    def get(self, path: bytes, start: int, stop: int) -> memoryview:
        """Bytes of an object, fewer where it has become shorter; one request."""
        try:
            with _faults_of(path) as obstore:
                key = self.key(path)
                return memoryview(obstore.get_range(self.store, key, start=start, end=stop))
        except OSError as error:
            # There may be no such range any more.
            if error.errno == errno.EIO and self._size_or(path, stop) <= start:
                return memoryview(b"")
            raise

    def _size_or(self, path: bytes, unknown: int) -> int:
        try:
            return self.size(path)
        except OSError:
            return unknown

    def listed(self, directory: bytes) -> Iterator[tuple[bytes, int]]:
        """Path and size of every object below a directory."""
        key = self.key(directory)
        with _faults_of(directory) as obstore:
            for chunk in obstore.list(self.store, key or None, chunk_size=_LIST_CHUNK):
                for meta in chunk:
                    # The directory itself is there, too, where a console has marked it.
                    if meta["path"] != key:
                        yield self.root + b"/" + meta["path"].encode(), meta["size"]


def directory_entry(path: bytes) -> Entry:
    """A directory of a store."""
    scheme, _, rest = path.partition(b"://")
    # Hadoop's names for the same stores.
    scheme = {b"s3a": b"s3", b"abfss": b"abfs"}.get(scheme.lower(), scheme.lower())
    return Entry(
        os.path.basename(path),
        is_directory=True,
        size=0,
        identity=scheme + b":" + rest,
        fault="a directory, not a file",
    )


class _Listed:
    """What is below a directory of a store, as of one listing; elsewhere the store is asked."""

    def __init__(self, files: ObjectFiles, directory: bytes) -> None:
        self._files = files
        self._directory = directory
        self._names: dict[bytes, list[bytes]] = {}
        """Of the objects of each directory."""
        self._sizes: dict[bytes, array[int]] = {}
        self._directories: dict[bytes, set[bytes]] = {}
        """Names of the directories in each."""
        self._take()

    def _take(self) -> None:
        # Partitions have files of the same names.
        known: dict[bytes, bytes] = {}
        names, sizes = self._names, self._sizes
        for count, (path, size) in enumerate(self._files.listed(self._directory)):
            above, _, name = path.rpartition(b"/")
            name = known.setdefault(name, name)
            if above not in names:
                self._add_directory(above)
            names[above].append(name)
            sizes[above].append(size)
            if count >= MAX_OBJECTS:
                raise OSError(
                    errno.E2BIG,
                    f"more than {MAX_OBJECTS:,} objects below it: name the log directories",
                    self._directory,
                )

    def _add_directory(self, path: bytes) -> None:
        while path not in self._names:
            self._names[path] = []
            self._sizes[path] = array("q")
            if path == self._directory or len(path) <= len(self._files.root):
                return
            path, _, name = path.rpartition(b"/")
            self._directories.setdefault(path, set()).add(name)

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        if path in self._names:
            return directory_entry(path)
        above, name = os.path.split(path)
        names = self._names.get(above)
        if names is None or not self._covers(path):
            return self._files.stat(path)
        if name not in names:
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        size = self._sizes[above][names.index(name)]
        return Entry(name, is_directory=False, size=size)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        if not self._covers(directory):
            return self._files.list(directory)
        inside = self._directories.get(directory, set())
        entries = [directory_entry(directory + b"/" + name) for name in inside]
        names = self._names.get(directory, ())
        sizes = self._sizes.get(directory, ())
        # Of a name that is both, as the marks that consoles leave for directories, the directory
        # counts.
        entries += [
            Entry(name, is_directory=False, size=size)
            for name, size in zip(names, sizes, strict=True)
            if name not in inside
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        if not self._covers(path):
            return self._files.exists(path)
        above, name = os.path.split(path)
        return path in self._names or name in self._names.get(above, ())

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        return self._files.read(path, limit)

    def place(self, path: bytes, size: int | None = None) -> ObjectPlace:
        """See `Files`."""
        return self._files.place(path, size)

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        return self if self._covers(directory) else self._files.under(directory)

    def _covers(self, path: bytes) -> bool:
        return path == self._directory or path.startswith(self._directory + b"/")


class ObjectPlace:
    """An object as the engine reads it; small and picklable, and several threads may read it.

    Each thread has a few pieces of the object that it read last, so a process holds at most
    `MAX_PIECES` times `PIECE_BYTES` for each of its threads.
    """

    def __init__(self, files: ObjectFiles, path: bytes, size: int) -> None:
        self._files = files
        self._readers = threading.local()
        self.path = path
        self.size = size
        """In bytes."""

    def __reduce__(self) -> tuple[type[ObjectPlace], tuple[ObjectFiles, bytes, int]]:
        return ObjectPlace, (self._files, self.path, self.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPlace) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.path, self.size))

    def __repr__(self) -> str:
        return f"ObjectPlace({self.path!r}, {self.size})"

    def read_at(self, position: int, size: int) -> memoryview:
        """Bytes from a position on, fewer only at the end.

        Raises:
            OSError: the object is gone, may not be read, or the store does not answer.
        """
        stop = min(position + size, self.size)
        if stop <= position:
            return memoryview(b"")
        return self.reader().read(position, stop)

    def expect(self, start: int, stop: int) -> None:
        """Tells that this thread is going to read a range: nothing far behind it is asked for."""
        del start
        self.reader().expect(stop)

    def get(self, start: int, stop: int) -> memoryview:
        """What one request brings."""
        return self._files.get(self.path, start, stop)

    def reader(self) -> ReadAhead:
        """The reader of this thread; what another one holds for it is let go."""
        reader: ReadAhead | None = getattr(self._readers, "reader", None)
        if reader is None:
            reader = self._readers.reader = ReadAhead(self.get, self.size)
        last: weakref.ref[ReadAhead] | None = getattr(_THREAD, "last", None)
        before = None if last is None else last()
        if before is not reader:
            if before is not None:
                before.close()
            _THREAD.last = weakref.ref(reader)
        return reader


class ObjectFile(io.RawIOBase):
    """A remote place as a file to read, for `io.BufferedReader`."""

    def __init__(self, place: RemotePlace) -> None:
        self._place = place
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of any file."""
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._place.size}
        self._position = max(0, bases[whence] + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """As of any file.

        Raises:
            OSError: as `RemotePlace.read_at`.
        """
        target = memoryview(buffer).cast("B")
        data = self._place.read_at(self._position, len(target))
        target[: len(data)] = data
        self._position += len(data)
        return len(data)


_THREAD = threading.local()
"""Has the reader that each thread used last."""


@contextmanager
def _faults_of(path: bytes) -> Iterator[Any]:
    """Gives obstore, and raises its errors about a path as those of files."""
    obstore = _obstore(path)
    try:
        yield obstore
    except (obstore.exceptions.BaseError, OSError) as error:
        raise _os_error(error, path) from error


def _obstore(path: bytes) -> Any:
    try:
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        name = path.decode("utf-8", "backslashreplace")
        raise MissingDependencyError(
            f"{name}: object stores are read with obstore: pip install 'ottla[objects]'"
        ) from error
    return obstore


def connect(url: str, storage_options: Mapping[str, str]) -> Any:
    """The store of a URL.

    Raises:
        MissingDependencyError: obstore is not installed.
        StorageError: a setting does not exist.
    """
    obstore = _obstore(url.encode())
    config: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in storage_options.items():
        key = name.lower()
        bare = next((key.removeprefix(v) for v in _VENDORS if key.startswith(v)), key)
        if bare in _CLIENT_OPTIONS:
            client[bare] = {"true": True, "false": False}.get(value.lower(), value)
        else:
            config[key] = value
    endpoints = [value for key, value in config.items() if "endpoint" in key]
    endpoints += [os.environ.get(name, "") for name in _ENDPOINTS]
    if any(endpoint.startswith("http://") for endpoint in endpoints):
        # Who names such an endpoint means it.
        client.setdefault("allow_http", True)
    try:
        return obstore.store.from_url(url, config=config or None, client_options=client or None)
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise StorageError(f"{url}: {_first_line(error)}") from error


def _os_error(error: Exception, path: bytes) -> OSError:
    """An error of obstore as one of files."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    if isinstance(error, OSError) and error.errno is not None:
        return error
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such object", path)
    if isinstance(error, PermissionDeniedError):
        return PermissionError(errno.EACCES, "permission denied by the store", path)
    if isinstance(error, UnauthenticatedError):
        return PermissionError(errno.EACCES, "the store does not take these credentials", path)
    return OSError(errno.EIO, _first_line(error), path)


def _first_line(error: Exception) -> str:
    """What an error says, without what obstore adds for debugging."""
    text = " ".join(str(error).partition("\n\nDebug source")[0].split())
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"
