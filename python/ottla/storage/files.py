"""What can be asked of files, those of this machine, and which files a path belongs to.

Paths are bytes, absolute or with a scheme (`full_path`), and may be joined and split by `os.path`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ottla.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ottla.storage.objects import ObjectFiles, ObjectPlace

Place: TypeAlias = "bytes | ObjectPlace"
"""What the engine reads: a path of this machine, or an object that reads from elsewhere."""

STORE_SCHEMES = (b"s3", b"s3a", b"gs", b"az", b"abfs", b"abfss")
"""Of paths into object stores."""

# One slash behind the colon is what Hadoop writes without a host, and what pathlib leaves of two.
_WITH_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)", re.DOTALL)

# Most small files are smaller, and read at once.
_PIECE_BYTES = 4096


class Entry(NamedTuple):
    """A file or a directory; a link stands for what it leads to."""

    name: bytes
    is_directory: bool
    size: int
    """In bytes, of a file."""
    identity: Hashable = None
    """Of a directory: the same for the same directory, whatever path led there."""
    fault: str | None = None
    """Why it cannot be read as a file."""


class Files(Protocol):
    """Files that can be listed and read; small, and picklable.

    Every method raises OSError with an `errno` and a text that says what is wrong.
    """

    def stat(self, path: bytes) -> Entry:
        """What lies at a path."""

    def list(self, directory: bytes) -> Sequence[Entry]:
        """The entries of a directory, by name."""

    def exists(self, path: bytes) -> bool:
        """Whether anything lies there; nothing, too, where nobody may look."""

    def read(self, path: bytes, limit: int) -> bytes:
        """A small file, whole; of one that is larger than the limit a byte more than that."""

    def place(self, path: bytes, size: int | None = None) -> Place:
        """A file as the engine takes it. `size` is what a listing said, where there was one."""

    def under(self, directory: bytes) -> Files:
        """The same files, for somebody who is going to list everything below a directory."""


class LocalFiles:
    """The files of this machine."""

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        return self._entry(os.path.basename(path), path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        entries = []
        with os.scandir(directory) as children:
            for child in children:
                try:
                    entries.append(self._entry(child.name, child.path))
                except OSError as error:
                    fault = reason_of(error)
                    entries.append(Entry(child.name, is_directory=False, size=0, fault=fault))
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        return os.path.exists(path)

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        # A name may have become a FIFO since it was listed; that must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, _PIECE_BYTES)
            if len(data) == _PIECE_BYTES:
                with os.fdopen(descriptor, "rb", closefd=False) as opened:
                    # As much memory as is asked for is taken before reading.
                    size = min(os.fstat(descriptor).st_size, limit)
                    data += opened.read(size + 1)
        finally:
            os.close(descriptor)
        return data

    def place(self, path: bytes, size: int | None = None) -> Place:
        """See `Files`."""
        del size
        return path

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        del directory
        return self

    def _entry(self, name: bytes, path: bytes) -> Entry:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if os.path.islink(path):
                target = os.readlink(path).decode("utf-8", "backslashreplace")
                broken = f"broken link to {target}"
                raise FileNotFoundError(errno.ENOENT, broken, path) from None
            raise
        if stat.S_ISREG(status.st_mode):
            return Entry(name, is_directory=False, size=status.st_size)
        is_directory = stat.S_ISDIR(status.st_mode)
        identity = status.st_dev, status.st_ino
        return Entry(name, is_directory, 0, identity, f"{_type_name(status.st_mode)}, not a file")


LOCAL = LocalFiles()


class AnyFiles:
    """Files of every kind: each path is asked of the files that it belongs to.

    Args:
        storage_options: settings of object stores, as of `files_of`.
    """

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self._storage_options = dict(storage_options or {})
        self._known: dict[bytes, ObjectFiles] = {}

    def __reduce__(self) -> tuple[type[AnyFiles], tuple[dict[str, str]]]:
        return AnyFiles, (self._storage_options,)

    def of(self, path: bytes) -> Files:
        """The files that a path belongs to."""
        root = store_of(path)
        if root is None:
            return LOCAL
        files = self._known.get(root)
        if files is None:
            from ottla.storage.objects import ObjectFiles

            files = self._known.setdefault(root, ObjectFiles(root, self._storage_options))
        return files

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        return self.of(path).stat(path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        return self.of(directory).list(directory)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        return self.of(path).exists(path)

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        return self.of(path).read(path, limit)

    def place(self, path: bytes, size: int | None = None) -> Place:
        """See `Files`."""
        return self.of(path).place(path, size)

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        return self.of(directory).under(directory)


ANYWHERE = AnyFiles()
"""Files of every kind, of stores that the environment tells how to reach."""


def files_of(
    source: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    storage_options: Mapping[str, str] | None = None,
) -> Files:
    """The files that a path or URI leads to.

    Args:
        source: a path of this machine, or a URI of an object store.
        storage_options: settings of the store as obstore names them, such as ``endpoint``,
            ``access_key_id`` and ``allow_http``. Without them the environment decides, as in
            ``AWS_ACCESS_KEY_ID``.

    >>> files_of("examples/data").exists(full_path("examples/data/orders-0"))
    True

    Raises:
        StorageError: a scheme that is none of a store, such as ``hdfs``.
    """
    return AnyFiles(storage_options).of(full_path(source))


def full_path(source: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """A path or URI as one that stands for itself: absolute, or with scheme and store.

    >>> full_path("s3a://bucket/logs/"), full_path("file:///var/lib/kafka")
    (b's3a://bucket/logs', b'/var/lib/kafka')

    Raises:
        StorageError: a scheme that is none of a store.
    """
    path = os.fsencode(source)
    match = _WITH_SCHEME.fullmatch(path)
    if match is None or os.path.lexists(path):
        return os.path.abspath(path)
    scheme, slash, rest = match[1].lower(), match[2], match[3]
    if scheme == b"file":
        # A good part of what importing this module would cost.
        from urllib.parse import unquote_to_bytes

        host, _, local = rest.partition(b"/") if slash else (b"", b"", rest)
        if host not in (b"", b"localhost"):
            raise StorageError(
                f"{_text(path)}: a file of another machine; write file:/// and the path on this one"
            )
        return os.path.abspath(b"/" + unquote_to_bytes(local))
    if scheme not in STORE_SCHEMES:
        known = ", ".join(f"{known.decode()}://" for known in STORE_SCHEMES)
        hint = "/dbfs/ and the rest of the path" if scheme == b"dbfs" else "its path there"
        raise StorageError(
            f"{_text(path)}: no files are read by {scheme.decode()}:, only by {known} and paths of"
            f" this machine; mount what lies there and give {hint}"
        )
    store, *key = [part for part in rest.split(b"/") if part] or [b""]
    if not store:
        raise StorageError(f"{_text(path)}: no bucket or container behind {scheme.decode()}://")
    return b"/".join((match[1] + b":/", store, *key))


def store_of(path: bytes) -> bytes | None:
    """Scheme and bucket or container of a path into an object store, None of any other path."""
    scheme, separator, rest = path.partition(b"://")
    if not separator or scheme.lower() not in STORE_SCHEMES:
        return None
    return scheme + separator + rest.partition(b"/")[0]


def common_path(paths: Sequence[bytes]) -> bytes:
    """The longest directory above all paths, as `os.path.commonpath`; of stores none above them.

    >>> common_path([b"s3://bucket/a/b", b"s3://bucket/a/c"]), common_path([b"s3://a", b"/b"])
    (b's3://bucket/a', b'')
    """
    stores = {store_of(path) for path in paths}
    if stores == {None}:
        return os.path.commonpath(paths)
    (store, *others) = stores
    if store is None or others:
        return b""
    return store + os.path.commonpath([b"/" + path[len(store) :] for path in paths]).rstrip(b"/")


def reason_of(error: OSError) -> str:
    """What an error says, as part of a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def _type_name(mode: int) -> str:
    names = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    )
    return next((name for is_type, name in names if is_type(mode)), "a special file")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
