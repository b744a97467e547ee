"""Tables computed from whole logs: a task for every few of them, or one task for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.audit import audit
from ottla.audit.pipeline import run_part
from ottla.audit.result.columns import TABLES
from ottla.audit.result.tables import arrow_stream
from ottla.audit.run.threads import ThreadRunner
from ottla.logs.names import INTERNAL_TOPICS
from ottla.spark.source.pieces import OPENING_BYTES
from ottla.spark.work.packing import group_items
from ottla.storage import AnyFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition
    from ottla.spark.source.options import Request

LOG_TABLES = ("files", "gaps", "transactions", "producers", "epochs", "timeline", "metrics")
"""Each log fills its own rows. For `transactions`, only without topics of coordinators."""

TASK_BYTES = 512 << 20
"""Size of the logs that a task audits."""


def is_per_log(table: str, plan: Plan) -> bool:
    """Whether each log fills its own rows of a table."""
    if table == "transactions":
        return not any(p.topic in INTERNAL_TOPICS for p in plan.partitions)
    return table in LOG_TABLES


@dataclass(frozen=True, slots=True)
class LogsTask:
    """Partitions that a task audits one by one."""

    plan: Plan

    def rows(self, request: Request) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of the table."""
        inventory = self.plan.inventory
        # Spark sends tasks by itself, without secrets of stores.
        files = AnyFiles(request.storage_options)
        plan = self.plan._replace(inventory=inventory._replace(files=files))
        runner = ThreadRunner(plan, level=request.level, threads=1)
        result = run_part(runner, level=request.level)
        for chunk in getattr(result, request.table).chunks():
            yield from _arrow_batches(request, chunk)


def plan_parts(plan: Plan, task_bytes: int) -> Iterator[Plan]:
    """Divides a plan into plans of one task each, in the order of the partitions."""
    logs: dict[int, list[int]] = {}
    for index, partition in enumerate(plan.logs.partitions):
        logs.setdefault(id(partition), []).append(index)
    tasks: dict[int, list[int]] = {}
    for number, task in enumerate(plan.tasks):
        tasks.setdefault(task.log, []).append(number)

    def part(partitions: Sequence[Partition], *, is_last: bool = False) -> Plan:
        owners = [id(None)] if is_last else [id(p) for p in partitions]
        indexes = [index for owner in owners for index in logs.get(owner, ())]
        directories = plan.log_directories if is_last else ()
        return plan._replace(
            inventory=plan.inventory._replace(
                log_directories=directories,
                partitions=tuple(partitions),
                unreadable=(),
            ),
            log_directories=directories,
            partitions=tuple(partitions),
            logs=plan.logs.chosen(indexes),
            tasks=plan.tasks.chosen(
                [number for index in indexes for number in tasks.get(index, ())], indexes
            ),
            unmatched_topics=(),
            copies=(),
            findings=(),
        )

    def cost(partition: Partition) -> int:
        return sum(partition.sizes) + OPENING_BYTES * len(partition.names)

    for group in group_items(plan.partitions, cost, max_bytes=task_bytes):
        yield part(group)
    if plan.log_directories:
        yield part((), is_last=True)


@dataclass(frozen=True, slots=True)
class AuditTask:
    """The audit of all logs, in one task."""

    def rows(self, request: Request) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of the table."""
        result = audit(
            request.paths,
            topics=request.topics or None,
            level=request.level,
            storage_options=request.storage_options,
            must_exist=False,
        )
        for chunk in getattr(result, request.table).chunks():
            yield from _arrow_batches(request, chunk)


def _arrow_batches(request: Request, rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
    """Yields rows of a table as record batches of the requested columns."""
    if not rows:
        return
    import pyarrow as pa

    names = [column.name for column in TABLES[request.table]]
    places = [names.index(name) for name in request.columns]
    chosen = [tuple(row[place] for place in places) for row in rows]
    yield from pa.table(arrow_stream(request.column_definitions, chosen)).to_batches()
