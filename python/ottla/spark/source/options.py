"""The options of the data source, parsed and checked."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar, cast, get_args

from ottla.audit.pipeline import Level
from ottla.audit.plan.plan import make_plan
from ottla.audit.result.columns import SEGMENT_TABLES, TABLES
from ottla.errors import SparkError
from ottla.logs.columns import KAFKA_COLUMNS, TRAIT_COLUMNS
from ottla.logs.listing import take_inventory
from ottla.logs.reading import Isolation
from ottla.spark.source.bounds import EVERYTHING, Bounds
from ottla.spark.source.damage import DAMAGE_COLUMN, with_damage
from ottla.spark.source.globs import expand_globs
from ottla.spark.source.names import MIN_TASK_BYTES, OPTIONS, take_options
from ottla.spark.source.offsets import (
    FROM_EARLIEST,
    TO_LATEST,
    Choice,
    parse_assign,
    parse_ending,
    parse_starting,
)
from ottla.spark.work.schema import SQL_TYPES
from ottla.spark.work.schema import schema_of as sql_schema
from ottla.storage import StorageOptions, files_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Column, ColumnType
    from ottla.logs.inventory import Inventory, Partition
    from ottla.spark.source.names import GivenOptions
    from ottla.spark.source.offsets import TopicPartition

Layout = Literal["ottla", "kafka"]
"""Columns of `records`: our own, or those of Spark's Kafka source."""

Headers = Literal["structs", "json"]
"""Headers of a record: an array of structs, or JSON text."""

ImpossibleTimestamps = Literal["error", "null", "clamp"]
"""What to do with timestamps that Spark's type cannot hold."""

OnDamage = Literal["fail", "skip", "quarantine"]
"""What to do with bytes that cannot be read: end, leave them out, or return them as rows."""

LateSegments = Literal["wait", "fail"]
"""What a stream does about offsets missing between segments, which a copy may still bring."""

RecreatedTopics = Literal["fail", "begin_anew"]
"""What a stream does about a topic that was deleted and created again."""

Name = TypeVar("Name", bound=str)

# Options about rows of segments, which other tables do not have.
_OF_ROWS = (
    *("starting_offsets", "ending_offsets", "starting_timestamp", "ending_timestamp"),
    *("starting_offsets_by_timestamp", "ending_offsets_by_timestamp"),
    *("starting_offsets_by_timestamp_strategy", "on_damage", "late_segments"),
    *("recreated_topics", "compacted_topics"),
)
_OF_RECORDS = ("isolation_level", "headers")
_OF_KAFKA = ("include_headers", "impossible_timestamps")

_SELECTIONS = ("topics", "subscribe", "subscribe_pattern", "assign")


