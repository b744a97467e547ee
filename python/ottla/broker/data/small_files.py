"""Files that appear whole or not at all, and stay after a power cut."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["read_text", "sync_directory", "write_file"]


def write_file(path: str, data: bytes) -> None:
    """Writes or replaces a file: beside it, synced, and renamed.

    Raises:
        OSError: the system could not; the file is as it was.
    """
    beside = f"{path}.tmp"
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Makes the names in a directory stay.

    Raises:
        OSError: the system could not.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path: str, limit: int) -> str | None:
    """Returns the text of a file, at most so many characters of it; `None` if there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(limit)
    except FileNotFoundError:
        return None
