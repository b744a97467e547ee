"""Growing logs as a stream finds them: their segments, and what the files beside them say."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import SparkError
from ottla.logs.checkpoints import Checkpoints, parse_leader_epochs
from ottla.logs.inventory import FileEntry
from ottla.logs.metadata import parse_partition_metadata
from ottla.logs.names import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
)
from ottla.logs.segment import find_offset, first_batch, follow_batches, lawful_hole
from ottla.logs.side_files import SideFileError, read_side_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.logs.inventory import Partition
    from ottla.logs.names import FileKind
    from ottla.spark.source.checkpoint import Reached
    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place


class SegmentFile(NamedTuple):
    """A segment as listed."""

    base_offset: int
    place: Place
    file: str
    size: int


class Spot(NamedTuple):
    """Where a batch begins, or the log ends."""

    number: int
    """Index of the segment."""
    position: int


class Begin(NamedTuple):
    """Where to read on."""

    spot: Spot
    next_offset: int
    base_offset: int | None = None
    """Of the batch there, if it is known: it may begin before `next_offset`."""
    is_anew: bool = False
    passed: tuple[str, ...] = ()
    """What is lost and passed over, in words."""
    passed_offsets: int = 0


@dataclass(frozen=True)
class GrowingLog:
    """The live segments of a partition, at least one, in the order of offsets."""

    name: str
    topic: str | None
    partition: int | None
    segments: tuple[SegmentFile, ...]
    beside: Beside = field(compare=False)
    is_compacted: bool = False
    """Whether the topic is known to be compacted."""
    _rewritten: dict[int, int] = field(default_factory=dict, compare=False)
    """How many batches of a segment the cleaner rewrote, by its index, once that was asked."""

    @cached_property
    def bases(self) -> list[int]:
        """Base offsets of the segments."""
        return [segment.base_offset for segment in self.segments]

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment."""
        return self.segments[0].base_offset

    def index_of(self, base_offset: int) -> int | None:
        """Returns the index of the segment with a base offset."""
        index = bisect_right(self.bases, base_offset) - 1
        return index if index >= 0 and self.bases[index] == base_offset else None

    def at_most(self, earlier: GrowingLog) -> GrowingLog | None:
        """Returns what there still is of this log as it was listed earlier; None if nothing is."""
        sizes = {segment.base_offset: segment.size for segment in earlier.segments}
        segments = tuple(
            segment._replace(size=min(segment.size, sizes[segment.base_offset]))
            for segment in self.segments
            if segment.base_offset in sizes
        )
        return replace(self, segments=segments, _rewritten={}) if segments else None

    def unread(self, known: Reached | None) -> int:
        """Returns the number of bytes after a position."""
        if known is None:
            return sum(segment.size for segment in self.segments)
        return sum(
            max(0, segment.size - (known.position if segment.base_offset == known.segment else 0))
            for segment in self.segments
            if segment.base_offset >= known.segment
        )

    def ends_at(self, known: Reached) -> bool:
        """Whether, by its listing, nothing was written after a position."""
        last = self.segments[-1]
        return (last.base_offset, last.size) == (known.segment, known.position)

    def find(self, offset: int) -> tuple[Spot, int] | None:
        """Returns where the first batch that ends at or after an offset begins: place and offset.

        Raises:
            OSError: a segment cannot be read.
        """
        for index in range(max(0, bisect_right(self.bases, offset) - 1), len(self.segments)):
            place = self.segments[index].place
            position = find_offset(place, offset)
            batch = None if position is None else first_batch(place, position)
            if batch is not None and batch.position < self.segments[index].size:
                return Spot(index, batch.position), batch.base_offset
        return None

    def end(self) -> tuple[Spot, int]:
        """Returns where the last whole batch ends, and the offset behind it.

        Raises:
            OSError: a segment cannot be read.
        """
        number, last = len(self.segments) - 1, self.segments[-1]
        offset, end, position = last.base_offset, 0, 0
        while position < last.size:
            run = follow_batches(last.place, position, last.size, has_holes=True)
            if run.batches:
                batch = first_batch(last.place, run.last)
                is_written = run.end < last.size or (batch is not None and batch.is_valid)
                if not is_written:
                    run = follow_batches(last.place, position, run.last, has_holes=True)
                offset, end = max(offset, run.next_offset or 0), run.end
                if not is_written:
                    break
            # Whatever is no batch is stepped over, to one that proves that it is not the end.
            behind = first_batch(last.place, max(run.end, position + 1))
            if behind is None or not behind.is_valid:
                break
            position = behind.position
        return Spot(number, end), offset

    def spot_of(self, offset: int) -> Begin:
        """Returns where to read from an offset on: the log's end if it has no batch from there on.

        Raises:
            OSError: a segment cannot be read.
        """
        found = self.find(offset)
        if found is not None:
            return Begin(found[0], offset, found[1])
        number = bisect_left(self.bases, offset)
        spot = Spot(number, 0) if number < len(self.bases) else self.end()[0]
        return Begin(spot, offset)

    def may_be_cleaned(self, number: int) -> bool:
        """Whether the cleaner may have rewritten a segment: never the one that is written to."""
        if number < len(self.segments) - 1:
            return True
        dirty = self.beside.first_dirty_offset
        return dirty is not None and dirty > self.bases[number]

    def explain(self, first: int, last: int, around: Iterable[int]) -> str | None:
        """Returns what explains that offsets are missing, in words; None if nothing does.

        Args:
            first: the first of them.
            last: the last of them.
            around: indexes of the segments that they are between.

        Raises:
            OSError: a segment cannot be read.
        """
        for index in around:
            if index not in self._rewritten:
                segment = self.segments[index]
                run = follow_batches(segment.place, 0, segment.size, has_holes=True)
                self._rewritten[index] = run.rewritten
        rewritten = sum(self._rewritten[index] for index in around)
        return lawful_hole(
            first,
            last,
            topic=self.topic,
            log_start_offset=self.beside.log_start_offset,
            first_dirty_offset=self.beside.first_dirty_offset,
            rewritten_batches=rewritten,
            cleanup_policy="compact" if self.is_compacted else None,
        )


