"""Growing logs for `spark.readStream.format("ottla")`.

The position in a partition is the base offset of a segment, the position in it at which a batch
ends, and the next offset. So a checkpoint grows with the number of partitions, not of segments.
Earlier segments are complete, since a broker writes to the last one only. Half a batch is left for
the next trigger.

Records that retention or a restart of the broker deleted before they were read are reported, never
skipped silently.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.audit.result.columns import SEGMENT_TABLES
from ottla.errors import SparkError
from ottla.logs.segment import find_offset, first_batch, whole_batches
from ottla.spark.source.filters import Bounds
from ottla.spark.source.options import parse_options
from ottla.spark.source.pieces import TASK_BYTES, Piece, PiecesTask, cannot_read, group_pieces
from ottla.spark.work.worker import by_value

__all__ = ["LogStreamReader", "ReadMaxBytes", "advance_all", "list_logs", "make_stream_reader"]

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark before 4.2 does not support limits.
    ReadMaxBytes = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark before 4.2 implements this trigger itself."""


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place


class ReadPosition(NamedTuple):
    """How far a partition has been read."""

    segment: int
    """Base offset of the segment."""
    position: int
    """Position in the segment."""
    next_offset: int
    """All records before this offset have been read."""


class SegmentFile(NamedTuple):
    """A segment as listed."""

    base_offset: int
    place: Place
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class GrowingLog:
    """The live segments of a partition, at least one, in the order of offsets."""

    name: str
    topic: str | None
    partition: int | None
    segments: tuple[SegmentFile, ...]

    @property
    def start(self) -> ReadPosition:
        """The position before the first record."""
        first = self.segments[0].base_offset
        return ReadPosition(first, 0, first)

    def index_of(self, base_offset: int) -> int | None:
        """Returns the index of the segment with a base offset."""
        bases = [segment.base_offset for segment in self.segments]
        return bases.index(base_offset) if base_offset in bases else None

    def up_to(self, end: ReadPosition) -> GrowingLog | None:
        """Returns this log as it was when `end` was its end."""
        segments = tuple(
            segment._replace(size=end.position) if segment.base_offset == end.segment else segment
            for segment in self.segments
            if segment.base_offset <= end.segment
        )
        return replace(self, segments=segments) if segments else None

    def unread(self, known: ReadPosition) -> int:
        """Returns the number of bytes after a position."""
        return sum(
            segment.size - (known.position if segment.base_offset == known.segment else 0)
            for segment in self.segments
            if segment.base_offset >= known.segment
        )


def list_logs(request: Request) -> dict[str, GrowingLog]:
    """Lists the partitions that have segments, by the path of their directory.

    Raises:
        SparkError: a given path cannot be listed.
    """
    plan = request.plan()
    inventory = plan.inventory
    given = {path for path, _ in inventory.sources}
    for unreadable in inventory.unreadable:
        # An empty directory is valid: its logs are still to come.
        if unreadable.path in given and not _is_directory(inventory.files, unreadable.path):
            raise SparkError(f"{os.fsdecode(unreadable.path)}: {unreadable.reason}")
    logs = {}
    for partition in plan.partitions:
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
            logs[name] = GrowingLog(name, partition.topic, partition.partition, segments)
    return logs


def _is_directory(files: Files, path: bytes) -> bool:
    try:
        return files.stat(path).is_directory
    except OSError:
        return False


def advance(log: GrowingLog, known: ReadPosition | None, budget: int | None = None) -> ReadPosition:
    """Returns how far a log can be read now; within a budget of bytes, but at least one batch.

    Raises:
        OSError: a segment cannot be read.
    """
    last = len(log.segments) - 1
    index = None if known is None else log.index_of(known.segment)
    if known is None or index is None or log.segments[index].size < known.position:
        # Never read, or deleted: `_pieces` decides what that means.
        reached = log.start if budget is not None and known is None else _at(log, last, known)
    elif budget is None and index < last:
        reached = _at(log, last, known)
    else:
        reached = known
    index = log.index_of(reached.segment)
    while index is not None:
        segment = log.segments[index]
        left = segment.size - reached.position
        if index < last and (budget is None or left <= budget):
            index += 1
            budget = None if budget is None else budget - left
            reached = _at(log, index, reached)
            if budget is not None and budget <= 0:
                return reached
            continue
        begin, end = whole_batches(segment.place, reached.position, segment.size, budget)
        if end > reached.position:
            return _after_batch(segment, reached, begin, end, is_closed=index < last)
        if index == last:
            return reached
        # Damage, or more than the budget: a closed segment is read to its end.
        return _at(log, index + 1, reached)
    return reached


