"""What may not be in a log directory: reading it waits forever, or writing it ends elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["refuse_special_files"]


def refuse_special_files(path: str) -> None:
    """Looks at a log directory and at those of its partitions. A partition may be a link.

    Raises:
        LogDirectoryError: something is neither a file nor a directory.
        OSError: the system cannot list it.
    """
    for directory in _special_files(path):
        for _ in _special_files(directory):
            pass


def _special_files(path: str) -> Iterator[str]:
    """Yields the directories in one, and refuses what is neither that nor a file of its own."""
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                continue
            if entry.is_dir():
                yield entry.path
            elif entry.is_symlink():
                raise LogDirectoryError(
                    f"{entry.path} is a link to no directory, and what is elsewhere is not "
                    f"written: put the file itself there"
                )
            else:
                raise LogDirectoryError(
                    f"{entry.path} is neither a file nor a directory, and cannot be read as one"
                )