class Beside:
    """What the files beside the segments of a partition say, each read when it is asked for."""

    def __init__(self, partition: Partition, checkpoints: Checkpoints, files: Files) -> None:
        self._partition = partition
        self._checkpoints = checkpoints
        self._files = files

    @cached_property
    def topic_id(self) -> str | None:
        """The topic id in `partition.metadata`."""
        data = self._read(PARTITION_METADATA, "partition-metadata")
        try:
            return None if data is None else parse_partition_metadata(data)
        except SideFileError:
            return None

    @cached_property
    def log_start_offset(self) -> int | None:
        """The log start offset, of the checkpoint beside the log or of its leader epochs."""
        start = self._checkpoints.offset(self._partition, LOG_START_OFFSETS)
        data = self._read(LEADER_EPOCHS, "leader-epoch-checkpoint")
        try:
            epochs = [] if data is None else parse_leader_epochs(data)
        except SideFileError:
            epochs = []
        starts = [offset for _, offset in epochs[:1]]
        return max([*starts, *([] if start is None else [start])], default=None)

    @cached_property
    def first_dirty_offset(self) -> int | None:
        """Up to where the cleaner has come."""
        return self._checkpoints.offset(self._partition, CLEANER_OFFSETS)

    def _read(self, name: bytes, kind: FileKind) -> bytes | None:
        """Returns the content of a small file; None if there is none, or it cannot be read."""
        if name not in self._partition.names:
            return None
        try:
            return read_side_file(FileEntry(self._partition.directory, name, kind), self._files)
        except (OSError, SideFileError):
            return None


def list_logs(request: Request) -> dict[str, GrowingLog]:
    """Lists the partitions that have segments, by the path of their directory.

    Raises:
        SparkError: a given path cannot be listed, or is a file.
    """
    plan = request.plan()
    inventory = plan.inventory
    given = {path for path, _ in inventory.sources}
    for unreadable in inventory.unreadable:
        # An empty directory is valid: its logs are still to come.
        if unreadable.path in given and not _is_directory(inventory.files, unreadable.path):
            raise SparkError(f"{os.fsdecode(unreadable.path)}: {unreadable.reason}")
    checkpoints = Checkpoints(inventory.files)
    logs = {}
    for partition in plan.partitions:
        if not partition.is_whole:
            directory = os.fsdecode(partition.directory)
            raise SparkError(
                f"a stream follows directories, to which segments are added, and a file of"
                f" {directory} was given: give the directory"
            )
        segments = tuple(
            SegmentFile(
                file.base_offset,
                inventory.files.place(file.path, file.size),
                inventory.display(file.path),
                file.size,
            )
            for file in partition.segments
            if file.base_offset is not None
        )
        if partition.state == "live" and segments:
            name = os.fsencode(partition.directory).decode("utf-8", "backslashreplace")
            logs[name] = GrowingLog(
                name,
                partition.topic,
                partition.partition,
                segments,
                Beside(partition, checkpoints, inventory.files),
                any(fnmatchcase(partition.topic or "", p) for p in request.compacted_topics),
            )
    return logs


def _is_directory(files: Files, path: bytes) -> bool:
    try:
        return files.stat(path).is_directory
    except OSError:
        return False


def backlog(
    logs: Mapping[str, GrowingLog],
    reached: Mapping[str, Reached],
    waits: Mapping[str, str],
    lost_since: int = 0,
) -> dict[str, object]:
    """Returns what is left to read, as shown by ``query.lastProgress``: the largest first.

    `lost_since` counts offsets that were lost since they were planned.
    """
    unread = {name: log.unread(reached.get(name)) for name, log in logs.items()}
    behind = sorted((n for n in unread if unread[n] or n in waits), key=lambda n: -unread[n])
    behind.sort(key=lambda name: name not in waits)
    shown = {
        name: {"unread_bytes": unread[name]} | ({"waits": waits[name]} if name in waits else {})
        for name in behind[:MAX_SHOWN]
    }
    return {
        "unread_bytes": sum(unread.values()),
        "partitions_behind": len(behind),
        "partitions_waiting": len(waits),
        "passed_offsets": lost_since + sum(one.passed_offsets for one in reached.values()),
        "behind": shown,
    }


MAX_SHOWN = 20
"""Partitions that the progress of a query names."""
