"""Runs the plan of an audit with tasks of a cluster.

The driver lists files and plans. One job scans: each task gets a bin of ranges and returns small
summaries of them, the chunk table, which is used once. Logs are judged from it: on the driver while
they are few, else by tasks of the same job. The results of all logs are combined by the code of the
embedded audit, so the tables are the same whatever the cluster does.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.judge.context import Surroundings
from ottla.audit.run.threads import ThreadRunner, default_threads
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
from ottla.spark.work.arrow import apply_in_arrow, map_in_arrow, rows_of
from ottla.spark.work.items import frame_of_work, union_of
from ottla.spark.work.kind import describing_jobs, is_connect
from ottla.spark.work.packing import cores_of
from ottla.spark.work.worker import run_in_worker, run_rows_in_worker, run_table_in_worker
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit.advice.partition import AdviceRequest, PartitionOptions
    from ottla.audit.judge.collector import Collector
    from ottla.audit.judge.coordinators import ReadAnswer, ReadRequest
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.spark.audit.bins import Bins

DRIVER_LOGS = 2_000
"""Up to this many logs are judged on the driver, which is faster than a job."""

DRIVER_RANGES = 2_000
"""Up to this many ranges and files are judged on the driver: each takes a few kilobytes."""

DRIVER_STARTS = 8
"""Number of partitions whose next start the driver predicts, reading what was not flushed: of
files, which tasks read as well."""

DRIVER_BYTES = 64 << 20
"""Size of the coordinators' topics that the driver reads, and of the partitions in a store whose
next start it predicts."""


class ClusterRunner:
    """Runs a plan with tasks of a cluster, and on the driver what is too small for tasks.

    Args:
        spark: a session, classic or Spark Connect.
        plan: what to scan. What its files hold, the driver needs not request again.
        level: ``crc``, ``decode`` or ``full``.
        bin_bytes: size of a task, in bytes to read.
        topic_configs: configuration of topics, by pattern.
        max_mb_per_s: limit on the reading of all tasks together, in 10⁶ bytes per second.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        *,
        level: str,
        bin_bytes: int,
        topic_configs: Mapping[str, Mapping[str, str]] | None,
        max_mb_per_s: float | None = None,
    ) -> None:
        self._spark = spark
        self._plan = plan
        now_ms = time.time_ns() // 1_000_000
        bins = make_bins(plan, level=level, now_ms=now_ms, bin_bytes=bin_bytes)
        if max_mb_per_s is not None:
            at_once = max(1, min(len(bins), cores_of(spark) or len(bins)))
            bins = replace(bins, max_mb_per_s=max_mb_per_s / at_once)
        self._bins = bins
        self._driver = ThreadRunner(plan, level=level, threads=default_threads())
        self._context = Context(names_of(plan.inventory), topic_configs)

    @property
    def plan(self) -> Plan:
        """See `Runner`."""
        return self._plan

    @property
    def checkpoints(self) -> Checkpoints:
        """See `Runner`."""
        return self._driver.checkpoints

    def scan(self, collector: Collector) -> None:
        """See `Runner`."""
        is_small = len(self._plan.logs) <= DRIVER_LOGS and _range_count(self._plan) <= DRIVER_RANGES
        is_small = is_small and self._plan.inventory.is_local
        logs, size = count(len(self._plan.logs), "log"), self._plan.byte_count / 1e6
        with describing_jobs(self._spark, f"scan {logs}, {size:,.1f} MB"):
            for group in _judge_groups(self._spark, self._bins, self._context, is_small=is_small):
                _collect(group, collector)

    def predict_starts(self, requests: Sequence[StartRequest]) -> list[list[Row]]:
        """See `Runner`."""
        if self._is_for_driver(requests):
            return self._driver.predict_starts(requests)
        files = self._plan.inventory.files
        with describing_jobs(
            self._spark, f"predict the next start of {count(len(requests), 'partition')}"
        ):
            return _run_requests(self._spark, "ottla.spark.audit.tasks:start", files, requests)

    def price_options(self, requests: Sequence[AdviceRequest]) -> list[PartitionOptions | str]:
        """See `Runner`."""
        if self._is_for_driver(requests):
            return self._driver.price_options(requests)
        files = self._plan.inventory.files
        with describing_jobs(self._spark, f"weigh advice for {count(len(requests), 'partition')}"):
            return _run_requests(self._spark, "ottla.spark.audit.tasks:price", files, requests)

    def _is_for_driver(self, requests: Sequence[AdviceRequest | StartRequest]) -> bool:
        if self._plan.inventory.is_local:
            return len(requests) <= DRIVER_STARTS
        # The driver holds what it has read: a task would request it again for each stage.
        return sum(sum(request.partition.sizes) for request in requests) <= DRIVER_BYTES

    def read_coordinators(self, requests: Sequence[ReadRequest]) -> list[ReadAnswer | None]:
        """See `Runner`."""
        if sum(request.size for request in requests) <= DRIVER_BYTES:
            return [request.rows() for request in requests]
        with describing_jobs(
            self._spark, f"read the coordinators' topics in {count(len(requests), 'partition')}"
        ):
            return _run_requests(self._spark, "ottla.spark.audit.tasks:read", None, requests)


