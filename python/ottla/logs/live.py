"""Whether a broker is writing to a log that was listed.

The files of a live directory are listed first, its checkpoints are read later: they may know of
records that were written in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.logs.names import classify

if TYPE_CHECKING:
    from ottla.logs.inventory import Partition
    from ottla.storage import Files


def has_grown(partition: Partition, files: Files) -> bool:
    """Whether the live log goes on behind what was listed."""
    segments = partition.segments
    if not segments:
        return False
    last = segments[-1]
    try:
        entries = files.list(partition.directory)
    except OSError:
        return False
    for entry in entries:
        kind, state, base_offset = classify(entry.name)
        if kind != "segment" or state != "live" or base_offset is None:
            continue
        if base_offset > (last.base_offset or 0):
            return True
        if entry.name == last.name and entry.size > last.size:
            return True
    return False