def _at(log: GrowingLog, index: int, known: ReadPosition | None) -> ReadPosition:
    """Returns the position at the beginning of a segment."""
    base = log.segments[index].base_offset
    return ReadPosition(base, 0, max(base, known.next_offset) if known else base)


def _after_batch(
    segment: SegmentFile, known: ReadPosition, begin: int, end: int, *, is_closed: bool
) -> ReadPosition:
    """Returns the position after a batch if its checksum shows that it is completely written."""
    batch = first_batch(segment.place, begin)
    if batch is not None and batch.position == begin and batch.is_valid:
        return ReadPosition(segment.base_offset, end, max(known.next_offset, batch.last_offset + 1))
    # In a closed segment it is damaged. In the last one it may still be written, and is left.
    return ReadPosition(segment.base_offset, end if is_closed else begin, known.next_offset)


def advance_all(
    logs: Mapping[str, GrowingLog], known: Mapping[str, ReadPosition], budget: int | None = None
) -> dict[str, ReadPosition]:
    """Returns how far all logs can be read. A budget is divided evenly, most unread bytes first.

    Positions in logs that are gone do not change.
    """
    reached = dict(known)
    names = list(logs)
    if budget is not None:
        names.sort(key=lambda name: -logs[name].unread(known.get(name, logs[name].start)))
    for number, name in enumerate(names):
        log, before = logs[name], known.get(name)
        share = None
        if budget is not None:
            if budget <= 0:
                break
            share = max(1, budget // (len(names) - number))
        try:
            reached[name] = advance(log, before, share)
        except FileNotFoundError:
            # Deleted since it was listed: the next listing shows what is left.
            continue
        except OSError as error:
            raise cannot_read(log.name, error) from error
        if budget is not None:
            budget -= log.unread(before or log.start) - log.unread(reached[name])
    return reached


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows logs. Its only state between calls is that of the checkpoint."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._last: dict[str, ReadPosition] = {}
        self._target: dict[str, ReadPosition] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the position before all logs."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Returns the limit set by the option `max_bytes_per_trigger`."""
        size = self._request.max_bytes_per_trigger
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Makes the current end of all logs the end of the query."""
        self._target = advance_all(list_logs(self._request), {})

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Returns how far the logs can be read now.

        Spark before 4.2 does not pass its position: then it is that of the last call.
        """
        logs = list_logs(self._request)
        if self._target is not None:
            logs = {
                name: capped
                for name, end in self._target.items()
                if name in logs and (capped := logs[name].up_to(end)) is not None
            }
        known = self._last if start is None else from_json(start)
        budget = limit.max_bytes if ReadMaxBytes and isinstance(limit, ReadMaxBytes) else None
        reached = advance_all(logs, known, budget)
        self._last = reached
        return to_json(reached)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns what to read between two results of `latestOffset`.

        Raises:
            SparkError: unread bytes are gone, and `fail_on_data_loss` is true.
        """
        logs = list_logs(self._request)
        before, after = from_json(start), from_json(end)
        pieces = [
            piece
            for name, reached in after.items()
            if reached != before.get(name)
            for piece in self._pieces(name, logs.get(name), before.get(name), reached)
        ]
        size = self._request.partition_bytes or TASK_BYTES
        return [InputPartition(PiecesTask(group, Bounds())) for group in group_pieces(pieces, size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of one task."""
        rows: Iterator[pa.RecordBatch] = partition.value.rows(self._request)
        return rows

    def __reduce__(self) -> tuple[object, ...]:
        return by_value("ottla.spark.source.stream:LogStreamReader", (self._request,))

    def _pieces(
        self, name: str, log: GrowingLog | None, start: ReadPosition | None, end: ReadPosition
    ) -> Iterator[Piece]:
        if log is None:
            self._lost(f"{name}: the partition was deleted before it was read completely")
            return
        begin = self._begin(log, start) if start is not None else log.start
        if begin is None:
            return
        if log.index_of(end.segment) is None and log.segments[0].base_offset > end.segment:
            self._lost(f"{name}: segments up to offset {log.segments[0].base_offset} were deleted")
            return
        for segment in log.segments:
            if not begin.segment <= segment.base_offset <= end.segment:
                continue
            is_end = segment.base_offset == end.segment
            from_position = begin.position if segment.base_offset == begin.segment else 0
            # The size of a closed segment does not change.
            to_position = end.position if is_end else segment.size
            if is_end and segment.size < end.position:
                self._lost(
                    f"{name}: the segment of offset {segment.base_offset} has {segment.size}"
                    f" bytes, but had {end.position}"
                )
            if from_position < to_position:
                yield Piece(
                    segment.place,
                    segment.file,
                    log.topic,
                    log.partition,
                    from_position,
                    to_position,
                    to_position - from_position,
                )

    def _begin(self, log: GrowingLog, start: ReadPosition) -> ReadPosition | None:
        """Returns the position to continue at, None if nothing follows what was read."""
        index = log.index_of(start.segment)
        if index is not None and log.segments[index].size >= start.position:
            following = first_batch(log.segments[index].place, start.position)
            if following is None or following.base_offset >= start.next_offset:
                return start
            self._lost(
                f"{log.name}: the segment of offset {start.segment} was rewritten: position"
                f" {start.position} has offset {following.base_offset}, but records up to"
                f" {start.next_offset - 1} were read"
            )
        elif index is not None:
            self._lost(
                f"{log.name}: the segment of offset {start.segment} was cut: {start.position}"
                f" bytes of it were read, but it has {log.segments[index].size}"
            )
        elif log.segments[0].base_offset > start.next_offset:
            self._lost(
                f"{log.name}: offsets {start.next_offset} to {log.segments[0].base_offset - 1}"
                " are gone, for example by retention, and were not read"
            )
        return _position_of(log, start.next_offset)

    def _lost(self, what: str) -> None:
        if self._request.fail_on_data_loss:
            raise SparkError(
                f"{what}; the option fail_on_data_loss=false continues at the next available offset"
            )


def _position_of(log: GrowingLog, offset: int) -> ReadPosition | None:
    """Returns the position of the first batch that ends at or after an offset."""
    before = [s for s in log.segments if s.base_offset <= offset]
    for segment in (*before[-1:], *log.segments[len(before) :]):
        position = find_offset(segment.place, offset)
        if position is not None:
            return ReadPosition(segment.base_offset, position, offset)
    return None


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> LogStreamReader:
    """Returns a reader that follows logs.

    Raises:
        SparkError: see `parse_options`; or the table needs whole logs.
    """
    request = parse_options(options, schema)
    if request.table not in SEGMENT_TABLES:
        raise SparkError(
            f"table {request.table} needs whole logs: streams have {' or '.join(SEGMENT_TABLES)}"
        )
    if request.max_bytes_per_trigger is not None and ReadMaxBytes is None:
        raise SparkError("max_bytes_per_trigger needs PySpark 4.2 or newer")
    return LogStreamReader(request)


def to_json(reached: Mapping[str, ReadPosition]) -> dict[str, Any]:
    """Returns the content of a checkpoint."""
    return {name: end._asdict() for name, end in reached.items()}


def from_json(offset: Mapping[str, Any]) -> dict[str, ReadPosition]:
    """Returns the positions in a checkpoint."""
    return {name: ReadPosition(**end) for name, end in offset.items()}