@dataclass(frozen=True, slots=True)
class Request:
    """The checked options."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    topics: tuple[str, ...] = ()
    """Patterns, from `topics` or `subscribe`."""
    subscribe_pattern: str | None = None
    """A regular expression that the whole name of a topic matches."""
    assign: tuple[TopicPartition, ...] = ()
    layout: Layout = "ottla"
    headers: Headers = "structs"
    impossible_timestamps: ImpossibleTimestamps = "error"
    isolation: Isolation = "read_uncommitted"
    starting: Choice = FROM_EARLIEST
    ending: Choice = TO_LATEST
    on_damage: OnDamage = "fail"
    late_segments: LateSegments = "wait"
    recreated_topics: RecreatedTopics = "fail"
    compacted_topics: tuple[str, ...] = ()
    """Patterns of topics whose cleanup.policy is known to be compact."""
    level: Level = "full"
    bounds: Bounds = EVERYTHING
    """Of records; those of `starting` and `ending` come on top."""
    partition_bytes: int | None = None
    fail_on_data_loss: bool = True
    max_bytes_per_trigger: int | None = None
    storage_options: Mapping[str, str] = field(default_factory=lambda: StorageOptions({}))

    @property
    def column_definitions(self) -> tuple[Column, ...]:
        """The requested columns, in that order."""
        columns = (*columns_of(self.table, self.layout, self.headers), DAMAGE_COLUMN)
        known = {column.name: column for column in columns}
        return tuple(known[name] for name in self.columns)

    @property
    def engine_columns(self) -> list[str]:
        """The columns that the engine makes; that of damage is not."""
        name = DAMAGE_COLUMN.name
        return [column for column in self.columns if column != name]

    @property
    def is_without_controls(self) -> bool:
        """Whether control records are left out: consumers do not get them."""
        return self.layout == "kafka" or self.isolation == "read_committed"

    @property
    def engine_table(self) -> str:
        """The engine's name of the table with these columns."""
        if self.layout == "kafka":
            return "kafka"
        if self.table != "records":
            return self.table
        return "source" if self.headers == "structs" else "source_json"

    def plan(self) -> Plan:
        """Plans an audit of what is below the paths now, of the topics that are asked for.

        Raises:
            SparkError: no path matches a pattern, or no topic the regular expression.
        """
        paths = expand_globs(self.paths, self.storage_options)
        files = files_within(paths, self.storage_options)
        inventory = take_inventory(paths, files=files)
        return make_plan(self._selected(inventory), self.topics)

    def _selected(self, inventory: Inventory) -> Inventory:
        """Returns an inventory of the partitions that `subscribe_pattern` or `assign` selects."""
        if self.layout == "kafka":
            # Consumers get nothing of a directory that is about to go or to come.
            live = tuple(p for p in inventory.partitions if p.state == "live")
            inventory = inventory._replace(partitions=live)
        if self.subscribe_pattern is not None:
            pattern = re.compile(self.subscribe_pattern)

            def is_wanted(partition: Partition) -> bool:
                topic = partition.topic
                return topic is not None and pattern.fullmatch(topic) is not None

        elif self.assign:
            assigned = set(self.assign)

            def is_wanted(partition: Partition) -> bool:
                return (partition.topic, partition.partition) in assigned

        else:
            return inventory
        chosen = tuple(filter(is_wanted, inventory.partitions))
        return inventory._replace(partitions=chosen, log_directories=())


def columns_of(table: str, layout: Layout, headers: Headers) -> tuple[Column, ...]:
    """Returns the columns that a table has in Spark."""
    if layout == "kafka":
        return KAFKA_COLUMNS
    if table != "records":
        return TABLES[table]
    kind: ColumnType = "headers" if headers == "structs" else "list"
    own = (c._replace(type=kind) if c.name == "headers" else c for c in TABLES[table])
    return (*own, *TRAIT_COLUMNS)


def parse_options(options: Mapping[str, str], schema: StructType | None = None) -> Request:
    """Checks options, and a schema if the user gave one.

    Raises:
        SparkError: an option or column is unknown, has an invalid value, or is given twice.
    """
    given = take_options(options)
    table = given.values.get("table", "records")
    if table not in TABLES:
        raise SparkError(f"table is {table!r}, not {OPTIONS['table']}")
    layout: Layout = _choice(given, "schema", Layout, "ottla")
    _check_fitting(given, table, layout)
    headers: Headers = _choice(given, "headers", Headers, "structs")
    known = columns_of(table, layout, headers)
    if layout == "kafka" and not _bool(given, "include_headers", default=False):
        # As in Spark's Kafka source.
        known = tuple(column for column in known if column.name != "headers")
    names = tuple(column.name for column in known)
    columns = _names(given.values["columns"]) if "columns" in given.values else names
    if schema is not None:
        columns = tuple(schema.fieldNames())
    _check_some(table, columns)
    on_damage: OnDamage = _choice(given, "on_damage", OnDamage, "fail")
    if on_damage == "quarantine":
        if table != "records":
            typed = given.typed["on_damage"]
            raise SparkError(f"{typed}=quarantine is of the table records, not of {table}")
        if schema is not None and DAMAGE_COLUMN.name not in columns:
            needed = f"{DAMAGE_COLUMN.name} {SQL_TYPES[DAMAGE_COLUMN.type]}"
            raise SparkError(f"{given.typed['on_damage']}=quarantine needs a column {needed}")
        names, columns = with_damage(names), with_damage(columns)
    request = Request(
        paths=_paths(given),
        table=table,
        columns=_check_columns(table, columns, names),
        topics=_topics(given),
        subscribe_pattern=_pattern(given),
        assign=_assigned(given),
        layout=layout,
        headers=headers,
        impossible_timestamps=_choice(
            given, "impossible_timestamps", ImpossibleTimestamps, "error"
        ),
        isolation=_choice(given, "isolation_level", Isolation, "read_uncommitted"),
        starting=parse_starting(given),
        ending=parse_ending(given),
        on_damage=on_damage,
        late_segments=_choice(given, "late_segments", LateSegments, "wait"),
        recreated_topics=_choice(given, "recreated_topics", RecreatedTopics, "fail"),
        compacted_topics=_names(given.values.get("compacted_topics", "")),
        level=_choice(given, "level", Level, "full"),
        partition_bytes=_number(given, "partition_bytes", MIN_TASK_BYTES),
        fail_on_data_loss=_bool(given, "fail_on_data_loss", default=True),
        max_bytes_per_trigger=_number(given, "max_bytes_per_trigger", 1),
        storage_options=StorageOptions(given.storage_options),
    )
    if schema is not None:
        _check_types(request, schema)
    return request


