"""aiokafka in the tasks of Spark: the loops a data team writes today.

The functions run in Python workers, which find this package on their path. A task takes ranges of
whole batches, since nothing but Ottla finds its way from the middle of a file.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READ_SIZE = 64 << 20
ROWS_A_BATCH = 10_000
_CORRUPT_MESSAGE = 2

COUNT_SCHEMA = "records bigint"
RECORD_SCHEMA = "offset bigint, timestamp bigint, key binary, value binary"


@dataclass(frozen=True)
class Range:
    """Whole batches of a file."""

    path: str
    start: int
    stop: int


def ranges_of(paths: Sequence[Path], size: int = READ_SIZE) -> list[Range]:
    """Cut files into ranges of whole batches, each as large as one read takes."""
    ranges = []
    for path in paths:
        end = path.stat().st_size
        start = position = 0
        with path.open("rb") as file:
            while position < end:
                file.seek(position + 8)
                position += 12 + int.from_bytes(file.read(4), "big")
                if position - start >= size or position >= end:
                    ranges.append(Range(str(path), start, position))
                    start = position
    return ranges


def _batches(log: bytes) -> Iterator[Any]:
    from aiokafka.record._crecords import MemoryRecords

    batches = MemoryRecords(log)
    while batches.has_next():
        batch = batches.next_batch()
        if not batch.validate_crc():
            raise ValueError("CRC")
        yield batch


def _read(piece: Range) -> bytes:
    with open(piece.path, "rb", buffering=0) as file:  # noqa: PTH123 (a worker has bare strings)
        file.seek(piece.start)
        return file.read(piece.stop - piece.start)


Work = Callable[[Iterator[Any]], Iterator[Any]]


def _tasks(bins: Sequence[Sequence[Range]], batches: Iterator[Any]) -> Iterator[Range]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from bins[number]


def count_records(bins: Sequence[Sequence[Range]]) -> Work:
    """Check the CRC of every batch and the offset of every record; give their number."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        count = 0
        for piece in _tasks(bins, batches):
            for batch in _batches(_read(piece)):
                offset = batch.base_offset
                for record in batch:
                    if record.offset != offset:
                        raise ValueError("offset")
                    offset += 1
                count += offset - batch.base_offset
        yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64())], ["records"])

    return work


def nothing(batches: Iterator[Any]) -> Iterator[Any]:
    """Hand nothing out."""
    for _ in batches:
        pass
    return iter(())


def first_of_segment(path: str, columns: Sequence[str]) -> Any:
    """Return the first rows of a segment as a record batch."""
    import pyarrow as pa
    from ottla.logs.segment import segment_table

    return pa.record_batch(next(iter(segment_table(path.encode(), "records", columns=columns))))


def first_of_sets(path: str, columns: Sequence[str]) -> Any:
    """Return records of the first record sets in a Parquet file as a record batch."""
    return next(rows_of_sets(path, columns)).select(list(columns))


def rows_of_sets(path: str, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the records of the record sets in a Parquet file, split by Ottla, as record batches."""
    import pyarrow.parquet as pq
    from ottla.spark.captured.options import JudgeContext
    from ottla.spark.captured.split import split_rows

    given = {"api_version": 11, "base_offset": 0, "leader_epoch": 0, "origin": "client"}
    options = {**given, "now_ms": 1_800_000_000_000, "transactional_id": None}
    context = JudgeContext(0, None, options, {}, None, "strict")
    with pq.ParquetFile(path, memory_map=True) as file:
        for sets in file.iter_batches(64, columns=["records"], use_threads=False):
            yield from split_rows(sets, context, "valid", columns=tuple(columns))


def hand_out(made: Callable[[], Any], count: int) -> Work:
    """Return about `count` rows, the same few again and again: what Spark takes for them."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        yield from repeated(made(), count)

    return work


def repeated(first: Any, count: int) -> Iterator[Any]:
    """Yield a record batch again and again, so many rows."""
    for left in range(count, 0, -len(first)):
        yield first.slice(0, left)


def read_records(bins: Sequence[Sequence[Range]]) -> Work:
    """Return offset, timestamp, key and value of every record as columns of Arrow."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        names = ["offset", "timestamp", "key", "value"]
        types = [pa.int64(), pa.int64(), pa.binary(), pa.binary()]
        columns: list[list[Any]] = [[], [], [], []]

        def taken() -> Any:
            arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
            for column in columns:
                column.clear()
            return pa.RecordBatch.from_arrays(arrays, names)

        offsets, timestamps, keys, values = columns
        for piece in _tasks(bins, batches):
            for batch in _batches(_read(piece)):
                for record in batch:
                    offsets.append(record.offset)
                    timestamps.append(record.timestamp)
                    keys.append(record.key)
                    values.append(record.value)
                if len(offsets) >= ROWS_A_BATCH:
                    yield taken()
        if offsets:
            yield taken()

    return work


def read_sets(batches: Iterator[Any]) -> Iterator[Any]:
    """Return offset, timestamp, key and value of every record of the record sets of a column."""
    import pyarrow as pa

    names = ["offset", "timestamp", "key", "value"]
    types = [pa.int64(), pa.int64(), pa.binary(), pa.binary()]
    for sets in batches:
        columns: list[list[Any]] = [[], [], [], []]
        offsets, timestamps, keys, values = columns
        for records in sets.column(0):
            for batch in _batches(records.as_py()):
                for record in batch:
                    offsets.append(record.offset)
                    timestamps.append(record.timestamp)
                    keys.append(record.key)
                    values.append(record.value)
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names)


def judging() -> Any:
    """Return the pandas UDF: 0 for a record set that aiokafka reads to its end, else 2."""
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    def judge(column: Any) -> Any:
        return pd.Series([_verdict(records) for records in column], dtype="int32")

    judge.__annotations__ = {"column": pd.Series, "return": pd.Series}
    return pandas_udf(judge, "int")


def _verdict(records: bytes) -> int:
    from aiokafka.errors import CorruptRecordException

    try:
        for batch in _batches(records):
            for _ in batch:
                pass
    except (CorruptRecordException, ValueError):
        return _CORRUPT_MESSAGE
    return 0
