"""Where results may be written: not among the logs that they are about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.logs.names import display, parse_partition_name
from ottla.storage import full_path, join, store_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.storage import Source


def check_output(directory: str | os.PathLike[str], sources: Iterable[Source]) -> None:
    """Raises ValueError if a directory for results is inside a directory that is read.

    A broker would find it among its logs, and may refuse to start.

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
