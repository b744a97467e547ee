"""Frames of Spark as Arrow tables, with every release."""

from typing import Any

import pyarrow as pa

TYPES = {
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    ),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "string": pa.string(),
}


def arrow_of(frame: Any) -> pa.Table:
    """Return the rows of a frame; before PySpark 4.0, which has no `toArrow`, by its rows."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    schema = pa.schema([(name, TYPES[kind]) for name, kind in frame.dtypes])
    return pa.Table.from_pylist([row.asDict(recursive=True) for row in frame.collect()], schema)
