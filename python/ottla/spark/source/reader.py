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
from ottla.spark.source.logs import (
    TASK_BYTES,
    AuditTask,
    LogsTask,
    is_per_log,
    plan_parts,
)
from ottla.spark.source.options import check_inputs, parse_options
from ottla.spark.source.pieces import pieces_of
from ottla.spark.source.tables import require_values
from ottla.spark.work.worker import by_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.source.options import Request


def make_reader(options: Mapping[str, str], schema: StructType) -> TableReader:
    """Returns a reader of a table.

    It has no `pushFilters`: Spark 4.1 to 4.3 keeps what a reader makes of filters with the frame,
    and reads no more than that for the next query of it, with other filters or none.

    Raises:
        SparkError: see `parse_options`.
    """
    request = parse_options(options, schema)
    required = tuple(field.name for field in schema.fields if not field.nullable)
    return TableReader(request, required)


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table; the required columns are those that Spark was told are never null."""

    def __init__(self, request: Request, required: tuple[str, ...] = ()) -> None:
        self._request = request
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
            return [InputPartition(pieces) for pieces in pieces_of(request, plan)]
        if is_per_log(request.table, plan):
            check_inputs(request, plan)
            size = request.partition_bytes or TASK_BYTES
            return [InputPartition(LogsTask(part)) for part in plan_parts(plan, size)]
        return [InputPartition(AuditTask())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of one task."""
        # If there is nothing to read, Spark passes None.
        work = None if partition is None else partition.value
        rows = iter(()) if work is None else work.rows(self._request)
        return require_values(rows, self._required) if self._required else rows

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self._request, self._required)
        return by_value("ottla.spark.source.reader:TableReader", arguments)
