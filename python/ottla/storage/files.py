"""What can be asked of files, and those of this machine."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class RemotePlace(Protocol):
    """A file that is read from elsewhere; small, and picklable."""

    @property
    def size(self) -> int:
        """Bytes when it was listed."""

    def read_at(self, position: int, size: int) -> memoryview:
        """Bytes from a position on, fewer at the end.

        Raises:
            OSError: it cannot be read.
        """

    def expect(self, start: int, stop: int) -> None:
        """Takes note of the range that is about to be read."""


Place: TypeAlias = "bytes | RemotePlace"
"""What the engine reads: a path of this machine, or an object that reads from elsewhere."""

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
