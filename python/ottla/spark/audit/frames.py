"""Tables of an audit as data frames: small ones from the driver, those of segments from tasks."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.result.columns import columns_of
from ottla.audit.result.result import split_work
from ottla.audit.result.split import split_file
from ottla.audit.result.tables import arrow_stream
from ottla.logs.segment import segment_table
from ottla.spark.work.arrow import frame_of_arrow
from ottla.spark.work.items import frame_of_work, rows_of_work
from ottla.spark.work.packing import group_items
from ottla.spark.work.schema import schema_of
from ottla.storage import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.tables import Table
    from ottla.logs.columns import Row
    from ottla.spark.work.items import Packed, Reader

    FileTask = tuple[str, Packed]
    """Name of the table, and packed files by the number of the task."""

BIN_BYTES = 256 << 20
"""Size of the files that one task reads; a larger file is a task of its own."""

MAX_FILES = 1_000
"""Number of files that one task reads."""

PlacedFile = tuple[Place, str, str | None, int | None]
"""A file, and the values of its columns `file`, `topic` and `partition`."""


def table_frame(spark: SparkSession, table: Table) -> DataFrame:
    """Returns a frame of a table on the driver."""
    return frame_of_arrow(spark, table.to_arrow(), schema_of(table.columns))


def segment_frame(spark: SparkSession, table: str, plan: Plan, outcome: Outcome) -> DataFrame:
    """Returns `batches` or `records` of the scanned files, in the order of the plan."""
    return _frame(spark, table, "ottla.spark.audit.frames:read", _files(plan, outcome))


def split_frames(spark: SparkSession, plan: Plan, outcome: Outcome) -> tuple[DataFrame, DataFrame]:
    """Returns the two frames of `split_records`, in the order of the plan."""
    work = [
        ((place, *prefix, findings), size)
        for size, place, prefix, findings in split_work(plan, outcome)
    ]
    damaged = [entry for entry in work if entry[0][-1]]
    return (
        _frame(spark, "records", "ottla.spark.audit.frames:read_valid", work),
        _frame(spark, "quarantine", "ottla.spark.audit.frames:read_quarantine", damaged),
    )


def _frame(
    spark: SparkSession, table: str, target: str, files: Iterable[tuple[Any, int]]
) -> DataFrame:
    """Returns rows of a table that tasks read from files, each given with its size."""
    return frame_of_work(spark, target, table, _bins(files), schema_of(columns_of(table)))


def read(work: FileTask) -> Reader:
    """Returns the work of a task: all rows of its files."""
    return _reader(work, _rows)


def read_valid(work: FileTask) -> Reader:
    """Returns the work of a task: the valid records of its files."""
    return _reader(work, _valid_rows)


def read_quarantine(work: FileTask) -> Reader:
    """Returns the work of a task: the quarantine of its files."""
    return _reader(work, _quarantine_rows)


def _reader(work: FileTask, rows: Callable[[str, Any], Iterator[pa.RecordBatch]]) -> Reader:
    table, bins = work

    def rows_of_files(_: int, files: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        for file in files:
            yield from rows(table, file)

    return rows_of_work(bins, rows_of_files)


def _valid_rows(table: str, file: Any) -> Iterator[pa.RecordBatch]:
    place, *prefix, findings = file
    if not findings:
        return _rows(table, (place, *prefix))
    return _arrow(table, split_file(place, tuple(prefix), findings)[0])


def _quarantine_rows(table: str, file: Any) -> Iterator[pa.RecordBatch]:
    place, *prefix, findings = file
    return _arrow(table, split_file(place, tuple(prefix), findings)[1])


def _arrow(table: str, chunks: Iterable[Sequence[Row]]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    columns = columns_of(table)
    for rows in chunks:
        yield from pa.table(arrow_stream(columns, rows)).to_batches()


def _rows(table: str, file: PlacedFile) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    place, name, topic, partition = file
    return map(pa.record_batch, segment_table(place, table, prefix=(name, topic, partition)))


def _bins(files: Iterable[tuple[Any, int]]) -> Iterator[list[Any]]:
    """Groups files into tasks."""
    groups = group_items(files, itemgetter(1), max_bytes=BIN_BYTES, max_items=MAX_FILES)
    return ([file for file, _ in group] for group in groups)


def _files(plan: Plan, outcome: Outcome) -> Iterable[tuple[PlacedFile, int]]:
    for index, partition in enumerate(plan.logs.partitions):
        place = (partition.topic, partition.partition) if partition else (None, None)
        for path, scanned in outcome.files.of_log(index).items():
            read_from = plan.inventory.files.place(path, scanned.size)
            yield (read_from, plan.inventory.display(path), *place), scanned.size
