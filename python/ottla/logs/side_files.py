"""Reads a small file beside segments, up to a maximum size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from ottla.logs.inventory import FileEntry
    from ottla.storage import Files

# The checkpoints of a broker with 200,000 partitions stay below 20 MiB.
MAX_FILE_BYTES = 64 << 20


class SideFileError(ValueError):
    """The content of a file is not what Kafka writes."""

    def __init__(self, message: str, expected: str, found: str) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found


def read_side_file(file: FileEntry, files: Files = ANYWHERE) -> bytes:
    """Reads a small file.

    Raises:
        SideFileError: it is larger than such a file can be.
        OSError: it cannot be read.
    """
    if file.fault is not None:
        raise SideFileError(f"cannot be read: {file.fault}", "a file", file.fault)
    data = files.read(file.path, MAX_FILE_BYTES)
    if len(data) > MAX_FILE_BYTES:
        raise SideFileError("too large", f"at most {MAX_FILE_BYTES} bytes", "more")
    return data
