"""The options of the data source, parsed and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from ottla.audit.pipeline import Level
from ottla.audit.plan.plan import plan_audit
from ottla.audit.result.columns import TABLES
from ottla.errors import SparkError
from ottla.spark.work.schema import SQL_TYPES
from ottla.spark.work.schema import schema_of as sql_schema
from ottla.storage import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Column

MIN_TASK_BYTES = 64 << 10

OPTIONS = {
    "path": "the argument of load()",
    "paths": "the argument of load()",
    "table": f"one of {', '.join(TABLES)}",
    "columns": "names of columns, separated by commas",
    "topics": "patterns of topics, separated by commas",
    "level": f"one of {', '.join(get_args(Level))}",
    "partition_bytes": f"bytes per task, at least {MIN_TASK_BYTES}",
    "fail_on_data_loss": "true or false",
    "max_bytes_per_trigger": "bytes per trigger",
}

STORAGE_PREFIX = "storage."
"""Prefix of options that are settings of an object store; see `ottla.storage.files_of`."""


@dataclass(frozen=True, slots=True)
class Request:
    """The checked options."""

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
    def column_definitions(self) -> tuple[Column, ...]:
        """The requested columns, in that order."""
        known = {column.name: column for column in TABLES[self.table]}
        return tuple(known[name] for name in self.columns)

    def plan(self) -> Plan:
        """Plans an audit of what is below the paths now."""
        return plan_audit(self.paths, topics=self.topics, storage_options=self.storage_options)


def parse_options(options: Mapping[str, str], schema: StructType | None = None) -> Request:
    """Checks options, whose names are lower case, and a schema if the user gave one.

    Raises:
        SparkError: an option or column is unknown, or has an invalid value.
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
                f" {STORAGE_PREFIX}endpoint and similar"
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
        raise SparkError("the data source ottla needs a path: load('/var/lib/kafka')")
    columns = _names(given.get("columns", "")) or tuple(c.name for c in TABLES[table])
    if schema is not None:
        columns = tuple(schema.fieldNames())
    request = Request(
        paths=tuple(paths),
        table=table,
        columns=_check_columns(table, columns),
        topics=_names(given.get("topics", "")),
        level=cast("Level", level),
        partition_bytes=_number(given, "partition_bytes", MIN_TASK_BYTES),
        fail_on_data_loss=_bool(given, "fail_on_data_loss", default=True),
        max_bytes_per_trigger=_number(given, "max_bytes_per_trigger", 1),
        storage_options=StorageOptions(storage_options),
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
    """Returns a request without data source options.

    Raises:
        SparkError: the table has no such column.
        ValueError: `partition_bytes` is out of range.
    """
    if partition_bytes is not None and partition_bytes < MIN_TASK_BYTES:
        raise ValueError(f"partition_bytes is {partition_bytes}, must be at least {MIN_TASK_BYTES}")
    return Request(
        paths=paths,
        table=table,
        columns=_check_columns(table, columns),
        topics=topics,
        level="full",
        partition_bytes=partition_bytes,
        fail_on_data_loss=True,
        max_bytes_per_trigger=None,
        storage_options=StorageOptions(storage_options),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _check_columns(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    known = [column.name for column in TABLES[table]]
    for name in columns:
        if name not in known:
            raise SparkError(f"{table} has no column {name!r}, only {', '.join(known)}")
        if columns.count(name) > 1:
            raise SparkError(f"column {name!r} is selected {columns.count(name)} times")
    return columns


def _check_types(request: Request, schema: StructType) -> None:
    for column, field in zip(request.column_definitions, schema.fields, strict=True):
        expected, found = SQL_TYPES[column.type], field.dataType.simpleString()
        if found != expected:
            raise SparkError(f"column {column.name} of {request.table} is {expected}, not {found}")


def _number(options: Mapping[str, str], name: str, minimum: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= minimum):
        raise SparkError(f"{name} is {text!r}, must be a number of at least {minimum}")
    return int(text)


def _bool(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise SparkError(f"{name} is {text!r}, must be true or false")
    return text == "true"


def schema_of(options: Mapping[str, str]) -> str:
    """Returns the requested columns in Spark's data definition language.

    >>> schema_of({"path": "examples/data", "columns": "offset, value"})
    '`offset` bigint, `value` binary'

    Raises:
        SparkError: see `parse_options`.
    """
    return sql_schema(parse_options(options).column_definitions)


def check_inputs(plan: Plan) -> None:
    """Raises SparkError if a given path has no logs, or a pattern matches no topic."""
    given = {path for path, _ in plan.inventory.sources}
    for unreadable in plan.inventory.unreadable:
        if unreadable.path in given:
            name = plan.inventory.display(unreadable.path)
            raise SparkError(f"{name}: {unreadable.reason}")
    for pattern in plan.unmatched_topics:
        raise SparkError(f"no topic matches {pattern!r}")
