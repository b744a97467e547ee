"""Records as Arrow or Parquet, in pieces that fit in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

from ottla.cli.record_text import JsonText
from ottla.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ottla.cli.reading.sources import Source
    from ottla.cli.record_text import ReadRecord

__all__ = ["BATCH_BYTES", "TableForm", "check_pyarrow", "tabulated", "write_table"]

TableForm = Literal["arrow", "parquet"]

BATCH_BYTES = 32 << 20
"""Of a piece, which is a row group of Parquet, about."""

ROW_BYTES = 500
"""Of a record beside key, value and headers, while it is Python's."""


def check_pyarrow(form: TableForm) -> None:
    """Raises MissingDependencyError if a format cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"--output-format {form} needs pyarrow: pip install 'ottla[arrow]', or write jsonl"
        ) from error


def write_table(
    sink: BinaryIO,
    form: TableForm,
    parts: Iterable[tuple[Source, Iterator[Any]]],
    *,
    parsed: tuple[bool, bool],
    has_place: bool,
    is_stream: bool,
) -> None:
    """Writes records.

    Args:
        sink: where to.
        form: Arrow, a stream or a file, or Parquet.
        parts: partitions and their records, as record batches of pyarrow.
        parsed: whether keys, and values, are JSON in place of bytes.
        has_place: whether there are columns of topic and partition.
        is_stream: whether Arrow is in its form for streams, which nobody reads from the end.
    """
    import pyarrow as pa

    schema = _schema(pa, parsed, has_place)
    counted = _Counted(sink)
    with _writer(pa, counted, form, schema, is_stream) as writer:
        for batches in _gathered(_placed(pa, parts, schema, has_place=has_place)):
            writer.write_table(pa.Table.from_batches(batches, schema).combine_chunks())


def _schema(pa: Any, parsed: tuple[bool, bool], has_place: bool) -> Any:
    key, value = (pa.string() if is_parsed else pa.binary() for is_parsed in parsed)
    header = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    place = [("topic", pa.string()), ("partition", pa.int32())] if has_place else []
    return pa.schema(
        [
            *place,
            pa.field("offset", pa.int64(), nullable=False),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("key", key),
            ("value", value),
            pa.field("headers", pa.list_(header), nullable=False),
        ]
    )


def _writer(pa: Any, sink: _Counted, form: TableForm, schema: Any, is_stream: bool) -> Any:
    if form == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(sink, schema, compression="zstd")
    return pa.ipc.new_stream(sink, schema) if is_stream else pa.ipc.new_file(sink, schema)


def _placed(
    pa: Any,
    parts: Iterable[tuple[Source, Iterator[Any]]],
    schema: Any,
    *,
    has_place: bool,
) -> Iterator[Any]:
    """Yields the record batches of all partitions, where asked for with topic and partition."""
    for source, batches in parts:
        topic = pa.scalar(source.topic, pa.string())
        partition = pa.scalar(source.partition, pa.int32())
        for batch in batches:
            place = [pa.repeat(cell, batch.num_rows) for cell in (topic, partition)]
            columns = [*place, *batch.columns] if has_place else batch.columns
            yield pa.record_batch(columns, schema=schema)


def _gathered(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields small record batches together, so that a partition of few records is no row group."""
    held: list[Any] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > BATCH_BYTES:
            yield held
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield held


def tabulated(
    parts: Iterable[tuple[Source, Iterator[ReadRecord]]], parsed: tuple[bool, bool]
) -> Iterator[tuple[Source, Iterator[Any]]]:
    """Yields partitions with their records as record batches; for `parsed` see `write_table`."""
    import pyarrow as pa

    schema = _schema(pa, parsed, has_place=False)
    for source, records in parts:
        yield source, (_batch(pa, schema, columns) for columns in _pieces(records))


def _batch(pa: Any, schema: Any, columns: list[list[Any]]) -> Any:
    arrays = [pa.array(cells, field.type) for cells, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _pieces(records: Iterable[ReadRecord]) -> Iterator[list[list[Any]]]:
    """Yields columns of so many rows and bytes."""
    columns: list[list[Any]] = [[] for _ in range(5)]
    size = 0
    for record in records:
        key, value, headers = record.key, record.value, record.headers
        more = ROW_BYTES + len(key or b"") + len(value or b"")
        more += sum(len(name) + len(data or b"") for name, data in headers)
        if columns[0] and size + more > BATCH_BYTES:
            yield columns
            columns = [[] for _ in columns]
            size = 0
        size += more
        timestamp = None if record.timestamp == -1 else record.timestamp
        row = (record.offset, timestamp, _plain(key), _plain(value), _pairs(headers))
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    if columns[0]:
        yield columns


def _plain(value: bytes | JsonText | None) -> bytes | str | None:
    return str(value) if isinstance(value, JsonText) else value


def _pairs(headers: list[tuple[str, bytes | None]]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


class _Counted(io.RawIOBase):
    """Something to write to that knows how far it is, as a pipe does not."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._position = 0

    def writable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def write(self, data: Any) -> int:
        """See `io.RawIOBase`."""
        self._sink.write(data)
        size = memoryview(data).nbytes
        self._position += size
        return size

    def tell(self) -> int:
        """See `io.RawIOBase`."""
        return self._position

    def flush(self) -> None:
        """See `io.RawIOBase`."""
        if not self.closed:
            self._sink.flush()
