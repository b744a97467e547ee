"""Ottla's tables for `spark.read.format("ottla")`: what the options ask for, cut into tasks.

Spark plans a read in a Python process of the driver that has no session: files are listed there,
and each task gets the names it is to read. `batches` and `records` are read from the files in
bounded pieces. Tables that each log fills for itself are made by a task for every few logs. The
others take all logs together, and are made by one task.

Rows come in the order of the tables of `ottla.audit`, however they are cut.
"""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.audit import Level, audit
from ottla.audit.pipeline import run_part
from ottla.audit.plan.plan import ENDLESS, Plan, plan_audit
from ottla.audit.result.columns import TABLES
from ottla.audit.result.tables import arrow_stream
from ottla.audit.run.threads import ThreadRunner
from ottla.errors import SparkError
from ottla.logs.names import INTERNAL_TOPICS
from ottla.logs.segment import first_batch, segment_cuts, segment_table
from ottla.spark.filters import Bounds, Pushed, is_about, narrowed
from ottla.spark.frames import SQL_TYPES
from ottla.spark.worker import find_ottla

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from ottla.audit.plan.plan import Log
    from ottla.logs.columns import Column, Row
    from ottla.logs.inventory import FileEntry, Partition
    from ottla.storage import Files, Place

SCAN_TABLES = ("batches", "records")
"""Read from the files as they are."""

POSITION_COLUMNS = {"batches": "position", "records": "batch_position"}
"""Where the batch of a row lies."""

LOG_TABLES = ("files", "gaps", "transactions", "producers", "epochs", "timeline", "metrics")
"""Each log fills its own rows. Transactions only where no coordinator's topic is read as well."""

ROW_BYTES_OF_A_TASK = 128 << 20
LOG_BYTES_OF_A_TASK = 512 << 20
LEAST_BYTES_OF_A_TASK = 64 << 10

# What it costs to open a file, in bytes that could have been read meanwhile.
OPENING_BYTES = 1 << 20

# Brokers write 10 MiB unless they are told to write more.
MAX_INDEX_BYTES = 64 << 20

MOST_CUTS = 256
"""A cut costs some milliseconds while a query is planned, and this many make enough tasks."""

OPTIONS = {
    "path": "what load() was given",
    "paths": "what load() was given",
    "table": f"one of {', '.join(TABLES)}",
    "columns": "names of columns, with commas between",
    "topics": "patterns of topics, with commas between",
    "level": f"one of {', '.join(get_args(Level))}",
    "partition_bytes": f"bytes a task reads, at least {LEAST_BYTES_OF_A_TASK}",
    "fail_on_data_loss": "true or false",
    "max_bytes_per_trigger": "bytes a trigger reads",
}

STORAGE_PREFIX = "storage."
"""Of options that are settings of an object store, as of `ottla.storage.files_of`."""


@dataclass(frozen=True, slots=True)
class Request:
    """The options, checked."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    topics: tuple[str, ...]
    level: Level
    partition_bytes: int | None
    fail_on_data_loss: bool
    max_bytes_per_trigger: int | None
    storage_options: Mapping[str, str]

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns asked for, in that order."""
        known = {column.name: column for column in TABLES[self.table]}
        return tuple(known[name] for name in self.columns)

    def plan(self) -> Plan:
        """What lies under the paths now."""
        return plan_audit(self.paths, topics=self.topics, storage_options=self.storage_options)


