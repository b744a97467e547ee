"""Tables of an audit as data frames: small ones from the driver, rows of segments read by tasks."""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING

from ottla.audit.segment import segment_table
from ottla.audit.tables import TABLES, ColumnType
from ottla.spark.arrow import map_in_arrow
from ottla.spark.worker import run_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit.judge import Outcome
    from ottla.audit.plan import Plan
    from ottla.audit.tables import Table

SQL_TYPES: Mapping[ColumnType, str] = {
    "string": "string",
    "int64": "bigint",
    "int32": "int",
    "bool": "boolean",
    "binary": "binary",
    "list": "string",
}
"""Spark's names of the types of columns. Lists are JSON text, as in Arrow."""

SEGMENT_TABLES = ("batches", "records")
"""Tables whose rows are read from the segments when they are used."""

BIN_BYTES = 256 << 20
"""Bytes of files that one task reads, more where a single file is larger."""

MAX_FILES = 1_000
"""Files that one task reads."""

SegmentFile = tuple[bytes, str, str | None, int | None]
"""Path, and what the columns `file`, `topic` and `partition` say of it."""


def schema_of(table: str) -> str:
    """Names and types of a table's columns, as Spark writes them."""
    return ", ".join(f"`{c.name}` {SQL_TYPES[c.type]}" for c in TABLES[table])


def table_frame(spark: SparkSession, table: Table) -> DataFrame:
    """A table that the driver holds."""
    return spark.createDataFrame(table.to_arrow(), schema_of(table.name))


def segment_frame(spark: SparkSession, table: str, plan: Plan, outcome: Outcome) -> DataFrame:
    """`batches` or `records` of the files that were scanned, in the order of the plan."""
    bins = [zlib.compress(pickle.dumps(files, protocol=5), 1) for files in _bins(plan, outcome)]
    numbers = spark.range(0, len(bins), 1, max(1, len(bins)))
    function = run_in_worker("ottla.spark.frames:read", (table, bins))
    return map_in_arrow(numbers, function, schema_of(table))


def read(
    work: tuple[str, list[bytes]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The work of a task: files of the bins it is given, as rows of a table."""
    table, bins = work

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # Made by `segment_frame`, in the driver of this job.
                for file in pickle.loads(zlib.decompress(bins[number])):
                    yield from _rows(table, file)

    return run


def _rows(table: str, file: SegmentFile) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    path, name, topic, partition = file
    return map(pa.record_batch, segment_table(path, table, prefix=(name, topic, partition)))


def _bins(plan: Plan, outcome: Outcome) -> Iterator[list[SegmentFile]]:
    held: list[SegmentFile] = []
    size = 0
    for file, file_size in _files(plan, outcome):
        if held and (size + file_size > BIN_BYTES or len(held) == MAX_FILES):
            yield held
            held = []
            size = 0
        held.append(file)
        size += file_size
    if held:
        yield held


def _files(plan: Plan, outcome: Outcome) -> Iterable[tuple[SegmentFile, int]]:
    for index, log in enumerate(plan.logs):
        partition = log.partition
        place = (partition.topic, partition.partition) if partition else (None, None)
        for path, scanned in outcome.files.of_log(index).items():
            yield (path, plan.inventory.display(path), *place), scanned.size
