"""Growing logs for `spark.readStream.format("ottla")`.

How far a partition was read is the base offset of the segment where reading stands, the position in
it, which is where a batch ends, and the offset that follows. So what a checkpoint holds grows with
partitions and not with segments. Segments before that one are done with: a broker writes to the
last one alone. A batch that is half written is left for the next trigger.

What retention or a broker's restart took before it was read is told, never passed over in silence.
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
except ImportError:  # PySpark before 4.2 knows no limits.
    ReadMaxBytes = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark before 4.2 takes care of that trigger by itself."""


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructType

    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place


class ReadPosition(NamedTuple):
    """How far a partition was read."""

    segment: int
    """Base offset of the segment."""
    position: int
    """Bytes of it."""
    next_offset: int
    """No record before this one is to come."""


class SegmentFile(NamedTuple):
    """A segment as it was listed."""

    base_offset: int
    place: Place
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class GrowingLog:
    """The live segments of a partition, in the order of their offsets; there is at least one."""

    name: str
    topic: str | None
    partition: int | None
    segments: tuple[SegmentFile, ...]

    @property
    def start(self) -> ReadPosition:
        """Before everything."""
        first = self.segments[0].base_offset
        return ReadPosition(first, 0, first)

    def index_of(self, base_offset: int) -> int | None:
        """Index of the segment with a base offset."""
        bases = [segment.base_offset for segment in self.segments]
        return bases.index(base_offset) if base_offset in bases else None

    def up_to(self, end: ReadPosition) -> GrowingLog | None:
        """As if nothing had been written since."""
        segments = tuple(
            segment._replace(size=end.position) if segment.base_offset == end.segment else segment
            for segment in self.segments
            if segment.base_offset <= end.segment
        )
        return replace(self, segments=segments) if segments else None

    def unread(self, known: ReadPosition) -> int:
        """Bytes behind what was read."""
        return sum(
            segment.size - (known.position if segment.base_offset == known.segment else 0)
            for segment in self.segments
            if segment.base_offset >= known.segment
        )


def list_logs(request: Request) -> dict[str, GrowingLog]:
    """The partitions that have a segment, by the path of their directory.

    Raises:
        SparkError: a path that was given cannot be listed.
    """
    plan = request.plan()
    inventory = plan.inventory
    given = {path for path, _ in inventory.sources}
    for unreadable in inventory.unreadable:
        # An empty directory is one whose logs are still to come.
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
    """How far a log can be read now; with a budget of bytes at least one batch, if there is one.

    Raises:
        OSError: a segment cannot be read.
    """
    last = len(log.segments) - 1
    index = None if known is None else log.index_of(known.segment)
    if known is None or index is None or log.segments[index].size < known.position:
        # Never read, or gone: what that means is decided where the bytes are planned.
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
            return _behind(segment, reached, begin, end, is_closed=index < last)
        if index == last:
            return reached
        # Damage, or more than the budget: a segment that is closed is read to its end.
        return _at(log, index + 1, reached)
    return reached


def _at(log: GrowingLog, index: int, known: ReadPosition | None) -> ReadPosition:
    """The beginning of a segment."""
    base = log.segments[index].base_offset
    return ReadPosition(base, 0, max(base, known.next_offset) if known else base)


def _behind(
    segment: SegmentFile, known: ReadPosition, begin: int, end: int, *, is_closed: bool
) -> ReadPosition:
    """Behind the batch that begins and ends there, if its checksum says that it is all written."""
    batch = first_batch(segment.place, begin)
    if batch is not None and batch.position == begin and batch.is_valid:
        return ReadPosition(segment.base_offset, end, max(known.next_offset, batch.last_offset + 1))
    # Damaged for good in a closed segment. Elsewhere it may yet be written; those before it are.
    return ReadPosition(segment.base_offset, end if is_closed else begin, known.next_offset)


