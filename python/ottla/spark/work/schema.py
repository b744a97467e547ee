"""Types of columns under Spark's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.logs.columns import Column, ColumnType

SQL_TYPES: Mapping[ColumnType, str] = {
    "string": "string",
    "int64": "bigint",
    "int32": "int",
    "bool": "boolean",
    "binary": "binary",
    "list": "string",
    "headers": "array<struct<key:string,value:binary>>",
    "timestamp": "timestamp",
    "damage": (
        "struct<file:string,position:bigint,size:bigint,first_offset:bigint,last_offset:bigint,"
        "reason:string,bytes:binary>"
    ),
}
"""Spark's names of column types. Lists are JSON text, as in Arrow."""


def schema_of(columns: Iterable[Column]) -> str:
    """Returns names and types of columns in Spark's data definition language."""
    return ", ".join(f"`{column.name}` {SQL_TYPES[column.type]}" for column in columns)
