"""The logs of a plan and the files to scan, each made when it is asked for.

A broker has up to hundreds of thousands of partitions, most of which are one log of few files. Such
a partition tells its log and its tasks: as objects they would take most of the time of planning,
also that of the interpreter, which looks for cycles among all of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.logs.inventory import Partition
from ottla.logs.lazy import LazySequence
from ottla.logs.names import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from ottla.logs.inventory import FileEntry
    from ottla.logs.names import FileKind

ENDLESS = 2**63 - 1
"""A position after the end of every file."""

INDEXES = ("offset-index", "time-index", "transaction-index")

FEW_FILES = 8
"""A log of more is made once: each of its tasks asks for it."""


class ScanTask(NamedTuple):
    """A file to be scanned from start to end, in one pass or in ranges."""

    file: FileEntry
    base_offset: int | None
    next_base_offset: int | None
    is_active: bool
    log: int
    """Index into `Plan.logs`."""
    file_index: int
    """Index into the files of that log."""
    split_bytes: int | None = None
    """Size of each range; `None` for one pass."""

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """Start and stop position of each range; the last one extends to the end of the file."""
        if self.split_bytes is None or self.file.size <= self.split_bytes:
            return [(0, ENDLESS)]
        starts = range(0, self.file.size, self.split_bytes)
        return list(pairwise([*starts, ENDLESS]))


class Log(NamedTuple):
    """Consecutive files that are judged together: sequences, transactions, gaps.

    Usually all live segments of a partition, fewer if only some were given. Files outside the live
    log, such as `.swap` segments and snapshots, are judged one by one.
    """

    partition: Partition | None
    files: tuple[FileEntry, ...]
    is_whole: bool
    """Whether these are all live segments of a partition."""
    is_live: bool = False
    """Whether these are live segments, to which other files belong."""

    @property
    def orphans(self) -> tuple[int, ...]:
        """Base offsets of index files without a segment."""
        if not self.is_live or self.partition is None:
            return ()
        files = self.partition.files
        return tuple(_engine.orphaned_indexes([f.name for f in files if f.kind != "directory"]))

    @property
    def beside(self) -> Mapping[tuple[FileKind, int], FileEntry]:
        """Files to check against the segments, by kind and offset; only of a complete log."""
        is_whole = self.is_live and self.is_whole
        return _beside(self.partition) if is_whole and self.partition else {}

    @property
    def is_consumer_offsets(self) -> bool:
        """Whether it is of the group coordinator, whose sequences are all 0."""
        return self.partition is not None and self.partition.topic == CONSUMER_OFFSETS


class Logs(LazySequence[Log]):
    """The logs of a plan, in the order of the partitions, then those without a partition.

    Args:
        kept: the logs, those of a partition that is one log as that partition.
    """

    __slots__ = ("_kept", "partitions")

    def __init__(self, kept: Sequence[Log | Partition]) -> None:
        self._kept = kept
        self.partitions: Sequence[Partition | None] = [
            one if isinstance(one, Partition) else one.partition for one in kept
        ]
        """The partition of each log."""

    def __len__(self) -> int:
        return len(self._kept)

    def _item(self, number: int) -> Log:
        kept = self._kept[number]
        return _whole_log(kept) if isinstance(kept, Partition) else kept

    def made(self) -> Iterator[Log]:
        """Yields the logs that are kept as such."""
        return (one for one in self._kept if isinstance(one, Log))

    def whole_partitions(self) -> Iterator[tuple[int, Partition]]:
        """Yields the partitions whose live segments are one log, each with the index of that."""
        for index, kept in enumerate(self._kept):
            if isinstance(kept, Partition):
                yield index, kept
            elif kept.is_live and kept.is_whole and kept.partition is not None:
                yield index, kept.partition

    def chosen(self, indexes: Iterable[int]) -> Logs:
        """Returns some of the logs."""
        return Logs([self._kept[index] for index in indexes])


class Tasks(LazySequence[ScanTask]):
    """The files of logs to be scanned.

    Args:
        logs: the logs.
        places: the index of its log for each file, and its own in that log, and its size.
        split_bytes: size of the ranges of larger files; `None` for one pass.
    """

    __slots__ = ("_logs", "_places", "_split_bytes")

    def __init__(
        self,
        logs: Logs,
        places: Sequence[tuple[int, int, int]],
        split_bytes: int | None = None,
    ) -> None:
        self._logs = logs
        self._places = places
        self._split_bytes = split_bytes

    def __len__(self) -> int:
        return len(self._places)

    def _item(self, number: int) -> ScanTask:
        index, file_index, _ = self._places[number]
        return _task(self._logs[index], index, file_index, self._split_bytes)

    @property
    def byte_count(self) -> int:
        """Number of bytes to read."""
        return sum(size for _, _, size in self._places)

    def split(self, split_bytes: int | None) -> Tasks:
        """Returns the tasks with larger files split into ranges; `None` for no splitting."""
        return Tasks(self._logs, self._places, split_bytes)

    def split_logs(self) -> set[int]:
        """Returns the indexes of the logs of which a file is split."""
        most = self._split_bytes
        return set() if most is None else {log for log, _, size in self._places if size > most}

    def outside(self, logs: Container[int]) -> Tasks:
        """Returns the tasks of other logs than those of some indexes."""
        places = [place for place in self._places if place[0] not in logs]
        return Tasks(self._logs, places, self._split_bytes)

    def chosen(self, numbers: Iterable[int], indexes: Sequence[int]) -> Tasks:
        """Returns some of the tasks, of the logs of some indexes as `Logs.chosen` returns them."""
        new = {old: number for number, old in enumerate(indexes)}
        chosen = (self._places[number] for number in numbers)
        places = [(new[log], file, size) for log, file, size in chosen]
        return Tasks(self._logs.chosen(indexes), places, self._split_bytes)


def tasks_of(log: Log, index: int) -> Iterator[ScanTask]:
    """Yields the files of a log to be scanned, each in one pass."""
    for file_index, file in enumerate(log.files):
        if file.fault is None:
            yield _task(log, index, file_index, None)


def _whole_log(partition: Partition) -> Log:
    return Log(partition, partition.segments, is_whole=True, is_live=True)


def _beside(partition: Partition) -> dict[tuple[FileKind, int], FileEntry]:
    """Files derived from the segments of a partition, if it was given as a whole."""
    if not partition.is_whole:
        return {}
    return {
        (file.kind, file.base_offset): file
        for file in partition.files
        if file.kind in (*INDEXES, "producer-snapshot")
        and file.state == "live"
        and file.base_offset is not None
        and file.fault is None
    }


def _task(log: Log, log_index: int, file_index: int, split_bytes: int | None) -> ScanTask:
    file = log.files[file_index]
    if split_bytes is not None and file.size <= split_bytes:
        split_bytes = None
    is_live = file.kind == "segment" and file.state == "live"
    next_base_offset = log.partition.next_base_offset(file) if log.partition and is_live else None
    base_offset = file.base_offset if file.kind == "segment" else None
    is_active = is_live and next_base_offset is None
    # In the order of the fields: by name it takes twice as long.
    return ScanTask(
        file, base_offset, next_base_offset, is_active, log_index, file_index, split_bytes
    )
