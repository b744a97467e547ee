"""Columns of what is read from a segment, and the types a column of a table can have.

Names and meanings of the columns of batches and records are defined in the engine.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ottla import _engine

ColumnType = Literal[
    "string", "int64", "int32", "bool", "binary", "list", "headers", "timestamp", "damage"
]
"""`list` is a list in dictionaries and JSON, and JSON text in Arrow. The last three are columns of
Spark's data source alone: a list of structs of key and value, microseconds, and a struct."""

Row: TypeAlias = tuple[Any, ...]
"""Values in the order of the columns."""


class Column(NamedTuple):
    """Name, type and meaning of a column. Values that do not apply are null."""

    name: str
    type: ColumnType
    doc: str


def _columns_of(
    table: Literal["place", "batches", "records", "source", "kafka"],
) -> tuple[Column, ...]:
    return tuple(Column(*column) for column in _engine.segment_columns(table))


PLACE_COLUMNS = _columns_of("place")
"""Columns that say where a row is from: file, topic and partition."""

BATCH_COLUMNS = _columns_of("batches")
"""Columns of the batches of a file."""

RECORD_COLUMNS = _columns_of("records")
"""Columns of the records of a file."""

TRAIT_COLUMNS = _columns_of("source")
"""Columns of records in Spark's data source that say what their batch says."""

KAFKA_COLUMNS = _columns_of("kafka")
"""Columns of Spark's Kafka source."""