def request_for(
    paths: tuple[str, ...],
    table: str,
    *,
    columns: tuple[str, ...] | None = None,
    topics: tuple[str, ...] | None = None,
    isolation: Isolation = "read_uncommitted",
    on_damage: OnDamage = "fail",
    bounds: Bounds = EVERYTHING,
    partition_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Request:
    """Returns a request without data source options.

    Raises:
        SparkError: the table has no such column, or none is named; an empty list of topics.
        ValueError: `partition_bytes` is out of range.
    """
    if partition_bytes is not None and partition_bytes < MIN_TASK_BYTES:
        raise ValueError(f"partition_bytes is {partition_bytes}, must be at least {MIN_TASK_BYTES}")
    for name, value, known in (
        ("isolation", isolation, get_args(Isolation)),
        ("on_damage", on_damage, get_args(OnDamage)),
    ):
        if value not in known:
            raise ValueError(f"{name} is {value!r}, not one of {', '.join(known)}")
        if value != known[0] and table != "records":
            raise ValueError(f"{name} is {value!r}, which is of the table records, not of {table}")
    if bounds != EVERYTHING and table != "records":
        raise ValueError(
            f"bounds of offsets and timestamps are of the table records, not of {table}"
        )
    names = tuple(column.name for column in columns_of(table, "ottla", "structs"))
    columns = names if columns is None else columns
    _check_some(table, columns)
    if on_damage == "quarantine":
        names, columns = with_damage(names), with_damage(columns)
    return Request(
        paths=paths,
        table=table,
        columns=_check_columns(table, columns, names),
        topics=() if topics is None else _some_topics("topics", topics),
        isolation=isolation,
        on_damage=on_damage,
        bounds=bounds,
        partition_bytes=partition_bytes,
        storage_options=StorageOptions(storage_options or {}),
    )


def _paths(given: GivenOptions) -> tuple[str, ...]:
    paths = json.loads(given.values["paths"]) if "paths" in given.values else []
    if "path" in given.values:
        paths.append(given.values["path"])
    if not paths:
        raise SparkError("the data source ottla needs a path: load('/var/lib/kafka')")
    return tuple(paths)


def _check_fitting(given: GivenOptions, table: str, layout: Layout) -> None:
    """Raises SparkError if an option is given that would have no effect."""
    if layout == "kafka" and table != "records":
        raise SparkError(f"{given.typed['schema']}=kafka is of the table records, not of {table}")
    selections = [given.typed[name] for name in _SELECTIONS if name in given.values]
    if len(selections) > 1:
        raise SparkError(f"{' and '.join(selections)} are given: only one of them can be")
    fitting = (
        (_OF_ROWS, table in SEGMENT_TABLES, f"is of the tables {' and '.join(SEGMENT_TABLES)}"),
        (_OF_RECORDS, table == "records", "is of the table records"),
        (_OF_KAFKA, layout == "kafka", "is of schema=kafka"),
    )
    for names, is_fitting, whose in fitting:
        for name in names:
            if name in given.values and not is_fitting:
                raise SparkError(f"{given.typed[name]} {whose}, not of {table}")


def _choice(given: GivenOptions, name: str, names: object, default: Name) -> Name:
    """Returns the value of an option that is one of a few names."""
    known = get_args(names)
    text = given.values.get(name, default)
    if text.lower() not in known:
        raise SparkError(f"{given.typed[name]} is {text!r}, not one of {', '.join(known)}")
    return cast("Name", text.lower())


def _pattern(given: GivenOptions) -> str | None:
    text = given.values.get("subscribe_pattern")
    if text is not None:
        try:
            re.compile(text)
        except re.error as error:
            typed = given.typed["subscribe_pattern"]
            raise SparkError(f"{typed} is {text!r}, no regular expression: {error}") from error
    return text


def _assigned(given: GivenOptions) -> tuple[TopicPartition, ...]:
    text = given.values.get("assign")
    return () if text is None else parse_assign(given.typed["assign"], text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _topics(given: GivenOptions) -> tuple[str, ...]:
    """Returns the patterns of `topics`, or the names of `subscribe`; none for all topics."""
    name = "topics" if "topics" in given.values else "subscribe"
    if name not in given.values:
        return ()
    return _some_topics(given.typed[name], _names(given.values[name]))


def _some_topics(what: str, topics: tuple[str, ...]) -> tuple[str, ...]:
    """Returns topics.

    Raises:
        SparkError: there is none. A list that came out empty asks for nothing, not for everything.
    """
    if not topics:
        raise SparkError(f"{what} names no topic: leave it out for all topics")
    return topics


def _check_some(table: str, columns: tuple[str, ...]) -> None:
    if not columns:
        few = "offset" if table == "records" else "one"
        raise SparkError(
            f"no column is named: leave columns out for all of {table}, or name {few} to count rows"
        )


def _check_columns(table: str, columns: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in columns:
        if name not in known:
            raise SparkError(f"{table} has no column {name!r}, only {', '.join(known)}")
        if columns.count(name) > 1:
            raise SparkError(f"column {name!r} is selected {columns.count(name)} times")
    return columns


def _check_types(request: Request, schema: StructType) -> None:
    for column, given in zip(request.column_definitions, schema.fields, strict=True):
        expected, found = SQL_TYPES[column.type], given.dataType.simpleString()
        if found != expected:
            raise SparkError(f"column {column.name} of {request.table} is {expected}, not {found}")


def _number(given: GivenOptions, name: str, minimum: int) -> int | None:
    text = given.values.get(name)
    if text is None:
        return None
    if not (re.fullmatch(r"[0-9]{1,19}", text) and int(text) >= minimum):
        typed = given.typed[name]
        raise SparkError(f"{typed} is {text!r}, must be a number of at least {minimum}")
    return int(text)


def _bool(given: GivenOptions, name: str, *, default: bool) -> bool:
    text = given.values.get(name, str(default))
    if text.lower() not in ("true", "false"):
        raise SparkError(f"{given.typed[name]} is {text!r}, must be true or false")
    return text.lower() == "true"


def schema_of(options: Mapping[str, str]) -> str:
    """Returns the requested columns in Spark's data definition language.

    >>> schema_of({"path": "examples/data", "columns": "offset, value"})
    '`offset` bigint, `value` binary'

    Raises:
        SparkError: see `parse_options`.
    """
    return sql_schema(parse_options(options).column_definitions)


def check_inputs(request: Request, plan: Plan) -> None:
    """Raises SparkError if a given path has no logs, or a selection matches no partition."""
    given = {path for path, _ in plan.inventory.sources}
    for unreadable in plan.inventory.unreadable:
        if unreadable.path in given:
            name = plan.inventory.display(unreadable.path)
            raise SparkError(f"{name}: {unreadable.reason}")
    for pattern in plan.unmatched_topics:
        raise SparkError(f"no topic matches {pattern!r}")
    if request.subscribe_pattern is not None and not plan.partitions:
        raise SparkError(f"no topic matches {request.subscribe_pattern!r}")
    there: dict[tuple[str | None, int | None], bytes] = {}
    for partition in plan.partitions:
        key = (partition.topic, partition.partition)
        if request.layout == "kafka" and key in there:
            places = (plan.inventory.display(path) for path in (there[key], partition.directory))
            raise SparkError(
                f"{key[0]}-{key[1]} is here twice, in {' and '.join(places)}: give one copy, or its"
                " records come twice"
            )
        there[key] = partition.directory
    for topic, number in request.assign:
        if (topic, number) not in there:
            raise SparkError(f"there is no partition {number} of topic {topic!r}")
