"""Whether a broker is writing to a log that was listed.

The files of a live directory are listed first, its checkpoints are read later: they may know of
records that were written in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.logs.names import classify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.logs.inventory import FileEntry, Partition
    from ottla.storage import Entry, Files


def has_grown(partition: Partition, files: Files) -> bool:
    """Whether the live log goes on behind what was listed."""
    segments = partition.segments
    if not segments:
        return False
    last = segments[-1]
    for base_offset, entry in _live_segments(partition, files):
        if base_offset > (last.base_offset or 0):
            return True
        if entry.name == last.name and entry.size > last.size:
            return True
    return False


def start_behind(partition: Partition, segment: FileEntry, files: Files) -> int | None:
    """The base offset that the live log starts with if a listed segment and all before it are gone.

    None if one of them is there, or nothing is behind them. A broker deletes segments from the
    start, as retention asks for; whatever is missing elsewhere is lost.
    """
    bases = [base_offset for base_offset, _ in _live_segments(partition, files)]
    start = min(bases, default=None)
    if start is None or segment.base_offset is None or start <= segment.base_offset:
        return None
    return start


def _live_segments(partition: Partition, files: Files) -> Iterator[tuple[int, Entry]]:
    """Yields the live segments that are there now with their base offsets; none if not listable."""
    try:
        entries = files.list(partition.directory)
    except OSError:
        return
    for entry in entries:
        kind, state, base_offset = classify(entry.name)
        if kind == "segment" and state == "live" and base_offset is not None:
            yield base_offset, entry
