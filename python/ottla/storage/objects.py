"""Files in object stores, through obstore.

A store has no directories: each prefix of a key up to a slash counts as one. Listing requests all
keys below a path once and keeps their names and sizes. Reading requests data ahead (`readahead`).
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
from ottla.storage.secrets import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from _typeshed import WriteableBuffer

    from ottla.storage.files import Files, Place

MAX_OBJECTS = 10_000_000
"""Objects below one path, whose names are held in memory."""

_LIST_CHUNK = 1000

# Texts of a store are cut to this length: some answer with pages of XML.
_MAX_TEXT = 300

# Settings of the HTTP client, which obstore takes separately from those of the store.
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
    """The objects of one bucket or container; picklable, reconnects where it is unpickled.

    Args:
        root: scheme and name of the bucket, as returned by `store_of`.
        storage_options: see `files_of`.
    """

    def __init__(self, root: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._storage_options = StorageOptions(storage_options or {})
        self._store: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ObjectFiles], tuple[bytes, StorageOptions]]:
        return ObjectFiles, (self.root, self._storage_options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectFiles) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.root)

    @property
    def store(self) -> Any:
        """The store as an obstore object.

        Raises:
            MissingDependencyError: obstore is not installed.
            StorageError: there is no such setting.
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
            raise FileNotFoundError(errno.ENOENT, "no object of this name or below it", path)
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
            # The response has the size and a stream of the content.
            answer = obstore.get(self.store, self.key(path))
            if answer.meta["size"] <= limit:
                return bytes(answer.bytes())
        return bytes(self.get(path, 0, limit + 1))

    def place(self, path: bytes, size: int | None = None) -> ObjectPlace:
        """See `Files`."""
        return ObjectPlace(self, path, self.size(path) if size is None else size)

    def under(self, directory: bytes) -> Files:
        """See `Files`. Holds the names and sizes of all objects below the directory."""
        return _StoreListing(self, directory)

    def key(self, path: bytes) -> str:
        """Returns the store's key of a path."""
        return path[len(self.root) + 1 :].decode("utf-8", "replace")

    def size(self, path: bytes) -> int:
        """Requests the size of an object, in bytes."""
        with _faults_of(path) as obstore:
            return int(obstore.head(self.store, self.key(path))["size"])

    def get(self, path: bytes, start: int, stop: int) -> memoryview:
        """Returns bytes of an object by one request, fewer if it has shrunk."""
        try:
            with _faults_of(path) as obstore:
                key = self.key(path)
                return memoryview(obstore.get_range(self.store, key, start=start, end=stop))
        except OSError as error:
            # The object may have shrunk below the range.
            if error.errno == errno.EIO and self._size_or(path, stop) <= start:
                return memoryview(b"")
            raise

    def _size_or(self, path: bytes, unknown: int) -> int:
        try:
            return self.size(path)
        except OSError:
            return unknown

    def listed(self, directory: bytes) -> Iterator[tuple[bytes, int]]:
        """Yields path and size of every object below a directory."""
        key = self.key(directory)
        with _faults_of(directory) as obstore:
            for chunk in obstore.list(self.store, key or None, chunk_size=_LIST_CHUNK):
                for meta in chunk:
                    # Consoles mark a directory by an object with its name.
                    if meta["path"] != key:
                        yield self.root + b"/" + meta["path"].encode(), meta["size"]


def directory_entry(path: bytes) -> Entry:
    """Returns an entry for a directory of a store."""
    scheme, _, rest = path.partition(b"://")
    # Hadoop has other names for the same stores.
    scheme = {b"s3a": b"s3", b"abfss": b"abfs"}.get(scheme.lower(), scheme.lower())
    return Entry(
        os.path.basename(path),
        is_directory=True,
        size=0,
        identity=scheme + b":" + rest,
        fault="a directory, not a file",
    )