def _collect(group: JudgedGroup, collector: Collector) -> None:
    for index, judged in group.logs:
        collector.add(index, judged)
    for path, reason in group.failures:
        collector.add_unreadable(path, reason)
    collector.add_compared(group.differences, group.findings)
    collector.add_read_again(group.read_again)


def _run_requests(
    spark: SparkSession, target: str, shared: Any, requests: Sequence[Any]
) -> list[Any]:
    """Runs requests by tasks. Returns their answers, in order."""
    if not requests:
        return []
    rows = rows_of(frame_of_work(spark, target, shared, requests, ANSWER_COLUMNS))
    answers = {row["id"]: row["data"] for row in rows}
    return [pickle.loads(answers[number]) for number in range(len(requests))]


def _range_count(plan: Plan) -> int:
    return sum(len(task.ranges) for task in plan.tasks)


def _judge_groups(
    spark: SparkSession, bins: Bins, context: Context, *, is_small: bool
) -> Iterator[JudgedGroup]:
    """Scans and judges everything. Yields each group once, however often tasks were run."""
    if not len(bins):
        return
    # One action in either case: nothing is scanned for a second one.
    if is_small:
        yield from _judge_on_driver(_chunk_rows(spark, bins), context)
        return
    chunks = union_of([_chunks(spark, part) for part in bins.parts()])
    yield from _judge_by_tasks(chunks, context)


def _chunks(spark: SparkSession, bins: Bins) -> DataFrame:
    scan = run_in_worker("ottla.spark.audit.tasks:scan", bins, spark)
    return map_in_arrow(spark.range(0, len(bins), 1, len(bins)), scan, CHUNK_COLUMNS)


def _chunk_rows(spark: SparkSession, bins: Bins) -> list[dict[str, Any]]:
    """Returns the chunk table on the driver. A task of an RDD costs half of one of a frame."""
    if is_connect(spark):
        return list(rows_of(_chunks(spark, bins)))
    numbers = spark.sparkContext.parallelize(range(len(bins)), len(bins))
    rows = numbers.mapPartitions(
        run_rows_in_worker("ottla.spark.audit.tasks:scan_rows", bins, spark)
    ).collect()
    return [dict(zip(CHUNK_NAMES, row, strict=True)) for row in rows]


def _judge_on_driver(rows: list[dict[str, Any]], context: Context) -> Iterator[JudgedGroup]:
    rows.sort(key=itemgetter("group"))
    surroundings = Surroundings(Checkpoints(context.inventory.files), context.topic_configs)
    for _, group in groupby(rows, itemgetter("group")):
        yield judge_group(group, context.inventory, surroundings)


def _judge_by_tasks(chunks: DataFrame, context: Context) -> Iterator[JudgedGroup]:
    judge = run_table_in_worker("ottla.spark.audit.tasks:judge", context, chunks.sparkSession)
    for row in rows_of(apply_in_arrow(chunks, "group", judge, JUDGED_COLUMNS)):
        # Pickled by a task of this job.
        yield pickle.loads(row["data"])
