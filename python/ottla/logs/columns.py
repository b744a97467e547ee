"""Columns of what is read from a segment, and the type that every column of a table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

ColumnType = Literal["string", "int64", "int32", "bool", "binary", "list"]
"""`list` is a list in dictionaries and JSON, and JSON text in an Arrow string column."""

Row: TypeAlias = tuple[Any, ...]
"""Values in the order of the columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """Name, type and meaning of a column. Values that do not apply are null."""

    name: str
    type: ColumnType
    doc: str


BATCH_COLUMNS = (
    Column("position", "int64", "bytes from the start of the file"),
    Column("size", "int64", "bytes, the header's first 12 included"),
    Column("magic", "int32", "0, 1 (a message or wrapper each) or 2"),
    Column("base_offset", "int64", "offset of the first record"),
    Column("last_offset", "int64", "offset of the last record"),
    Column("record_count", "int32", "the header's; null for magic 0 and 1"),
    Column("compression", "string", "none, gzip, snappy, lz4 or zstd"),
    Column("timestamp_type", "string", "CreateTime, LogAppendTime, or NoTimestampType (magic 0)"),
    Column("base_timestamp", "int64", "ms since 1970; null below magic 2"),
    Column("max_timestamp", "int64", "ms since 1970"),
    Column("partition_leader_epoch", "int32", "epoch of the leader that appended it"),
    Column("producer_id", "int64", "-1 for none"),
    Column("producer_epoch", "int32", "-1 for none"),
    Column("base_sequence", "int32", "-1 for none"),
    Column("last_sequence", "int32", "-1 for none"),
    Column("is_transactional", "bool", "part of a transaction"),
    Column("is_control", "bool", "holds control records, which consumers do not get"),
    Column("delete_horizon_ms", "int64", "when tombstones may go (KIP-534)"),
    Column("crc", "int64", "the stored checksum, unsigned"),
    Column("is_valid", "bool", "whether the checksum is that of the bytes"),
)
"""Of the batches of a file."""

RECORD_COLUMNS = (
    Column("batch_position", "int64", "position of its batch in the file"),
    Column("offset", "int64", "offset in the log"),
    Column("timestamp", "int64", "ms since 1970, as a consumer sees it"),
    Column("key", "binary", "null for none"),
    Column("value", "binary", "null for a tombstone"),
    Column("headers", "list", "pairs of key and value"),
    Column("sequence", "int32", "the producer's number, -1 for none"),
    Column("control", "string", "COMMIT, ABORT, … for control records"),
)
"""Of the records of a file."""
