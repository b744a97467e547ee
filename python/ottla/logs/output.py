"""Where results may be written: not among the logs that they are about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.logs.names import directory_kind, display, parse_partition_name
from ottla.storage import full_path, join, store_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.storage import Source


def check_output(directory: str | os.PathLike[str], sources: Iterable[Source]) -> None:
    """Raises ValueError if a directory for results is inside one that is read, or a broker's.

    A broker would find it among its logs, and refuse to start.

    Args:
        directory: the directory to be written.
        sources: the paths that are read; of a segment its partition's directory counts.
    """
    target = os.path.realpath(os.fsencode(directory))
    for source in sources:
        path = full_path(source)
        if store_of(path) is not None:
            continue
        top = os.path.realpath(path)
        if not os.path.isdir(top):
            top = os.path.dirname(top)
            if parse_partition_name(os.path.basename(top)) is None:
                continue
        if target == top or target.startswith(join(top, b"")):
            raise ValueError(
                f"{display(target)} is inside {display(top)}, which is read and never modified: use"
                " a directory elsewhere"
            )
    parent = os.path.dirname(target)
    while parent != os.path.dirname(parent):
        if directory_kind(_files_of(parent)) == "log-directory":
            raise ValueError(
                f"{display(target)} is inside {display(parent)}, the log directory of a broker,"
                " which does not start with a directory in it that is no partition: use a directory"
                " elsewhere"
            )
        parent = os.path.dirname(parent)


def _files_of(directory: bytes) -> list[bytes]:
    """The names of the files in a directory; none if it is not there or cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
