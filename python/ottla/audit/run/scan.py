"""How one file is scanned, in one pass or in ranges: what it takes, and how ranges are joined.

A request is data: it is carried out by a thread of this process, or by a task of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.plan.plan import Log, ScanTask
    from ottla.logs.inventory import FileEntry
    from ottla.logs.names import FileKind
    from ottla.storage import Files, Place


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """One file, and all that is known about it beside its bytes."""

    place: Place
    """What is read: a path, or what reads from elsewhere."""
    size: int
    """Bytes when it was listed. What is appended later is not seen, so that ranges scanned at
    different times, and by different processes, are of one file."""
    base_offset: int | None
    next_base_offset: int | None
    is_active: bool
    stopped_cleanly: bool
    is_consumer_offsets: bool
    is_compared: bool
    """Whether the partition will be compared with its copies."""
    offset_index: Place | None
    time_index: Place | None
    level: str
    now_ms: int

    def open(self) -> _engine.Segment:
        """The segment.

        Raises:
            OSError: the file cannot be opened.
        """
        return _engine.Segment(
            self.place,
            size=self.size,
            base_offset=self.base_offset,
            next_base_offset=self.next_base_offset,
            is_active=self.is_active,
            stopped_cleanly=self.stopped_cleanly,
            is_consumer_offsets=self.is_consumer_offsets,
            is_compared=self.is_compared,
            offset_index=self.offset_index,
            time_index=self.time_index,
            level=self.level,
            now_ms=self.now_ms,
        )


def scan_request(
    task: ScanTask,
    log: Log,
    beside: Mapping[tuple[FileKind, int], FileEntry],
    files: Files,
    *,
    level: str,
    now_ms: int,
    is_compared: bool,
) -> ScanRequest:
    """What it takes to scan the file of a task; `beside` is what its log has beside segments."""
    return ScanRequest(
        place=files.place(task.file.path, task.file.size),
        size=task.file.size,
        base_offset=task.base_offset,
        next_base_offset=task.next_base_offset,
        is_active=task.is_active,
        stopped_cleanly=log.partition is not None and log.partition.stopped_cleanly,
        is_consumer_offsets=log.is_consumer_offsets,
        is_compared=is_compared,
        offset_index=_place_beside(beside, files, "offset-index", task.base_offset),
        time_index=_place_beside(beside, files, "time-index", task.base_offset),
        level=level,
        now_ms=now_ms,
    )


def scan_whole(segment: _engine.Segment) -> bytes:
    """What one pass over a segment shows, as bytes for `unpacked_scan`.

    Raises:
        OSError: the file cannot be read.
    """
    return segment.scan().to_bytes()


def scan_range(segment: _engine.Segment, start: int, stop: int) -> bytes:
    """What a range of a segment shows, as bytes for `join_ranges`.

    Raises:
        OSError: the file cannot be read.
    """
    return segment.scan_range(start, stop).to_bytes()


def unpacked_scan(data: bytes) -> _engine.SegmentScan:
    """The scan that `scan_whole` gave, maybe in another process."""
    return _engine.SegmentScan.from_bytes(data)


def join_ranges(request: ScanRequest, ranges: Sequence[bytes]) -> tuple[_engine.SegmentScan, int]:
    """What all ranges of a file show together, and how many had to be read again for it.

    Raises:
        OSError: the file cannot be read again.
    """
    segment = request.open()
    read_again = 0
    left = _engine.Chunk.from_bytes(ranges[0])
    for data in ranges[1:]:
        left = left.merge(_engine.Chunk.from_bytes(data))
        if left.pieces > 1:
            read_again += 1
            left = segment.resolve(left)
    return segment.finish(left), read_again


def _place_beside(
    beside: Mapping[tuple[FileKind, int], FileEntry],
    files: Files,
    kind: FileKind,
    base_offset: int | None,
) -> Place | None:
    """The file of a kind beside a segment, if there is one and it holds anything."""
    file = None if base_offset is None else beside.get((kind, base_offset))
    return None if file is None or not file.size else files.place(file.path, file.size)
