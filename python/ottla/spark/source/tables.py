"""Tables of a catalog: `CREATE TABLE … USING ottla`.

Spark asks a Python data source for the columns of a table when the table is created, with the
options of the table among its properties. When the table is read, it passes the columns, but no
options (up to 4.3). What Spark does keep is the metadata of columns, so the options travel there.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ottla.audit.result.columns import NEVER_NULL
from ottla.errors import SparkError
from ottla.spark.source.names import STORAGE_PREFIX
from ottla.spark.source.options import parse_options, schema_of
from ottla.spark.work.schema import SQL_TYPES
from ottla.spark.work.schema import schema_of as sql_schema
from ottla.storage import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

    from ottla.spark.source.options import Request

__all__ = ["options_for", "require_values", "schema_for", "struct_of"]

METADATA = "ottla.options"
"""Metadata of the first column of a table: its options as JSON."""

PROVIDER = "provider"
"""A property of every table of a catalog, and no option of a read."""

OPTION_PREFIX = "option."
"""Prefix of the properties of a table that are its options."""


def schema_for(options: Mapping[str, str]) -> str | StructType:
    """Returns the columns of the table that the options name.

    For a table of a catalog, they have the comments of `docs/tables.md`, are `NOT NULL` where that
    is so, and carry the options.

    Raises:
        SparkError: see `parse_options`; or an option is a secret, which the catalog would show.
    """
    given = {name.lower(): value for name, value in options.items()}
    if PROVIDER not in given:
        return schema_of(given)
    kept = _options_of_table(given)
    return _described(parse_options(kept), kept)


def options_for(options: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Returns the options of a read: of a table of a catalog, those it was created with.

    Options of the query, as in ``SELECT … FROM t WITH (columns = 'offset')``, come first.

    Raises:
        SparkError: the table was created with a list of columns, so that its options are lost.
    """
    given = {name.lower(): value for name, value in options.items()}
    found = [field.metadata[METADATA] for field in schema.fields if METADATA in field.metadata]
    if found:
        spelled = {name.replace("_", "") for name in given}
        kept = json.loads(found[0]).items()
        return {**{k: v for k, v in kept if k.replace("_", "") not in spelled}, **given}
    if "path" not in given and "paths" not in given:
        raise SparkError(
            "no path was given. Spark passes no options to a table that was created with a list of"
            " columns: leave the list out, and choose columns by OPTIONS (columns 'offset, value')"
        )
    return given


def require_values(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yields batches whose schema says that columns are never null, as Spark asks of a reader.

    Raises:
        SparkError: one of the columns is null in a row.
    """
    import pyarrow as pa

    for batch in batches:
        schema = batch.schema
        for name in columns:
            index = schema.get_field_index(name)
            if batch.column(index).null_count:
                raise SparkError(f"{name} is null in a row, but was declared NOT NULL")
            schema = schema.set(index, schema.field(index).with_nullable(nullable=False))
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _options_of_table(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the options among the properties of a table."""
    kept = {
        name.removeprefix(OPTION_PREFIX): value
        for name, value in properties.items()
        if name.startswith(OPTION_PREFIX)
    }
    # Spark makes the path absolute, and a URI.
    if "path" in properties:
        kept["path"] = re.sub(r"^file:(//(?=/))?", "", properties["path"])
    named = {
        name.removeprefix(STORAGE_PREFIX): value
        for name, value in kept.items()
        if name.startswith(STORAGE_PREFIX)
    }
    public = StorageOptions(named).public()
    for name in named:
        if name not in public:
            raise SparkError(
                f"the catalog would show {STORAGE_PREFIX}{name} to everyone who reads it: set it in"
                " the environment of the driver and the executors, or create a temporary view"
            )
    return kept


def _described(request: Request, options: Mapping[str, str]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    docs = {column.name: column.doc for column in request.column_definitions}
    # Rows of a quarantine are no rows of the table, and Spark's Kafka source promises nothing.
    is_promised = request.layout == "ottla" and request.on_damage != "quarantine"
    never_null = NEVER_NULL.get(request.table, ()) if is_promised else ()
    fields: list[StructField] = []
    for field in struct_of(sql_schema(request.column_definitions)).fields:
        metadata: dict[str, Any] = {} if fields else {METADATA: json.dumps(dict(options))}
        metadata["comment"] = docs[field.name]
        is_nullable = field.name not in never_null
        fields.append(StructField(field.name, field.dataType, is_nullable, metadata))
    return StructType(fields)


def struct_of(columns: str) -> StructType:
    """Returns the columns of `schema_of` as an object, without a session of Spark.

    >>> struct_of("`offset` bigint, `value` binary").fieldNames()
    ['offset', 'value']
    """
    from pyspark.sql.types import StructField, StructType

    found = re.findall(r"`([^`]+)` ([^`]+?)(?:, |$)", columns)
    return StructType([StructField(name, _type(kind)) for name, kind in found])


def _type(kind: str) -> DataType:
    from pyspark.sql import types

    text, data = types.StringType(), types.BinaryType()
    pair = types.StructType([types.StructField("key", text), types.StructField("value", data)])
    known: dict[str, DataType] = {
        "string": text,
        "binary": data,
        "bigint": types.LongType(),
        "int": types.IntegerType(),
        "boolean": types.BooleanType(),
        "timestamp": types.TimestampType(),
        "array<struct<key:string,value:binary>>": types.ArrayType(pair),
    }
    if kind == SQL_TYPES["damage"]:
        fields = (field.split(":") for field in kind.removeprefix("struct<")[:-1].split(","))
        return types.StructType([types.StructField(name, known[of]) for name, of in fields])
    return known[kind.lower()]