def parse_options(options: Mapping[str, str], schema: StructType | None = None) -> Request:
    """Checks options, whose names are lower case, and a schema that the user may have given.

    Raises:
        SparkError: an option or column is none of ours, or has a value that it cannot have.
    """
    given = {name.lower(): value for name, value in options.items()}
    storage_options = {
        name.removeprefix(STORAGE_PREFIX): given.pop(name)
        for name in list(given)
        if name.startswith(STORAGE_PREFIX)
    }
    for name in given:
        if name not in OPTIONS:
            known = ", ".join(name for name in OPTIONS if name not in ("path", "paths"))
            raise SparkError(
                f"the data source ottla has no option {name!r}, only {known} and"
                f" {STORAGE_PREFIX}endpoint and the like"
            )
    table = given.get("table", "records")
    if table not in TABLES:
        raise SparkError(f"table is {table!r}, not {OPTIONS['table']}")
    level = given.get("level", "full")
    if level not in get_args(Level):
        raise SparkError(f"level is {level!r}, not {OPTIONS['level']}")
    paths = json.loads(given["paths"]) if "paths" in given else []
    if "path" in given:
        paths.append(given["path"])
    if not paths:
        raise SparkError("the data source ottla was given no path: load('/var/lib/kafka')")
    columns = _names(given.get("columns", "")) or tuple(c.name for c in TABLES[table])
    if schema is not None:
        columns = tuple(schema.fieldNames())
    request = Request(
        paths=tuple(paths),
        table=table,
        columns=_checked_columns(table, columns),
        topics=_names(given.get("topics", "")),
        level=cast("Level", level),
        partition_bytes=_number(given, "partition_bytes", LEAST_BYTES_OF_A_TASK),
        fail_on_data_loss=_truth(given, "fail_on_data_loss", default=True),
        max_bytes_per_trigger=_number(given, "max_bytes_per_trigger", 1),
        storage_options=storage_options,
    )
    if schema is not None:
        _check_types(request, schema)
    return request