class _StoreListing:
    """One listing of a directory of a store; paths outside it go to the store."""

    def __init__(self, files: ObjectFiles, directory: bytes) -> None:
        self._files = files
        self._directory = directory
        self._names: dict[bytes, list[bytes]] = {}
        """Names of the objects in each directory."""
        self._sizes: dict[bytes, array[int]] = {}
        self._directories: dict[bytes, set[bytes]] = {}
        """Names of the directories in each directory."""
        self._load()

    def _load(self) -> None:
        # Partitions have files of the same names, which are held once.
        shared: dict[bytes, bytes] = {}
        names, sizes = self._names, self._sizes
        for count, (path, size) in enumerate(self._files.listed(self._directory)):
            above, _, name = path.rpartition(b"/")
            name = shared.setdefault(name, name)
            if above not in names:
                self._add_directory(above)
            names[above].append(name)
            sizes[above].append(size)
            if count >= MAX_OBJECTS:
                raise OSError(
                    errno.E2BIG,
                    f"more than {MAX_OBJECTS:,} objects below it: give the log directories",
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
        # Consoles mark directories by objects of the same name: a name that is both is a directory.
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
    """An object as the engine reads it: small, picklable, and safe to read from several threads.

    Each thread holds the pieces it read last, so a process holds at most `MAX_PIECES` times
    `PIECE_BYTES` for each of its threads.
    """

    def __init__(self, files: ObjectFiles, path: bytes, size: int) -> None:
        self._files = files
        self._readers = threading.local()
        self.path = path
        self.size = size
        """Size in bytes."""

    def __reduce__(self) -> tuple[type[ObjectPlace], tuple[ObjectFiles, bytes, int]]:
        return ObjectPlace, (self._files, self.path, self.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPlace) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.path, self.size))

    def __repr__(self) -> str:
        return f"ObjectPlace({self.path!r}, {self.size})"

    @property
    def is_local(self) -> bool:
        """See `Place`."""
        return False

    def read_at(self, position: int, size: int) -> memoryview:
        """Returns bytes from a position, fewer only at the end.

        Raises:
            OSError: the object is gone, may not be read, or the store does not answer.
        """
        stop = min(position + size, self.size)
        if stop <= position:
            return memoryview(b"")
        return self.reader().read(position, stop)

    def expect(self, start: int, stop: int) -> None:
        """Announces that the calling thread is about to read a range; limits reading ahead."""
        del start
        self.reader().expect(stop)

    def open(self, buffer_bytes: int = io.DEFAULT_BUFFER_SIZE) -> BinaryIO:
        """See `Place`."""
        return io.BufferedReader(ObjectFile(self), buffer_bytes)

    def get(self, start: int, stop: int) -> memoryview:
        """Returns the bytes of a range by one request."""
        return self._files.get(self.path, start, stop)

    def reader(self) -> ReadAhead:
        """Returns the calling thread's reader, and closes the one it used before."""
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
    """A place as a raw file, for `io.BufferedReader`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._position = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase.seek`."""
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._place.size}
        self._position = max(0, bases[whence] + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """See `io.RawIOBase.readinto`.

        Raises:
            OSError: see `Place.read_at`.
        """
        target = memoryview(buffer).cast("B")
        data = self._place.read_at(self._position, len(target))
        target[: len(data)] = data
        self._position += len(data)
        return len(data)


_THREAD = threading.local()
"""Holds the reader that each thread used last."""


@contextmanager
def _faults_of(path: bytes) -> Iterator[Any]:
    """Yields obstore, and raises its errors about a path as OSError."""
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
    """Returns the store of a URL.

    Raises:
        MissingDependencyError: obstore is not installed.
        StorageError: there is no such setting.
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
        # An http endpoint is a decision to allow http.
        client.setdefault("allow_http", True)
    try:
        return obstore.store.from_url(url, config=config or None, client_options=client or None)
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise StorageError(f"{url}: {_first_line(error)}") from error


def _os_error(error: Exception, path: bytes) -> OSError:
    """Converts an error of obstore to OSError."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    if isinstance(error, OSError) and error.errno is not None:
        return error
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such object", path)
    if isinstance(error, PermissionDeniedError):
        return PermissionError(errno.EACCES, "permission denied by the store", path)
    if isinstance(error, UnauthenticatedError):
        return PermissionError(errno.EACCES, "the store rejects these credentials", path)
    return OSError(errno.EIO, _first_line(error), path)


def _first_line(error: Exception) -> str:
    """The first line of an error's text, without obstore's debug output."""
    text = " ".join(str(error).partition("\n\nDebug source")[0].split())
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"
