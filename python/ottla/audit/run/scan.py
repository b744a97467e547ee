"""The request to scan one file, in one pass or in ranges, and the joining of ranges.

A request is data, executed by a thread of this process or by a task of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.storage import again

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ottla.audit.plan.logs import Log, ScanTask
    from ottla.logs.inventory import FileEntry, Partition
    from ottla.logs.names import FileKind
    from ottla.storage import Files, Place


Segment = _engine.Segment
"""A segment opened for scanning."""

SegmentScan = _engine.SegmentScan
"""The result of scanning a segment."""


class ScanRequest(NamedTuple):
    """A file, and everything a scan needs to know besides its bytes."""

    place: Place
    """The file to read."""
    size: int
    """Size in bytes when it was listed. Later appends are ignored, so that ranges scanned at
    different times and by different processes see the same file."""
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

    def read_by(self, files: Files) -> ScanRequest:
        """Returns the same request with these files, and so with their settings of stores."""
        offset_index, time_index = self.offset_index, self.time_index
        return self._replace(
            place=again(self.place, files),
            offset_index=None if offset_index is None else again(offset_index, files),
            time_index=None if time_index is None else again(time_index, files),
        )

    @property
    def objects(self) -> Iterator[tuple[bytes, int]]:
        """Path and size of the file and its indexes, as far as they are in stores."""
        for place in (self.place, self.offset_index, self.time_index):
            path = None if place is None or place.is_local else getattr(place, "path", None)
            if place is not None and path is not None:
                yield path, place.size

    def open(self) -> Segment:
        """Opens the segment.

        Raises:
            OSError: the file cannot be opened.
        """
        return Segment(
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
    """Returns the request to scan a task's file; `beside` is that of its log."""
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


def audited_files(partition: Partition) -> Iterator[tuple[bytes, int]]:
    """Yields path and size of the files beside segments that an audit reads."""
    return _paths(partition, _BESIDE_SEGMENTS)


def judged_files(partition: Partition) -> Iterator[tuple[bytes, int]]:
    """Yields path and size of those that are read once the segments are scanned."""
    return _paths(partition, _JUDGED)


def start_files(partition: Partition) -> Iterator[tuple[bytes, int]]:
    """Yields path and size of the files that one start of a broker or another reads."""
    return _paths(partition, _ALWAYS_READ)


_JUDGED: tuple[FileKind, ...] = (
    "transaction-index",
    "producer-snapshot",
    "leader-epoch-checkpoint",
    "partition-metadata",
)
_BESIDE_SEGMENTS: tuple[FileKind, ...] = ("offset-index", "time-index", *_JUDGED)
_ALWAYS_READ: tuple[FileKind, ...] = ("segment", "leader-epoch-checkpoint", "partition-metadata")


def _paths(partition: Partition, kinds: Collection[FileKind]) -> Iterator[tuple[bytes, int]]:
    for file in partition.files:
        if file.kind in kinds and file.state == "live" and file.fault is None:
            yield file.path, file.size


def scan_whole(segment: Segment, progress: Callable[[int], bool] | None = None) -> bytes:
    """Scans a segment in one pass. Returns bytes for `unpack_scan`.

    Args:
        segment: what to scan.
        progress: called with the bytes read so far; returns whether to continue.

    Raises:
        OSError: the file cannot be read.
    """
    return segment.scan(progress=progress).to_bytes()


def scan_range(
    segment: Segment, start: int, stop: int, progress: Callable[[int], bool] | None = None
) -> bytes:
    """Scans a range of a segment. Returns bytes for `join_ranges`.

    Args:
        segment: what to scan.
        start, stop: the range, in bytes.
        progress: called with the bytes read so far; returns whether to continue.

    Raises:
        OSError: the file cannot be read.
    """
    return segment.scan_range(start, stop, progress=progress).to_bytes()


def unpack_scan(data: bytes) -> SegmentScan:
    """Returns the scan that `scan_whole` returned as bytes, possibly in another process."""
    return SegmentScan.from_bytes(data)


def join_ranges(request: ScanRequest, ranges: Sequence[bytes]) -> tuple[SegmentScan, int]:
    """Joins all ranges of a file. Returns the scan, and how many ranges had to be read again.

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
    """Returns the file of a kind beside a segment, None if there is none or it is empty."""
    file = None if base_offset is None else beside.get((kind, base_offset))
    return None if file is None or not file.size else files.place(file.path, file.size)