def request_for(
    paths: tuple[str, ...],
    table: str,
    *,
    columns: tuple[str, ...],
    topics: tuple[str, ...],
    partition_bytes: int | None,
    storage_options: Mapping[str, str],
) -> Request:
    """What the options of a data source would ask for.

    Raises:
        SparkError: the table has no such column.
        ValueError: `partition_bytes` is out of its range.
    """
    if partition_bytes is not None and partition_bytes < LEAST_BYTES_OF_A_TASK:
        least = LEAST_BYTES_OF_A_TASK
        raise ValueError(f"partition_bytes is {partition_bytes}, not at least {least}")
    return Request(
        paths=paths,
        table=table,
        columns=_checked_columns(table, columns),
        topics=topics,
        level="full",
        partition_bytes=partition_bytes,
        fail_on_data_loss=True,
        max_bytes_per_trigger=None,
        storage_options=storage_options,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _checked_columns(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    known = [column.name for column in TABLES[table]]
    for name in columns:
        if name not in known:
            raise SparkError(f"{table} has no column {name!r}, only {', '.join(known)}")
        if columns.count(name) > 1:
            raise SparkError(f"column {name!r} is asked for {columns.count(name)} times")
    return columns


def _check_types(request: Request, schema: StructType) -> None:
    for column, field in zip(request.described, schema.fields, strict=True):
        expected, found = SQL_TYPES[column.type], field.dataType.simpleString()
        if found != expected:
            raise SparkError(f"column {column.name} of {request.table} is {expected}, not {found}")


def _number(options: Mapping[str, str], name: str, least: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise SparkError(f"{name} is {text!r}, not a number of at least {least}")
    return int(text)


def _truth(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise SparkError(f"{name} is {text!r}, not true or false")
    return text == "true"


def schema_of(options: Mapping[str, str]) -> str:
    """The columns that options ask for, as Spark's data definition language has them.

    >>> schema_of({"path": "examples/data", "columns": "offset, value"})
    '`offset` bigint, `value` binary'

    Raises:
        SparkError: as of `parse_options`.
    """
    columns = parse_options(options).described
    return ", ".join(f"`{column.name}` {SQL_TYPES[column.type]}" for column in columns)


def make_reader(options: Mapping[str, str], schema: StructType) -> TableReader:
    """The reader of a table; one that takes filters where Spark has some to give.

    Raises:
        SparkError: as of `parse_options`.
    """
    request = parse_options(options, schema)
    return (FilteringReader if _is_pushing_filters() else TableReader)(request, Pushed())


def _is_pushing_filters() -> bool:
    """Whether this process was started to push filters.

    Spark refuses readers with `pushFilters` while `spark.sql.python.filterPushdown.enabled` is
    false, and tells readers nothing about it. It has a program of its own for pushing filters,
    which it starts only where that is true and there are some.
    """
    program = "pyspark.sql.worker.data_source_pushdown_filters"
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return program in sys.modules or (spec is not None and spec.name == program)


def by_value(target: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `__reduce__` gives for an object that is made anew where Ottla must be found first.

    Args:
        target: ``"module:class"``.
        arguments: of the class; anything the standard pickle takes.
    """
    find = find_ottla()
    pickled = pickle.dumps(arguments, protocol=5)

    def make(target: str, pickled: bytes) -> Any:
        import importlib
        import pickle

        find()
        module, _, name = target.partition(":")
        # Bytes of the driver's.
        return getattr(importlib.import_module(module), name)(*pickle.loads(pickled))

    return make, (target, pickled)


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table."""

    def __init__(self, request: Request, pushed: Pushed) -> None:
        self._request = request
        self._pushed = pushed

    def partitions(self) -> list[InputPartition]:
        """One for each task, in the order of the rows.

        Raises:
            SparkError: a path cannot be read, or no topic matches a pattern.
        """
        request = self._request
        plan = request.plan()
        if request.table in SCAN_TABLES:
            _refuse_absent(plan)
            return [InputPartition(pieces) for pieces in pieces_of(request, plan, self._pushed)]
        if is_per_log(request.table, plan):
            _refuse_absent(plan)
            size = request.partition_bytes or LOG_BYTES_OF_A_TASK
            return [InputPartition(Logs(part)) for part in plan_parts(plan, self._pushed, size)]
        return [InputPartition(WholeAudit())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Record batches of one task."""
        # Where there is nothing to read, Spark has one partition of its own making.
        work = None if partition is None else partition.value
        return iter(()) if work is None else work.rows(self._request)

    def __reduce__(self) -> tuple[Any, ...]:
        return by_value("ottla.spark.source:TableReader", (self._request, self._pushed))


class FilteringReader(TableReader):
    """Reads less where filters allow it."""

    def pushFilters(self, filters: Iterable[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Takes what can be told without reading, and gives back what Spark still has to check."""
        table = self._request.table
        columns: tuple[str, ...] = ("file", "topic", "partition")
        if table not in SCAN_TABLES:
            columns = columns[1:] if table in LOG_TABLES else ()
        for one in filters:
            if is_about(one, columns):
                self._pushed = self._pushed._replace(places=(*self._pushed.places, one))
                if table in SCAN_TABLES:
                    continue
            elif table in SCAN_TABLES:
                bounds = narrowed(self._pushed.bounds, table, one)
                self._pushed = self._pushed._replace(bounds=bounds)
            # A table that one task makes after all leaves nothing out.
            yield one


def is_per_log(table: str, plan: Plan) -> bool:
    """Whether each log fills its own rows of a table."""
    if table == "transactions":
        return not any(p.topic in INTERNAL_TOPICS for p in plan.partitions)
    return table in LOG_TABLES


def _refuse_absent(plan: Plan) -> None:
    """Raises where a path or pattern that was given is of nothing: the findings would tell."""
    given = {path for path, _ in plan.inventory.sources}
    for unreadable in plan.inventory.unreadable:
        if unreadable.path in given:
            name = plan.inventory.display(unreadable.path)
            raise SparkError(f"{name}: {unreadable.reason}")
    for pattern in plan.unmatched_topics:
        raise SparkError(f"no topic matches {pattern!r}")


class Piece(NamedTuple):
    """Bytes of a file, from one batch to another."""

    place: Place
    file: str
    topic: str | None
    partition: int | None
    start: int
    stop: int
    size: int
    """Bytes to be read, by the listing."""
    is_cut: bool = False
    """Whether another piece of the file follows."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a task reads of `batches` or `records`."""

    pieces: tuple[Piece, ...]
    bounds: Bounds

    def rows(self, request: Request) -> Iterator[Any]:
        """Record batches of all pieces.

        Raises:
            SparkError: a file cannot be read, unless that is to be overlooked.
        """
        for piece in self.pieces:
            try:
                yield from piece_rows(piece, request, self.bounds)
            except OSError as error:
                if request.fail_on_data_loss:
                    raise cannot_read(piece.file, error) from error


def cannot_read(file: str, error: OSError) -> SparkError:
    """The error for a file that was listed and cannot be read."""
    reason = error.strerror or str(error)
    return SparkError(
        f"{file}: {reason[:1].lower()}{reason[1:]}; with the option fail_on_data_loss=false what"
        " cannot be read is left out"
    )


def piece_rows(piece: Piece, request: Request, bounds: Bounds) -> Iterator[Any]:
    """Record batches of a piece of a file.

    Raises:
        OSError: the file cannot be read.
        SparkError: the piece ends inside a batch.
    """
    at = POSITION_COLUMNS[request.table]
    names = list(request.columns)
    asked = [*names, at] if piece.is_cut and at not in names else names
    last = piece.start
    if not isinstance(piece.place, bytes):
        piece.place.expect(piece.start, piece.stop)
    for rows in segment_table(
        piece.place,
        request.table,
        columns=asked,
        prefix=(piece.file, piece.topic, piece.partition),
        start=piece.start,
        stop=piece.stop,
        **bounds._asdict(),
    ):
        batch = pa.record_batch(rows)
        if piece.is_cut and batch.num_rows:
            last = batch.column(asked.index(at))[-1].as_py()
        yield batch if asked is names else batch.select(names)
    if piece.is_cut:
        _check_end(piece, last)


def _check_end(piece: Piece, position: int) -> None:
    """Raises where the batches from a position on do not lead to the end of a piece.

    Then the index that the file was cut by points into a batch, such as one whose value holds
    batches, and the next piece is not what follows.
    """
    following = position
    while following < piece.stop:
        batch = first_batch(piece.place, following)
        if batch is None or batch.position >= piece.stop:
            return
        following = batch.position + batch.size
        if following > piece.stop:
            raise SparkError(
                f"{piece.file}: the offset index names byte {piece.stop}, which lies inside the"
                f" batch at {batch.position}: read with a partition_bytes larger than the file"
            )


def arrow_batches(request: Request, rows: Sequence[Row]) -> Iterator[Any]:
    """Rows of a table as record batches of the columns asked for."""
    if not rows:
        return
    names = [column.name for column in TABLES[request.table]]
    places = [names.index(name) for name in request.columns]
    chosen = [tuple(row[place] for place in places) for row in rows]
    yield from pa.table(arrow_stream(request.described, chosen)).to_batches()


def plan_pieces(plan: Plan, pushed: Pushed, piece_bytes: int) -> Iterator[Piece]:
    """The files of a plan in its order, large ones cut where an index knows a batch."""
    files = plan.inventory.files
    piece_bytes = max(piece_bytes, plan.byte_count // MOST_CUTS)
    for log in plan.logs:
        partition = log.partition
        topic, number = (partition.topic, partition.partition) if partition else (None, None)
        for file in log.files:
            if file.fault is not None or not _may_hold(log, file, pushed.bounds):
                continue
            name = plan.inventory.display(file.path)
            if not pushed.wants(file=name, topic=topic, partition=number):
                continue
            place = files.place(file.path, file.size)
            # Where rows are left out it cannot be told whether a piece ends where the next begins;
            # and each look into an object takes as long as a task.
            is_cut = pushed.bounds == Bounds() and isinstance(place, bytes)
            cuts = [0, *(_cuts(log, file, files, piece_bytes) if is_cut else ()), ENDLESS]
            for start, stop in pairwise(cuts):
                size = min(stop, file.size) - start
                is_last = stop == ENDLESS
                yield Piece(place, name, topic, number, start, stop, size, is_cut=not is_last)


def _may_hold(log: Log, file: FileEntry, bounds: Bounds) -> bool:
    """Whether the offsets that names of segments promise touch the bounds."""
    if not log.is_live or log.partition is None or file.base_offset is None:
        return True
    next_base = log.partition.next_base_offset(file)
    if bounds.min_offset is not None and next_base is not None and next_base <= bounds.min_offset:
        return False
    return bounds.max_offset is None or file.base_offset <= bounds.max_offset


def _cuts(log: Log, file: FileEntry, files: Files, piece_bytes: int) -> list[int]:
    """Positions of batches about so many bytes apart."""
    if not log.is_live or log.partition is None or file.size < 2 * piece_bytes:
        return []
    index = next(
        (
            other
            for other in log.partition.files
            if other.kind == "offset-index"
            and other.state == "live"
            and other.base_offset == file.base_offset
        ),
        None,
    )
    if index is None:
        return []
    try:
        return segment_cuts(
            files.place(file.path, file.size),
            files.read(index.path, MAX_INDEX_BYTES),
            base_offset=file.base_offset or 0,
            size=file.size,
            apart=piece_bytes,
        )
    except OSError:
        return []


def pieces_of(request: Request, plan: Plan, pushed: Pushed) -> Iterator[Pieces]:
    """What each task reads of `batches` or `records`."""
    size = request.partition_bytes or ROW_BYTES_OF_A_TASK
    for pieces in packed(plan_pieces(plan, pushed, size), size):
        yield Pieces(pieces, pushed.bounds)


def task_pieces(request: Request) -> Iterator[Pieces]:
    """The same where nothing is pushed.

    Raises:
        SparkError: a path or pattern that was given is of nothing.
    """
    plan = request.plan()
    _refuse_absent(plan)
    return pieces_of(request, plan, Pushed())


def packed(pieces: Iterable[Piece], task_bytes: int) -> Iterator[tuple[Piece, ...]]:
    """Neighbours together until they make a task."""
    for group in _packed(pieces, task_bytes, lambda piece: piece.size + OPENING_BYTES):
        yield tuple(group)


def _packed(items: Iterable[Any], task_bytes: int, cost: Callable[[Any], int]) -> Iterator[Any]:
    group: list[Any] = []
    total = 0
    for item in items:
        if group and total + cost(item) > task_bytes:
            yield group
            group, total = [], 0
        group.append(item)
        total += cost(item)
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class Logs:
    """Partitions that a task audits, each for itself."""

    plan: Plan

    def rows(self, request: Request) -> Iterator[Any]:
        """Record batches of the table."""
        runner = ThreadRunner(self.plan, level=request.level, threads=1)
        result = run_part(runner, level=request.level)
        for chunk in getattr(result, request.table).chunks():
            yield from arrow_batches(request, chunk)


def plan_parts(plan: Plan, pushed: Pushed, task_bytes: int) -> Iterator[Plan]:
    """The partitions of a plan in its order, as plans of their own."""
    logs: dict[int, list[int]] = {}
    for index, log in enumerate(plan.logs):
        logs.setdefault(id(log.partition), []).append(index)
    tasks: dict[int, list[int]] = {}
    for number, task in enumerate(plan.tasks):
        tasks.setdefault(task.log, []).append(number)

    def part(partitions: Sequence[Partition], *, is_last: bool = False) -> Plan:
        owners = [id(None)] if is_last else [id(p) for p in partitions]
        indexes = [index for owner in owners for index in logs.get(owner, ())]
        directories = plan.log_directories if is_last else ()
        return replace(
            plan,
            inventory=replace(
                plan.inventory,
                log_directories=directories,
                partitions=tuple(partitions),
                unreadable=(),
            ),
            log_directories=directories,
            partitions=tuple(partitions),
            logs=tuple(plan.logs[index] for index in indexes),
            tasks=tuple(
                replace(plan.tasks[number], log=new)
                for new, old in enumerate(indexes)
                for number in tasks.get(old, ())
            ),
            unmatched_topics=(),
            copies=(),
            findings=(),
        )

    def cost(partition: Partition) -> int:
        return sum(partition.sizes) + OPENING_BYTES * len(partition.names)

    wanted = (p for p in plan.partitions if pushed.wants(topic=p.topic, partition=p.partition))
    for group in _packed(wanted, task_bytes, cost):
        yield part(group)
    if plan.log_directories and pushed.wants(topic=None, partition=None):
        yield part((), is_last=True)


@dataclass(frozen=True, slots=True)
class WholeAudit:
    """The audit of everything, in one task."""

    def rows(self, request: Request) -> Iterator[Any]:
        """Record batches of the table."""
        result = audit(
            request.paths,
            topics=request.topics,
            level=request.level,
            storage_options=request.storage_options,
        )
        for chunk in getattr(result, request.table).chunks():
            yield from arrow_batches(request, chunk)
