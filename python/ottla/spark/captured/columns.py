"""The columns that Ottla adds to captured record sets, with their Spark and Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.spark.work.kind import require_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """Name, Spark type and meaning of a column that Ottla adds."""

    name: str
    type: str
    doc: str


RECORD_ERROR = "struct<batch_index:int,message:string,error:int>"

VERDICT_COLUMNS = (
    CapturedColumn("accepted", "boolean", "whether the leader accepts the set"),
    CapturedColumn("error", "int", "Kafka's error code, 0 for none; null if nothing was judged"),
    CapturedColumn("error_name", "string", "Kafka's name for it, such as `INVALID_RECORD`"),
    CapturedColumn(
        "error_message", "string", "what was found and expected, or why nothing was judged"
    ),
    CapturedColumn("record_errors", f"array<{RECORD_ERROR}>", "the faulty records, ascending"),
    CapturedColumn(
        "is_request_wide", "boolean", "whether Kafka fails every partition of the request"
    ),
    CapturedColumn(
        "base_offset", "bigint", "offset of the first record; -1 if nothing is appended"
    ),
    CapturedColumn("last_offset", "bigint", "offset of the last record; -1 if nothing is appended"),
    CapturedColumn(
        "log_append_time_ms", "bigint", "-1 if the topic keeps the producer's timestamps"
    ),
    CapturedColumn("max_timestamp_ms", "bigint", "the largest timestamp; -1 for none"),
    CapturedColumn(
        "offset_of_max_timestamp", "bigint", "offset of the first record with it; -1 for none"
    ),
    CapturedColumn("stored_size", "bigint", "bytes to append"),
    CapturedColumn("is_rebuilt", "boolean", "whether the records are written again"),
    CapturedColumn("converted", "bigint", "records written again"),
)
"""The columns that `validate` adds, with the values of the attributes of `ottla.Verdict`."""


def verdict_schema(prefix: str = "") -> StructType:
    """Returns the columns of `VERDICT_COLUMNS` as a schema.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    return with_columns([], VERDICT_COLUMNS, prefix)


def with_columns(
    fields: Sequence[StructField], columns: Iterable[CapturedColumn], prefix: str
) -> StructType:
    """Returns the schema of fields followed by columns.

    Raises:
        ValueError: two columns would have the same name.
    """
    require_pyspark()
    from pyspark.sql import types

    error = types.StructType(
        [
            types.StructField("batch_index", types.IntegerType()),
            types.StructField("message", types.StringType()),
            types.StructField("error", types.IntegerType()),
        ]
    )
    known = {
        "boolean": types.BooleanType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        f"array<{RECORD_ERROR}>": types.ArrayType(error),
    }
    taken = {field.name.lower() for field in fields}
    twice = [prefix + column.name for column in columns if (prefix + column.name).lower() in taken]
    if twice:
        raise ValueError(
            f"the frame already has columns {', '.join(twice)}: choose other names with prefix="
        )
    added = [types.StructField(prefix + c.name, known[c.type]) for c in columns]
    return types.StructType([*fields, *added])


def arrow_types(columns: Iterable[CapturedColumn]) -> list[pa.DataType]:
    """Returns the Arrow types of columns."""
    import pyarrow as pa

    error = pa.struct(
        [("batch_index", pa.int32()), ("message", pa.string()), ("error", pa.int32())]
    )
    types = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "string": pa.string(),
        "binary": pa.binary(),
        f"array<{RECORD_ERROR}>": pa.list_(error),
    }
    return [types[column.type] for column in columns]
