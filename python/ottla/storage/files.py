"""Files as Ottla sees them, and those of the local file system."""

from __future__ import annotations

import errno
import os
import stat
from functools import lru_cache
from io import DEFAULT_BUFFER_SIZE, BytesIO
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.storage.paths import join

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from typing import BinaryIO


class Place(Protocol):
    """A file as the engine reads it; small and picklable."""

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where looking into it is cheap."""

    @property
    def size(self) -> int:
        """Size in bytes; of a file elsewhere when it was listed."""

    def read_at(self, position: int, size: int) -> memoryview:
        """Returns bytes from a position, fewer only at the end.

        Raises:
            OSError: it cannot be read.
        """

    def expect(self, start: int, stop: int) -> None:
        """Announces that the calling thread is about to read a range."""

    def open(self, buffer_bytes: int = DEFAULT_BUFFER_SIZE) -> BinaryIO:
        """Opens it as a buffered file.

        Raises:
            OSError: it cannot be opened.
        """


# Windows has no FIFOs among its files, but a mode that rewrites the ends of lines.
_RAW = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _open_at_once(path: bytes | str, flags: int) -> int:
    """Opens a file without waiting for a writer: by now the name may be that of a FIFO."""
    return os.open(path, flags | _RAW)


class LocalPlace(bytes):
    """A local file, by its path. The engine recognises the path and opens it itself."""

    __slots__ = ()

    @property
    def is_local(self) -> bool:
        """See `Place`."""
        return True

    @property
    def size(self) -> int:
        """See `Place`."""
        return os.stat(self).st_size

    def read_at(self, position: int, size: int) -> memoryview:
        """See `Place`."""
        with open(self, "rb", buffering=0, opener=_open_at_once) as file:
            file.seek(position)
            return memoryview(file.read(size) or b"")

    def expect(self, start: int, stop: int) -> None:
        """See `Place`. The operating system reads ahead by itself."""

    def open(self, buffer_bytes: int = DEFAULT_BUFFER_SIZE) -> BinaryIO:
        """See `Place`."""
        return open(self, "rb", buffer_bytes, opener=_open_at_once)


class HeldPlace:
    """A small file as it was read."""

    is_local = False

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        """Size in bytes."""

    @classmethod
    def of(cls, place: Place) -> HeldPlace:
        """Reads a file.

        Raises:
            OSError: it cannot be read.
        """
        data = bytearray()
        while len(data) < place.size:
            more = place.read_at(len(data), place.size - len(data))
            if not more:
                break
            data += more
        return cls(bytes(data))

    def read_at(self, position: int, size: int) -> memoryview:
        """See `Place`."""
        return memoryview(self._data)[position : position + size]

    def expect(self, start: int, stop: int) -> None:
        """See `Place`. All of it is here."""

    def open(self, buffer_bytes: int = DEFAULT_BUFFER_SIZE) -> BinaryIO:
        """See `Place`."""
        del buffer_bytes
        return BytesIO(self._data)


# Most small files fit, and take a single read.
_PIECE_BYTES = 4096


class Entry(NamedTuple):
    """A file or a directory. A symbolic link stands for its target."""

    name: bytes
    is_directory: bool
    size: int
    """In bytes; 0 for a directory."""
    identity: Hashable = None
    """Of a directory: equal for the same directory, by whatever path it was reached. It may be left
    out where it is listed."""
    fault: str | None = None
    """Why it cannot be read as a file, if it cannot."""
    leads_nowhere: bool = False
    """Whether it is a link that is not followed, so that it may stand for anything."""


class Files(Protocol):
    """Files that can be listed and read; small and picklable.

    Every method raises OSError with an `errno` and a text that says what is wrong.
    """

    def stat(self, path: bytes) -> Entry:
        """Returns the entry at a path."""

    def list(self, directory: bytes) -> Sequence[Entry]:
        """Returns the entries of a directory, sorted by name."""

    def exists(self, path: bytes) -> bool:
        """Whether there is anything at a path; false where permissions forbid looking."""

    def read(self, path: bytes, limit: int) -> bytes:
        """Returns the content of a small file, or `limit` + 1 bytes of a larger one."""

    def place(self, path: bytes, size: int | None = None) -> Place:
        """Returns a file as the engine reads it; `size` is its listed size, if known."""

    def under(self, directory: bytes) -> Files:
        """Returns these files, prepared for listing everything below a directory."""


class LocalFiles:
    """The local file system.

    Args:
        within: real directories that symbolic links may lead into, or real files that they may lead
            to; anywhere without it. Other links are faults, so that a directory which somebody sent
            cannot show what lies beside it.
    """

    def __init__(self, within: Sequence[bytes] | None = None) -> None:
        self._within = None if within is None else tuple(within)

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        return self._entry(os.path.basename(path), path, is_link=os.path.islink(path))

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        entries = []
        # Where names may not be looked up, that is the fault of each.
        may_look_up = os.access(directory, os.X_OK)
        with os.scandir(directory) as children:
            for child in children:
                if may_look_up and child.is_dir(follow_symlinks=False):
                    # A log directory may hold many: nothing more is asked of the system for each.
                    fault = _fault_of(stat.S_IFDIR)
                    entries.append(Entry(child.name, is_directory=True, size=0, fault=fault))
                    continue
                try:
                    entry = self._entry(child.name, child.path, is_link=child.is_symlink())
                    entries.append(entry)
                except OSError as error:
                    fault, is_loop = reason_of(error), error.errno == errno.ELOOP
                    entry = Entry(child.name, is_directory=False, size=0, fault=fault)
                    entries.append(entry._replace(leads_nowhere=is_loop))
        return sorted(entries, key=attrgetter("name"))

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        return os.path.exists(path)

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        if os.path.islink(path):
            self._check_link(path)
        descriptor = _open_at_once(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            data = os.read(descriptor, _PIECE_BYTES)
            if len(data) == _PIECE_BYTES:
                with os.fdopen(descriptor, "rb", closefd=False) as opened:
                    # `read` allocates its argument before it reads.
                    size = min(os.fstat(descriptor).st_size, limit)
                    data += opened.read(size + 1)
        finally:
            os.close(descriptor)
        return data

    def place(self, path: bytes, size: int | None = None) -> LocalPlace:
        """See `Files`."""
        del size
        return LocalPlace(path)

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        del directory
        return self

    def _check_link(self, path: bytes) -> None:
        """Raises OSError if a link leads out of where links may lead."""
        if self._within is None:
            return
        target = os.path.realpath(path)
        if not any(target == top or target.startswith(join(top, b"")) for top in self._within):
            text = target.decode("utf-8", "backslashreplace")
            reason = f"a link to {text}, outside of what was given: give that too"
            raise OSError(errno.ELOOP, f"{reason}, or audit with --follow-links", path)

    def _entry(self, name: bytes, path: bytes, *, is_link: bool) -> Entry:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if os.path.islink(path):
                target = os.readlink(path).decode("utf-8", "backslashreplace")
                broken = f"broken link to {target}"
                raise FileNotFoundError(errno.ENOENT, broken, path) from None
            raise
        if is_link:
            self._check_link(path)
        mode = status.st_mode
        if stat.S_ISREG(mode):
            return Entry(name, is_directory=False, size=status.st_size)
        identity = status.st_dev, status.st_ino
        return Entry(name, stat.S_ISDIR(mode), 0, identity, _fault_of(mode))


LOCAL = LocalFiles()


def reason_of(error: OSError) -> str:
    """The reason for an error, as part of a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


@lru_cache(maxsize=16)
def _fault_of(mode: int) -> str:
    """Why what is of this mode cannot be read as a file."""
    names = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    )
    name = next((name for is_type, name in names if is_type(mode)), "a special file")
    return f"{name}, not a file"
