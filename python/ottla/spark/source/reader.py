"""Ottla's tables for `spark.read.format("ottla")`: each read divided into tasks.

Spark plans a read in a Python process of the driver that has no session: files are listed there,
and each task receives the names of its files. `batches` and `records` are read from the files in
pieces of limited size. For tables that each log fills by itself, a task audits several logs. All
other tables need all logs together, and are computed by one task.

Rows are in the order of the tables of `ottla.audit`, however the read is divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.audit.result.columns import SEGMENT_TABLES
from ottla.spark.source.filters import PushedFilters, is_about, narrow_bounds
from ottla.spark.source.logs import (
    LOG_TABLES,
    TASK_BYTES,
    AuditTask,
    LogsTask,
    is_per_log,
    plan_parts,
)
from ottla.spark.source.options import check_inputs, parse_options
from ottla.spark.source.pieces import pieces_of
from ottla.spark.source.tables import require_values
from ottla.spark.work.private import is_pushing_filters
from ottla.spark.work.worker import by_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from ottla.spark.source.options import Request


def make_reader(options: Mapping[str, str], schema: StructType) -> TableReader:
    """Returns a reader of a table; one that accepts filters if Spark has any.

    Raises:
        SparkError: see `parse_options`.
    """
    request = parse_options(options, schema)
    required = tuple(field.name for field in schema.fields if not field.nullable)
    kind = FilteringReader if is_pushing_filters() else TableReader
    return kind(request, PushedFilters(), required)


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table; the required columns are those that Spark was told are never null."""

    def __init__(
        self, request: Request, pushed: PushedFilters, required: tuple[str, ...] = ()
    ) -> None:
        self._request = request
        self._pushed = pushed
        self._required = required

    def partitions(self) -> list[InputPartition]:
        """Returns one partition per task, in the order of the rows.

        Raises:
            SparkError: a path cannot be read, or no topic matches a pattern.
        """
        request = self._request
        plan = request.plan()
        if request.table in SEGMENT_TABLES:
            check_inputs(request, plan)
            return [InputPartition(pieces) for pieces in pieces_of(request, plan, self._pushed)]
        if is_per_log(request.table, plan):
            check_inputs(request, plan)
            size = request.partition_bytes or TASK_BYTES
            return [InputPartition(LogsTask(part)) for part in plan_parts(plan, self._pushed, size)]
        return [InputPartition(AuditTask())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of one task."""
        # If there is nothing to read, Spark passes None.
        work = None if partition is None else partition.value
        rows = iter(()) if work is None else work.rows(self._request)
        return require_values(rows, self._required) if self._required else rows

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self._request, self._pushed, self._required)
        return by_value("ottla.spark.source.reader:TableReader", arguments)


class FilteringReader(TableReader):
    """Reads less if filters allow it."""

    def pushFilters(self, filters: Iterable[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Takes filters that can be decided without reading, and yields those Spark must check."""
        table = self._request.table
        columns: tuple[str, ...] = ("file", "topic", "partition")
        if table not in SEGMENT_TABLES:
            columns = columns[1:] if table in LOG_TABLES else ()
        for one in filters:
            if is_about(one, columns):
                self._pushed = self._pushed._replace(places=(*self._pushed.places, one))
                if table in SEGMENT_TABLES:
                    continue
            elif table in SEGMENT_TABLES:
                bounds = narrow_bounds(self._pushed.bounds, table, one)
                self._pushed = self._pushed._replace(bounds=bounds)
            # Tables of a single task do not skip anything.
            yield one
