"""Growing logs for `spark.readStream.format("ottla")`.

How far each partition was read, and what a trigger planned, is in the checkpoint: see `checkpoint`.
Where reading goes on is decided by `positions`, what may be passed by `continuity`. Half a batch is
left for the next trigger. Records that are gone before they were read are reported, never passed
over silently.
"""

from __future__ import annotations

import logging
import os
import warnings
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.audit.result.columns import SEGMENT_TABLES
from ottla.errors import DataLossWarning, SparkError
from ottla.logs.segment import first_batch, follow_batches, segment_table
from ottla.spark.source.bounds import Bounds
from ottla.spark.source.checkpoint import from_json, to_json
from ottla.spark.source.continuity import CONTINUE, Rules, Run
from ottla.spark.source.growing import MAX_SHOWN, backlog, list_logs
from ottla.spark.source.options import parse_options
from ottla.spark.source.origins import check_ending, origin_of
from ottla.spark.source.pieces import OPENING_BYTES, TASK_BYTES, Piece, cannot_read, piece_rows
from ottla.spark.source.positions import Plan, Policy, plan, replay
from ottla.spark.source.spans import Span
from ottla.spark.source.stable import Transactions
from ottla.spark.work.packing import group_items
from ottla.spark.work.worker import by_value
from ottla.storage import AnyFiles, again, full_path

__all__ = ["LogStreamReader", "ReadMaxBytes", "make_stream_reader"]

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

    from ottla.spark.source.checkpoint import Reached
    from ottla.spark.source.growing import GrowingLog
    from ottla.spark.source.options import Request
    from ottla.spark.source.positions import Origin

SKIP = "the option on_damage=skip goes on behind it"

logger = logging.getLogger("ottla.spark")


class PlannedPiece(NamedTuple):
    """A piece of a segment, and what proves that it is still what was planned."""

    piece: Piece
    runs: tuple[Run, ...]
    min_offset: int
    """Rows before this offset were read already."""
    expected: int | None
    """The offset that its first batch is to have; None if that is not known."""


@dataclass(frozen=True, slots=True)
class StreamTask:
    """Pieces of segments that a task reads."""

    pieces: tuple[PlannedPiece, ...]

    def rows(self, request: Request) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of all pieces.

        Raises:
            SparkError: a file cannot be read, is not what was planned, or is damaged.
        """
        files = AnyFiles(request.storage_options)
        for sent in self.pieces:
            # Spark sends pieces by itself, without secrets of stores.
            piece = sent.piece._replace(place=again(sent.piece.place, files))
            try:
                check_piece(piece, sent.runs, request)
                bounds = Bounds(min_offset=sent.min_offset)
                # The order of segments was followed when the batch was planned.
                yield from piece_rows(piece, request, bounds, sent.expected, is_followed=True)
            except OSError as error:
                if request.fail_on_data_loss:
                    raise cannot_read(piece.file, error) from error
                _passed_over(f"{piece.file}: {error.strerror or error}")


def check_piece(piece: Piece, runs: tuple[Run, ...], request: Request) -> None:
    """Checks that a piece is what was planned, and that its checksums are right.

    Raises:
        SparkError: it is not, and the options say that this is an error.
        OSError: the file cannot be read.
    """
    # An object is replaced as a whole, and its own size is part of every request.
    for run in runs if piece.place.is_local else ():
        found = follow_batches(piece.place, run.start, run.stop, has_holes=True)
        if (found.end, found.digest) != (run.stop, run.digest):
            what = (
                f"{piece.file}: this is not what was planned: the batches from position"
                f" {run.start} to {run.stop} have changed since"
            )
            if request.fail_on_data_loss:
                raise SparkError(f"{what}; start the query again, or {CONTINUE}")
            _passed_over(what)
    if request.on_damage != "fail":
        return
    end = piece.start
    for position, size, first, last, is_valid in _batches(piece):
        if position != end:
            break
        if not is_valid:
            raise SparkError(
                f"{piece.file}: damage at position {position}: the batch of offsets {first} to"
                f" {last} has a wrong checksum; {SKIP}"
            )
        end = position + size
    if end == piece.stop:
        return
    behind = first_batch(piece.place, end)
    offset = "" if behind is None else f", up to offset {behind.base_offset}"
    raise SparkError(
        f"{piece.file}: damage at position {end}{offset}: no batch begins there; {SKIP}"
    )


def _batches(piece: Piece) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yields position, size, first and last offset of batches, and whether they are valid.

    Raises:
        OSError: the file cannot be read.
    """
    import pyarrow as pa

    columns = ["position", "size", "base_offset", "last_offset", "is_valid"]
    for rows in segment_table(
        piece.place, "batches", columns=columns, start=piece.start, stop=piece.stop
    ):
        yield from zip(*(c.to_pylist() for c in pa.record_batch(rows).columns), strict=True)


