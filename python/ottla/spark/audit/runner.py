"""Carries out the plan of an audit with tasks.

The driver lists and plans. One job scans: each task a bin of ranges, of which it gives small
summaries, the chunk table, which is used once. From it logs are judged: on the driver while they
are few, else by tasks of the same job. What all logs show together is put in order by the code of
the embedded audit, so the tables are the same whatever the cluster did.
"""

from __future__ import annotations

import pickle
import time
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.judge.context import Surroundings
from ottla.logs.checkpoints import Checkpoints
from ottla.spark.audit.bins import make_bins, names_of
from ottla.spark.audit.tasks import (
    ANSWER_COLUMNS,
    CHUNK_COLUMNS,
    CHUNK_NAMES,
    JUDGED_COLUMNS,
    Context,
    JudgedGroup,
    judge_group,
)
from ottla.spark.work.arrow import apply_in_arrow, map_in_arrow
from ottla.spark.work.items import frame_of_work
from ottla.spark.work.kind import is_connect
from ottla.spark.work.worker import run_in_worker, run_rows_in_worker, run_table_in_worker
from ottla.storage import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit.judge.coordinators import ReadAnswer, ReadRequest
    from ottla.audit.judge.gathered import Gathered
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.spark.audit.bins import Bins

PART_BINS = 2_000
"""Bins shipped with a task, its own among them: those of a million files are tens of megabytes."""

DRIVER_LOGS = 2_000
"""Up to so many logs are judged on the driver: a job for them takes longer."""

DRIVER_RANGES = 2_000
"""Up to so many ranges and files, too: what a range shows takes some kilobytes."""

DRIVER_STARTS = 8
"""Partitions whose next start the driver predicts, which reads what was not flushed."""

DRIVER_BYTES = 64 << 20
"""Bytes of coordinators' topics that the driver reads."""


class ClusterRunner:
    """Carries a plan out with tasks of a cluster, and on the driver what is too small for them.

    Args:
        spark: a session, classic or of Spark Connect.
        plan: what to scan.
        level: ``crc``, ``decode`` or ``full``.
        bin_bytes: bytes of a task.
        topic_configs: settings of topics, by pattern.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        *,
        level: str,
        bin_bytes: int,
        topic_configs: Mapping[str, Mapping[str, str]] | None,
    ) -> None:
        self._spark = spark
        self._plan = plan
        now_ms = time.time_ns() // 1_000_000
        self._bins = make_bins(plan, level=level, now_ms=now_ms, bin_bytes=bin_bytes)
        self._context = Context(names_of(plan.inventory), topic_configs)

    @property
    def plan(self) -> Plan:
        """See `Runner`."""
        return self._plan

    def scan(self, gathered: Gathered) -> None:
        """See `Runner`."""
        is_small = len(self._plan.logs) <= DRIVER_LOGS and _range_count(self._plan) <= DRIVER_RANGES
        is_small = is_small and _is_near(self._plan)
        for group in _judged_groups(self._spark, self._bins, self._context, is_small=is_small):
            for index, judged in group.logs:
                gathered.add(index, judged)
            for path, reason in group.failures:
                gathered.add_unreadable(path, reason)
            gathered.add_compared(group.differences, group.findings)
            gathered.add_read_again(group.read_again)

    def predict_starts(self, requests: Sequence[StartRequest]) -> list[list[Row]]:
        """See `Runner`."""
        files = self._plan.inventory.files
        if _is_near(self._plan) and len(requests) <= DRIVER_STARTS:
            checkpoints = Checkpoints(files)
            return [request.rows(checkpoints, files) for request in requests]
        return _carried_out(self._spark, "ottla.spark.audit.tasks:start", files, requests)

    def read_coordinators(self, requests: Sequence[ReadRequest]) -> list[ReadAnswer | None]:
        """See `Runner`."""
        if sum(request.size for request in requests) <= DRIVER_BYTES:
            return [request.rows() for request in requests]
        return _carried_out(self._spark, "ottla.spark.audit.tasks:read", None, requests)


def _carried_out(
    spark: SparkSession, target: str, shared: Any, requests: Sequence[Any]
) -> list[Any]:
    """What tasks answer to requests, in their order."""
    if not requests:
        return []
    told = frame_of_work(spark, target, shared, requests, ANSWER_COLUMNS).toArrow()
    answers = dict(zip(*(told.column(name).to_pylist() for name in ("id", "data")), strict=True))
    return [pickle.loads(answers[number]) for number in range(len(requests))]


def _is_near(plan: Plan) -> bool:
    """Whether the driver may look into small files one by one: not across a network."""
    return all(store_of(source) is None for source, _ in plan.inventory.sources)


def _range_count(plan: Plan) -> int:
    return sum(len(task.ranges) for task in plan.tasks)


def _judged_groups(
    spark: SparkSession, bins: Bins, context: Context, *, is_small: bool
) -> Iterator[JudgedGroup]:
    """Scans and judges everything; each group comes once, whatever tasks were run again."""
    if not len(bins):
        return
    # One action either way: nothing is scanned for a second one.
    if is_small:
        yield from _judged_here(_chunk_rows(spark, bins), context)
        return
    chunks, *others = (_chunks(spark, part) for part in bins.parts(PART_BINS))
    for other in others:
        chunks = chunks.unionAll(other)
    yield from _judged_by_tasks(chunks, context)


def _chunks(spark: SparkSession, bins: Bins) -> DataFrame:
    scan = run_in_worker("ottla.spark.audit.tasks:scan", bins)
    return map_in_arrow(spark.range(0, len(bins), 1, len(bins)), scan, CHUNK_COLUMNS)


def _chunk_rows(spark: SparkSession, bins: Bins) -> list[dict[str, Any]]:
    """The chunk table on the driver. A task of an RDD costs half of what one of a frame does."""
    if is_connect(spark):
        found: list[dict[str, Any]] = _chunks(spark, bins).toArrow().to_pylist()
        return found
    numbers = spark.sparkContext.parallelize(range(len(bins)), len(bins))
    rows = numbers.mapPartitions(
        run_rows_in_worker("ottla.spark.audit.tasks:scan_rows", bins)
    ).collect()
    return [dict(zip(CHUNK_NAMES, row, strict=True)) for row in rows]


def _judged_here(rows: list[dict[str, Any]], context: Context) -> Iterator[JudgedGroup]:
    rows.sort(key=itemgetter("group"))
    surroundings = Surroundings(Checkpoints(context.inventory.files), context.topic_configs)
    for _, group in groupby(rows, itemgetter("group")):
        yield judge_group(group, context.inventory, surroundings)


def _judged_by_tasks(chunks: DataFrame, context: Context) -> Iterator[JudgedGroup]:
    judge = run_table_in_worker("ottla.spark.audit.tasks:judge", context)
    judged = apply_in_arrow(chunks, "group", judge, JUDGED_COLUMNS)
    for data in judged.toArrow().column("data"):
        # Made by a task of this job.
        yield pickle.loads(data.as_buffer())
