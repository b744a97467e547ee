"""Which offsets of a partition are read, and which transactions are left out.

Whatever needs a look at a whole partition is found once, while the read is planned: each task is
told, so that rows do not depend on how a log is cut.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import SparkError
from ottla.logs.checkpoints import Checkpoints
from ottla.logs.reading import log_start_offset_of
from ottla.logs.segment import partition_transactions, segment_table
from ottla.spark.source.offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import FileEntry, Partition
    from ottla.spark.source.offsets import Choice
    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place

Transaction = tuple[int, int, int]
"""Producer id, first offset, and offset of the marker."""

PROBE_BYTES = 64 << 10
"""Size of the rows in which a timestamp is looked for."""


MAX_TRANSACTIONS = 256
"""Up to that many, every task knows all aborted transactions of a partition, so that segments may
hold offsets that their names do not say."""


class Span(NamedTuple):
    """What is read of a partition. Bounds are inclusive."""

    min_offset: int | None = None
    max_offset: int | None = None
    aborted: tuple[Transaction, ...] = ()
    """Transactions whose records are left out, in the order of their markers."""

    is_part: bool = False
    """Whether there are more transactions, of other segments."""

    def within(self, first: int | None, last: int | None) -> Span:
        """Returns what a segment of these offsets needs to know."""
        if len(self.aborted) <= MAX_TRANSACTIONS:
            return self
        aborted = tuple(
            one
            for one in self.aborted
            if (last is None or one[1] <= last) and (first is None or one[2] >= first)
        )
        return self._replace(aborted=aborted, is_part=True)


@dataclass(frozen=True, slots=True)
class Spans:
    """What is read of each partition, by its directory."""

    by_directory: Mapping[bytes, Span]

    def of(self, partition: Partition | None) -> Span:
        """Returns what is read of a partition."""
        return self.by_directory.get(partition.directory, Span()) if partition else Span()


def transactions_of(
    segments: Iterable[tuple[Place, int | None]],
) -> tuple[tuple[Transaction, ...], int | None]:
    """Returns the aborted transactions of segments, and the last stable offset if one is open.

    Raises:
        OSError: a file cannot be read.
    """
    aborted, first_open = partition_transactions(list(segments))
    return tuple(aborted), None if first_open is None else first_open[0]


def plan_spans(request: Request, plan: Plan) -> Spans:
    """Returns what is read of each partition.

    With `read_committed`, all bytes of the partitions are read once, by all cores of this machine.

    Raises:
        SparkError: the options name other partitions than there are, offsets that are gone, or a
            time later than all records.
        OSError: a file cannot be read.
    """
    partitions = plan.partitions
    _check_names(request.starting, partitions)
    _check_names(request.ending, partitions)
    files = plan.inventory.files
    # All partitions of a log directory are in one checkpoint.
    checkpoints = Checkpoints(files)

    def span_of(partition: Partition) -> Span:
        return _span_of(request, partition, files, checkpoints)

    is_committed = request.isolation == "read_committed"
    if not (is_committed or request.starting.needs_reading or request.ending.needs_reading):
        return Spans({p.directory: span_of(p) for p in partitions})
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = list(threads.map(span_of, partitions))
    return Spans({p.directory: span for p, span in zip(partitions, found, strict=True)})


def _check_names(choice: Choice, partitions: Iterable[Partition]) -> None:
    named = {*choice.offsets, *choice.timestamps}
    if not named:
        return
    there = {(p.topic, p.partition) for p in partitions}
    for topic, number in sorted(named):
        if (topic, number) not in there:
            raise SparkError(f"{choice.option} names {topic}-{number}, which is not here")
    for one in sorted(there - named, key=str):
        raise SparkError(f"{choice.option} does not name {one[0]}-{one[1]}: name all partitions")


def _span_of(
    request: Request, partition: Partition, files: Files, checkpoints: Checkpoints
) -> Span:
    segments = [file for file in partition.segments if file.fault is None]
    is_of_records = request.table == "records"
    start = log_start_offset_of(partition, checkpoints) if is_of_records else 0
    bases = [file.base_offset for file in segments if file.base_offset is not None]
    first = max(start, bases[0]) if bases else start
    low = _start_of(request, partition, segments, first, files)
    end = _end_of(request, partition, segments, files)
    aborted: tuple[Transaction, ...] = ()
    if request.isolation == "read_committed":
        places = [(files.place(file.path, file.size), file.base_offset) for file in segments]
        aborted, stable = transactions_of(places)
        if stable is not None:
            end = stable if end is None else min(end, stable)
    return Span(max(low, start) or None, None if end is None else end - 1, aborted)


def _start_of(
    request: Request, partition: Partition, segments: list[FileEntry], first: int, files: Files
) -> int:
    """Returns the first offset to read; 0 for all there are."""
    choice = request.starting
    name = (partition.topic or "", partition.partition or 0)
    timestamp = choice.timestamps.get(name, choice.timestamp)
    if timestamp is not None:
        found = offset_at(partition, segments, timestamp, files)
        if found is None and not choice.is_latest_if_none:
            raise SparkError(
                f"{choice.option}: no record of {name[0]}-{name[1]} is at {timestamp} or later;"
                " starting_offsets_by_timestamp_strategy=latest reads none"
            )
        return 2**63 - 1 if found is None else found
    offset = choice.offsets.get(name, LATEST if choice.end == "latest" else EARLIEST)
    if offset == LATEST:
        raise SparkError(f"{choice.option} is latest for {name[0]}-{name[1]}: that is for streams")
    if offset == EARLIEST:
        return 0
    if offset < first and request.fail_on_data_loss:
        raise SparkError(
            f"{choice.option}: offsets {offset} to {first - 1} of {name[0]}-{name[1]} are gone; the"
            " option fail_on_data_loss=false begins at the first offset that is there"
        )
    return offset


def _end_of(
    request: Request, partition: Partition, segments: list[FileEntry], files: Files
) -> int | None:
    """Returns the offset to end before; None for the end of the log."""
    choice = request.ending
    name = (partition.topic or "", partition.partition or 0)
    timestamp = choice.timestamps.get(name, choice.timestamp)
    if timestamp is not None:
        return offset_at(partition, segments, timestamp, files)
    offset = choice.offsets.get(name, LATEST)
    return None if offset == LATEST else offset


def offset_at(
    partition: Partition, segments: Iterable[FileEntry], timestamp: int, files: Files
) -> int | None:
    """Returns the offset of the first record at or after a time, None if there is none.

    Batches whose largest timestamp is earlier are not inflated.

    Raises:
        OSError: a file cannot be read.
    """
    import pyarrow as pa

    for file in segments:
        rows = segment_table(
            files.place(file.path, file.size),
            "records",
            columns=["offset"],
            min_timestamp=timestamp,
            batch_bytes=PROBE_BYTES,
            without_controls=True,
            place_in_log=place_in_log(partition, file),
        )
        for batch in rows:
            return int(pa.record_batch(batch).column(0)[0].as_py())
    return None


def place_in_log(partition: Partition, file: FileEntry) -> tuple[int | None, int | None, bool]:
    """Returns where a segment is: its base offset, the next one's, and how the broker stopped."""
    return file.base_offset, partition.next_base_offset(file), partition.stopped_cleanly