def _passed_over(what: str) -> None:
    logger.warning("passed over: %s", what)
    warnings.warn(what, DataLossWarning, stacklevel=2)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows logs. What it knows between calls is that of the checkpoint, or listed again."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._last: dict[str, Reached] = {}
        self._plans: dict[str, Plan] = {}
        self._logs: dict[str, GrowingLog] | None = None
        self._is_bounded = False
        self._waits: dict[str, str] = {}
        self._told: set[str] = set()
        # Offsets lost since they were planned: a checkpoint has them from the next plan on.
        self._lost_since: dict[str, int] = {}
        self._policy = _policy(request)
        self._is_checked = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the position before all logs."""
        return to_json({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Returns the limit set by the option `max_bytes_per_trigger`."""
        size = self._request.max_bytes_per_trigger
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Makes the current end of all logs, as they are listed now, the end of the query."""
        self._logs = list_logs(self._request)
        self._is_bounded = True

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Returns how far the logs can be read now.

        Spark before 4.2 does not pass its position: then it is that of the last call.

        Raises:
            SparkError: records are gone that were not read, or not what they were; or the start is
                no checkpoint of this source.
        """
        known = self._last if start is None else from_json(start)
        self._check_directories(known)
        if self._logs is None or not self._is_bounded:
            self._logs = list_logs(self._request)
        budget = limit.max_bytes if ReadMaxBytes and isinstance(limit, ReadMaxBytes) else None
        self._plans, waits = self._plan_all(self._logs, known, budget)
        self._tell(waits)
        for name, planned in self._plans.items():
            lost = planned.reached.passed_offsets + self._lost_since.pop(name, 0)
            planned.reached = replace(planned.reached, passed_offsets=lost)
        reached = dict(known)
        if self._plans:
            # Only what is planned now has a plan: a checkpoint grows with partitions alone.
            reached = {name: replace(one, planned=None) for name, one in known.items()}
            reached |= {name: planned.reached for name, planned in self._plans.items()}
        self._last = reached
        return start if start is not None and not self._plans else to_json(reached)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Returns what is left to read, for `query.lastProgress`; of the last listing."""
        if self._logs is None:
            return None
        return backlog(self._logs, self._last, self._waits, sum(self._lost_since.values()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns what to read between two results of `latestOffset`.

        Raises:
            SparkError: it is not what was planned, or no checkpoint of this source.
        """
        before, after = from_json(start), from_json(end)
        self._check_directories(after)
        pieces: list[PlannedPiece] = []
        logs = None
        for name, reached in after.items():
            known = before.get(name)
            is_anew = reached.planned is not None and reached.planned.begins_anew
            if known is not None and known.place == reached.place and not is_anew:
                continue
            planned = self._plans.get(name)
            if planned is None or (planned.known, planned.reached) != (known, reached):
                logs = list_logs(self._request) if logs is None else logs
                planned = self._replay(name, logs.get(name), known, reached)
            if planned is not None:
                for what in (*planned.begin.passed, *planned.stretch.passed):
                    _passed_over(what)
                pieces += _pieces(planned)
        self._last = after
        size = self._request.partition_bytes or TASK_BYTES
        groups = group_items(pieces, lambda one: one.piece.size + OPENING_BYTES, max_bytes=size)
        return [InputPartition(StreamTask(tuple(group))) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of one task."""
        rows: Iterator[pa.RecordBatch] = partition.value.rows(self._request)
        return rows

    def __reduce__(self) -> tuple[object, ...]:
        return by_value("ottla.spark.source.stream:LogStreamReader", (self._request,))

    def _check_directories(self, known: Mapping[str, Reached]) -> None:
        """Raises SparkError if no partition of a checkpoint is below the paths."""
        paths = self._request.paths
        if not known or self._is_checked or any(set(path) & set("*?[{") for path in paths):
            return
        above = tuple(os.fsdecode(full_path(path)).rstrip("/") for path in paths)
        name = next(iter(known))
        if not any(one == root or one.startswith(f"{root}/") for one in known for root in above):
            raise SparkError(
                f"the checkpoint is of other directories, such as {name}, and none is in"
                f" {', '.join(above)}: give the path that this query had, or a new"
                " checkpointLocation"
            )
        self._is_checked = True

    def _plan_all(
        self, logs: Mapping[str, GrowingLog], known: Mapping[str, Reached], budget: int | None
    ) -> tuple[dict[str, Plan], dict[str, str]]:
        """Returns what can be read now, and why partitions wait, by the names of their logs.

        A budget is divided evenly, most unread bytes first.
        """
        plans: dict[str, Plan] = {}
        waits: dict[str, str] = {}
        names = list(logs)
        if budget is not None:
            names.sort(key=lambda name: -logs[name].unread(known.get(name)))
        for number, name in enumerate(names):
            share = None
            if budget is not None:
                if budget <= 0:
                    break
                share = max(1, budget // (len(names) - number))
            planned = self._plan_one(logs[name], known.get(name), share)
            if isinstance(planned, str):
                waits[name] = planned
            elif planned is not None:
                plans[name] = planned
                if planned.stretch.waits is not None:
                    waits[name] = planned.stretch.waits
                if budget is not None:
                    budget -= planned.byte_count
        return plans, waits

    def _plan_one(
        self, log: GrowingLog, known: Reached | None, budget: int | None
    ) -> Plan | str | None:
        policy = self._policy

        def origin(log: GrowingLog) -> Origin:
            return origin_of(log, self._request.starting)

        try:
            return plan(log, known, policy, origin, budget)
        except FileNotFoundError:
            # Deleted since it was listed: another listing shows what is left.
            if not self._is_bounded:
                return "a segment was deleted while the log was read"
            left = list_logs(self._request).get(log.name)
            now = None if left is None else left.at_most(log)
            if now is None:
                return "the partition was deleted"
            if self._logs is not None:
                self._logs[log.name] = now
            return plan(now, known, policy, origin, budget)
        except OSError as error:
            raise cannot_read(log.name, error) from error

    def _tell(self, waits: dict[str, str]) -> None:
        """Writes to the log why partitions wait, once, if two triggers in a row found the same."""
        lasting = {name for name, why in waits.items() if self._waits.get(name) == why}
        news = sorted(lasting - self._told)
        for name in news[:MAX_SHOWN]:
            logger.warning("%s waits: %s", name, waits[name])
        if len(news) > MAX_SHOWN:
            logger.warning("and %d partitions more wait", len(news) - MAX_SHOWN)
        self._waits, self._told = waits, lasting

    def _replay(
        self, name: str, log: GrowingLog | None, known: Reached | None, end: Reached
    ) -> Plan | None:
        if log is None:
            first = end.next_offset if known is None else known.next_offset
            if end.planned is not None:
                first = end.planned.first_offset
            what = (
                f"{name}: the partition was deleted before it was read completely: offsets {first}"
                f" to {end.next_offset - 1} were planned"
            )
            if self._request.fail_on_data_loss:
                raise SparkError(f"{what}; {CONTINUE}")
            _passed_over(what)
            self._lost_since[name] = end.next_offset - first
            return None
        try:
            begin, stretch = replay(log, known, end, self._policy)
        except OSError as error:
            raise cannot_read(name, error) from error
        # The plan has what was lost when it was made.
        lost = begin.passed_offsets + stretch.passed_offsets - end.passed_offsets
        lost += 0 if known is None else known.passed_offsets
        if lost > 0:
            self._lost_since[name] = lost
        return Plan(log, known, end, begin, stretch)


def _policy(request: Request) -> Policy:
    rules = Rules(
        waits=request.late_segments == "wait",
        fails_on_damage=request.on_damage == "fail",
        passes_misplaced=request.isolation == "read_uncommitted",
        fails_on_loss=request.fail_on_data_loss,
    )
    return Policy(
        rules,
        begins_anew=request.recreated_topics == "begin_anew",
        transactions=Transactions() if request.isolation == "read_committed" else None,
    )


def _pieces(planned: Plan) -> Iterator[PlannedPiece]:
    log, stretch = planned.log, planned.stretch
    for number, part in enumerate(stretch.parts):
        stop, base = part.stop, part.segment.base_offset
        index = bisect_right(log.bases, base)
        next_base = log.bases[index] if index < len(log.bases) else None
        span = Span(aborted=stretch.aborted)
        span = span.within(base, None if next_base is None else next_base - 1)
        if stretch.behind is not None and number == len(stretch.parts) - 1:
            stop = stretch.behind.position + stretch.behind.size
            span = span._replace(max_offset=stretch.behind.base_offset - 1)
        piece = Piece(
            part.segment.place,
            part.segment.file,
            log.topic,
            log.partition,
            part.start,
            stop,
            part.stop - part.start,
            place_in_log=(base, next_base, False),
            span=span,
        )
        yield PlannedPiece(piece, tuple(part.runs), planned.begin.next_offset, part.expected)


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
    check_ending(request.ending)
    return LogStreamReader(request)
