"""The tables of an audit: one definition of columns from which every form of them is made.

`TABLES` is read by the JSON and Arrow forms, by `docs/tables.md` and by the tests. To add a column,
add a row here and give its value where the table is filled.

A table iterates as dictionaries, is read by Arrow libraries through `__arrow_c_stream__`, and needs
none of them. `batches` and `records` hold nothing: they read the files again, piece by piece.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ottla import _engine
from ottla.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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


_FILE = (
    Column("file", "string", "path relative to the audited directory"),
    Column("topic", "string", "topic, by the name of the directory"),
    Column("partition", "int32", "partition, by the name of the directory"),
)

FILE_COLUMNS = len(_FILE)
"""How many columns name the place, at the start of `files`, `batches` and `records`."""

FILES = (
    *_FILE,
    Column("kind", "string", "what the name says it is: segment, offset-index, … unknown"),
    Column("state", "string", "live, deleted, swap, cleaned or temporary"),
    Column("partition_state", "string", "live, delete, future or stray"),
    Column("size", "int64", "bytes when listed"),
    Column("base_offset", "int64", "the number in the name"),
    Column("is_read", "bool", "whether the file was scanned"),
    Column("batches", "int64", "sound batches and those with findings about their inside"),
    Column("records", "int64", "records in them"),
    Column("first_offset", "int64", "offset of the first record"),
    Column("next_offset", "int64", "the last offset plus one"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970"),
    Column("magics", "list", "magic bytes of its batches"),
    Column("codecs", "list", "codecs of its batches"),
    Column("reason", "string", "why it could not be read"),
)

BATCHES = (
    *_FILE,
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

RECORDS = (
    *_FILE,
    Column("batch_position", "int64", "position of its batch in the file"),
    Column("offset", "int64", "offset in the log"),
    Column("timestamp", "int64", "ms since 1970, as a consumer sees it"),
    Column("key", "binary", "null for none"),
    Column("value", "binary", "null for a tombstone"),
    Column("headers", "list", "pairs of key and value"),
    Column("sequence", "int32", "the producer's number, -1 for none"),
    Column("control", "string", "COMMIT, ABORT, … for control records"),
)

FINDINGS = (
    Column("name", "string", "stable name of the fault, see docs/findings.md"),
    Column("severity", "string", "error, warning or info"),
    *_FILE,
    Column("position", "int64", "bytes from the start of the file"),
    Column("size", "int64", "bytes concerned"),
    Column("first_offset", "int64", "first offset concerned"),
    Column("last_offset", "int64", "last offset concerned, inclusive"),
    Column("record_index", "int32", "index of the record in its batch"),
    Column("producer_id", "int64", "producer concerned"),
    Column("next_good_offset", "int64", "where a consumer can go on"),
    Column("cause", "string", "why offsets are missing, where the log tells"),
    Column("expected", "string", "what should have been there"),
    Column("found", "string", "what is there"),
    Column("message", "string", "a sentence that says it all"),
)

TRANSACTIONS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer"),
    Column("producer_epoch", "int32", "its epoch"),
    Column("state", "string", "aborted or open"),
    Column("first_offset", "int64", "offset of its first record"),
    Column("last_offset", "int64", "offset of its marker, or of its last record while open"),
)

PRODUCERS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer"),
    Column("producer_epoch", "int32", "its last epoch"),
    Column("last_sequence", "int32", "sequence of its last record"),
    Column("last_offset", "int64", "offset of its last record"),
    Column("last_timestamp", "int64", "timestamp of its last batch, ms since 1970"),
    Column("coordinator_epoch", "int32", "of its last end marker; -1 for none"),
    Column("open_transaction_offset", "int64", "where its open transaction begins"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "files": FILES,
    "batches": BATCHES,
    "records": RECORDS,
    "findings": FINDINGS,
    "transactions": TRANSACTIONS,
    "producers": PRODUCERS,
}

# Rows of a table in memory handed on at a time.
CHUNK_ROWS = 16_384


class Table:
    """Rows with named, typed columns.

    Iterating gives dictionaries. pyarrow, Polars, DuckDB and pandas read a table as it stands::

        polars.DataFrame(result.findings)
        pyarrow.table(result.findings)
        findings = result.findings
        duckdb.sql("select name, count(*) from findings group by name")
    """

    __slots__ = ("_chunks", "_length", "columns", "name")

    def __init__(
        self,
        name: str,
        chunks: Callable[[], Iterable[Sequence[Row]]],
        length: int | None = None,
    ) -> None:
        self.name = name
        self.columns = TABLES[name]
        self._chunks = chunks
        self._length = length

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Row]) -> Table:
        """A table held in memory."""
        return cls(name, lambda: _cut(rows), len(rows))

    def __len__(self) -> int:
        """Rows. Of `batches` and `records` they are counted by reading the files once."""
        if self._length is None:
            self._length = sum(len(chunk) for chunk in self._chunks())
        return self._length

    def __bool__(self) -> bool:
        return next(iter(self.rows()), None) is not None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = [column.name for column in self.columns]
        for row in self.rows():
            yield dict(zip(names, row, strict=True))

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(column.name for column in self.columns)}>"

    def rows(self) -> Iterator[Row]:
        """The rows as tuples, in the order of `columns`."""
        for chunk in self._chunks():
            yield from chunk

    def chunks(self) -> Iterator[Sequence[Row]]:
        """The rows in pieces that fit in memory, none of them empty."""
        for chunk in self._chunks():
            if chunk:
                yield chunk

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The whole table for an Arrow library (Arrow C Stream interface)."""
        return arrow_stream(self.columns, list(self.rows())).__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`.

        Raises:
            MissingDependencyError: pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise _missing("pyarrow", "ottla[arrow]") from error
        schema = pa.table(arrow_stream(self.columns, [])).schema
        pieces = [pa.table(arrow_stream(self.columns, chunk)) for chunk in self.chunks()]
        return pa.concat_tables(pieces) if pieces else schema.empty_table()

    def to_polars(self) -> Any:
        """A `polars.DataFrame`.

        Raises:
            MissingDependencyError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise _missing("polars", "ottla[polars]") from error
        return pl.DataFrame(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, by way of pyarrow.

        Raises:
            MissingDependencyError: pandas or pyarrow is not installed.
        """
        try:
            import pandas as pd  # noqa: F401
        except ImportError as error:
            raise _missing("pandas", "ottla[arrow]' 'pandas") from error
        return self.to_arrow().to_pandas()


def arrow_stream(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    """Rows as an object with `__arrow_c_stream__`, one record batch."""
    values: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    values = values or [[] for _ in columns]
    types = []
    for index, column in enumerate(columns):
        if column.type == "list":
            values[index] = [
                None if value is None else json.dumps(jsonable(value), ensure_ascii=False)
                for value in values[index]
            ]
        types.append("string" if column.type == "list" else column.type)
    return _engine.table_stream([column.name for column in columns], types, values)


def jsonable(value: Any) -> Any:
    r"""A value as JSON has it: bytes that are UTF-8 as text, others as ``{"base64": …}``.

    >>> jsonable([b"price", b"12.50", None]), jsonable(b"\xff")
    (['price', '12.50', None], {'base64': '/w=='})
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value


def json_line(columns: Sequence[Column], row: Row) -> str:
    """A row as one JSON object on one line."""
    pairs = zip(columns, row, strict=True)
    return json.dumps({column.name: jsonable(value) for column, value in pairs}, ensure_ascii=False)


def tables_markdown() -> str:
    """`docs/tables.md`."""
    lines = [
        "# Tables",
        "",
        "The tables of `ottla.audit`, in every form: attributes of `AuditResult`, the members of",
        "`ottla audit --format json`, the files of `--output DIR`. Positions and sizes are bytes",
        "in the file, offsets are offsets of the log, times are milliseconds since 1970 (UTC).",
        "What does not apply is null. Columns of type `list` are JSON text in Arrow and Parquet;",
        'bytes in JSON are text where they are UTF-8, else `{"base64": "…"}`.',
    ]
    for name, columns in TABLES.items():
        lines += ["", f"## {name}", "", "| column | type | |", "| --- | --- | --- |"]
        lines += [f"| `{c.name}` | {c.type} | {c.doc} |" for c in columns]
    return "\n".join(lines) + "\n"


def _cut(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), CHUNK_ROWS):
        yield rows[start : start + CHUNK_ROWS]


def _missing(package: str, what: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"{package} is not installed: pip install '{what}', or read the table through any"
        " library that knows __arrow_c_stream__"
    )