def advance_all(
    logs: Mapping[str, GrowingLog], known: Mapping[str, ReadPosition], budget: int | None = None
) -> dict[str, ReadPosition]:
    """How far all logs can be read; a budget is shared out evenly, the longest wait first.

    Logs that are gone stay where they were.
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
            # Gone since it was listed: the next listing tells what is left.
            continue
        except OSError as error:
            raise cannot_read(log.name, error) from error
        if budget is not None:
            budget -= log.unread(before or log.start) - log.unread(reached[name])
    return reached


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows logs; between calls it remembers nothing that a checkpoint does not tell."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._last: dict[str, ReadPosition] = {}
        self._target: dict[str, ReadPosition] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before all logs."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the option `max_bytes_per_trigger` says."""
        size = self._request.max_bytes_per_trigger
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Keeps what is there now as the end of the query."""
        self._target = advance_all(list_logs(self._request), {})

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """How far can be read now.

        Spark before 4.2 does not say where it stands: there the last answer is what is known.
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
        """What to read between two answers of `latestOffset`.

        Raises:
            SparkError: bytes that were not read yet are gone, unless that is to be overlooked.
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

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Record batches of one task."""
        rows: Iterator[Any] = partition.value.rows(self._request)
        return rows

    def __reduce__(self) -> tuple[Any, ...]:
        return by_value("ottla.spark.source.stream:LogStreamReader", (self._request,))

    def _pieces(
        self, name: str, log: GrowingLog | None, start: ReadPosition | None, end: ReadPosition
    ) -> Iterator[Piece]:
        if log is None:
            self._lost(f"{name}: the partition is gone, and was not read to its end")
            return
        begin = self._begin(log, start) if start is not None else log.start
        if begin is None:
            return
        if log.index_of(end.segment) is None and log.segments[0].base_offset > end.segment:
            self._lost(f"{name}: segments up to offset {log.segments[0].base_offset} are gone")
            return
        for segment in log.segments:
            if not begin.segment <= segment.base_offset <= end.segment:
                continue
            is_end = segment.base_offset == end.segment
            from_position = begin.position if segment.base_offset == begin.segment else 0
            # A closed segment is as long as it was listed.
            to_position = end.position if is_end else segment.size
            if is_end and segment.size < end.position:
                self._lost(
                    f"{name}: the segment of offset {segment.base_offset} has"
                    f" {segment.size} bytes, and had {end.position}"
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
        """Where to go on in what there is now, None where nothing follows what was read."""
        index = log.index_of(start.segment)
        if index is not None and log.segments[index].size >= start.position:
            following = first_batch(log.segments[index].place, start.position)
            if following is None or following.base_offset >= start.next_offset:
                return start
            self._lost(
                f"{log.name}: the segment of offset {start.segment} was rewritten: at byte"
                f" {start.position} it has offset {following.base_offset}, and records before"
                f" {start.next_offset} were read"
            )
        elif index is not None:
            self._lost(
                f"{log.name}: the segment of offset {start.segment} was cut: {start.position}"
                f" bytes of it were read, and it has {log.segments[index].size}"
            )
        elif log.segments[0].base_offset > start.next_offset:
            self._lost(
                f"{log.name}: offsets {start.next_offset} to {log.segments[0].base_offset - 1}"
                " are gone, as by retention, and were not read"
            )
        return _of_offset(log, start.next_offset)

    def _lost(self, what: str) -> None:
        if self._request.fail_on_data_loss:
            raise SparkError(
                f"{what}; with the option fail_on_data_loss=false reading goes on at the next"
                " offset there is"
            )


def _of_offset(log: GrowingLog, offset: int) -> ReadPosition | None:
    """The first batch that ends at or behind an offset."""
    before = [s for s in log.segments if s.base_offset <= offset]
    for segment in (*before[-1:], *log.segments[len(before) :]):
        position = find_offset(segment.place, offset)
        if position is not None:
            return ReadPosition(segment.base_offset, position, offset)
    return None


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> LogStreamReader:
    """The reader that follows logs.

    Raises:
        SparkError: as of `parse_options`, or a table is asked for that does not grow by rows.
    """
    request = parse_options(options, schema)
    if request.table not in SEGMENT_TABLES:
        raise SparkError(
            f"table {request.table} takes whole logs: a stream has {' or '.join(SEGMENT_TABLES)}"
        )
    if request.max_bytes_per_trigger is not None and ReadMaxBytes is None:
        raise SparkError("max_bytes_per_trigger needs PySpark 4.2 or newer")
    return LogStreamReader(request)


def to_json(reached: Mapping[str, ReadPosition]) -> dict[str, Any]:
    """What a checkpoint holds."""
    return {name: end._asdict() for name, end in reached.items()}


def from_json(offset: Mapping[str, Any]) -> dict[str, ReadPosition]:
    """What a checkpoint tells."""
    return {name: ReadPosition(**end) for name, end in offset.items()}
