"""Ottla's tables for `spark.read.format("ottla")`: each read cut into tasks.

Spark plans a read in a Python process of the driver that has no session: files are listed there,
and each task gets the names it is to read. `batches` and `records` are read from the files in
bounded pieces. Tables that each log fills for itself are made by a task for every few logs. The
others take all logs together, and are made by one task.

Rows come in the order of the tables of `ottla.audit`, however they are cut.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.audit.result.columns import SEGMENT_TABLES
from ottla.spark.source.filters import Pushed, is_about, narrowed
from ottla.spark.source.logs import LOG_TABLES, TASK_BYTES, Logs, WholeAudit, is_per_log, plan_parts
from ottla.spark.source.options import parse_options, refuse_absent
from ottla.spark.source.pieces import pieces_of
from ottla.spark.work.worker import by_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from ottla.spark.source.options import Request


def make_reader(options: Mapping[str, str], schema: StructType) -> TableReader:
    """The reader of a table; one that takes filters where Spark has some to give.

    Raises:
        SparkError: as of `parse_options`.
    """
    request = parse_options(options, schema)
    return (FilteringReader if _is_pushing_filters() else TableReader)(request, Pushed())


def _is_pushing_filters() -> bool:
    """Whether this process was started to push filters.

    Spark refuses readers with `pushFilters` while `spark.sql.python.filterPushdown.enabled` is
    false, and tells readers nothing about it. It has a program of its own for pushing filters,
    which it starts only where that is true and there are some.
    """
    program = "pyspark.sql.worker.data_source_pushdown_filters"
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return program in sys.modules or (spec is not None and spec.name == program)


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table."""

    def __init__(self, request: Request, pushed: Pushed) -> None:
        self._request = request
        self._pushed = pushed

    def partitions(self) -> list[InputPartition]:
        """One for each task, in the order of the rows.

        Raises:
            SparkError: a path cannot be read, or no topic matches a pattern.
        """
        request = self._request
        plan = request.plan()
        if request.table in SEGMENT_TABLES:
            refuse_absent(plan)
            return [InputPartition(pieces) for pieces in pieces_of(request, plan, self._pushed)]
        if is_per_log(request.table, plan):
            refuse_absent(plan)
            size = request.partition_bytes or TASK_BYTES
            return [InputPartition(Logs(part)) for part in plan_parts(plan, self._pushed, size)]
        return [InputPartition(WholeAudit())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Record batches of one task."""
        # Where there is nothing to read, Spark has one partition of its own making.
        work = None if partition is None else partition.value
        return iter(()) if work is None else work.rows(self._request)

    def __reduce__(self) -> tuple[Any, ...]:
        return by_value("ottla.spark.source.reader:TableReader", (self._request, self._pushed))


class FilteringReader(TableReader):
    """Reads less where filters allow it."""

    def pushFilters(self, filters: Iterable[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Takes what can be told without reading, and gives back what Spark still has to check."""
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
                bounds = narrowed(self._pushed.bounds, table, one)
                self._pushed = self._pushed._replace(bounds=bounds)
            # A table that one task makes after all leaves nothing out.
            yield one
