"""The audit on Spark: the plan of the embedded one, carried out by tasks.

The driver lists and plans. One job scans: each task a bin of ranges, of which it gives small
summaries, the chunk table, which is used once. From it logs are judged: on the driver while they
are few, else by tasks of the same job. What all logs show together is put in order by the code of
the embedded audit, so the tables are the same whatever the cluster did.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.judge.context import Surroundings
from ottla.audit.pipeline import check_arguments, run_audit
from ottla.audit.plan.plan import plan_audit
from ottla.logs.checkpoints import Checkpoints
from ottla.spark.arrow import apply_in_arrow, map_in_arrow
from ottla.spark.bins import make_bins, names_of
from ottla.spark.jobs import job
from ottla.spark.result import AuditResult
from ottla.spark.session import is_connect
from ottla.spark.tasks import (
    ANSWER_COLUMNS,
    CHUNK_COLUMNS,
    CHUNK_NAMES,
    JUDGED_COLUMNS,
    Context,
    JudgedGroup,
    judge_group,
)
from ottla.spark.work import frame_of_work
from ottla.spark.worker import run_in_worker, run_rows_in_worker, run_table_in_worker
from ottla.storage import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit import Level, Severity, Source
    from ottla.audit.judge.coordinators import ReadAnswer, ReadRequest
    from ottla.audit.judge.gathered import Gathered
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.spark.bins import Bins

BIN_BYTES = 1 << 30
"""Bytes of a task. It costs some 30 ms whatever it does, and a core checks gigabytes a second."""

LEAST_BIN_BYTES = 32 << 20
"""Bytes of a task where there is little for each core: less is not worth a task."""

TASKS_A_CORE = 4
"""Tasks for each core where there is enough to do: cores then end together."""

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


def audit(
    spark: SparkSession,
    uri: Source | Sequence[Source],
    *,
    topics: Sequence[str] | None = None,
    level: Level = "full",
    split_bytes: int | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    fail_on: Severity = "error",
    storage_options: Mapping[str, str] | None = None,
) -> AuditResult:
    """Audits log directories, partitions or segments that the driver and the executors can read.

    When this returns everything was scanned, once. The tables of the result are data frames of what
    was found, but `batches` and `records` read the files when they are used. What cannot be read is
    a finding (`unreadable`), not a failed job.

        >>> import ottla.spark  # doctest: +SKIP
        >>> result = ottla.spark.audit(ottla.spark.session(), "examples/data")  # doctest: +SKIP
        >>> result.findings.groupBy("name").count().show()  # doctest: +SKIP

    Args:
        spark: a session, classic or of Spark Connect; `ottla.spark.session` makes one.
        uri: one path or several, as of `ottla.audit`.
        topics: patterns as of the shell of the topics to audit; all by default.
        level: how deep to look, as of `ottla.audit`.
        split_bytes: files larger than this are cut into ranges of as many bytes, at least 65,536;
            by default 1 GiB, or less where there is little for each core. The result does not
            depend on it.
        replicas: further paths by the name of the copy they are of.
        topic_configs: settings by topic or pattern, as of `ottla.audit`.
        fail_on: the severity from which `AuditResult.raise_for_findings` raises.
        storage_options: settings of object stores, as of `ottla.audit`; the executors get them.

    Raises:
        ValueError: an argument is out of its range.
        SparkError: a job failed; the message says why, and what to do.
    """
    check_arguments(level=level, fail_on=fail_on, split_bytes=split_bytes)
    plan = plan_audit(uri, topics=topics, replicas=replicas, storage_options=storage_options)
    bin_bytes = _bin_bytes(spark, plan.byte_count)
    plan = plan.split(split_bytes or bin_bytes)
    now_ms = time.time_ns() // 1_000_000
    bins = make_bins(plan, level=level, now_ms=now_ms, bin_bytes=bin_bytes)
    context = Context(names_of(plan.inventory), topic_configs)
    runner = _ClusterRunner(spark, plan, bins, context)
    with job("the audit", spark):
        outcome, collected = run_audit(runner, level=level, fail_on=fail_on)
    return AuditResult(spark, plan, outcome, collected)


@dataclass(frozen=True)
class _ClusterRunner:
    """Carries a plan out with tasks of a cluster, and on the driver what is too small for them."""

    spark: SparkSession
    plan: Plan
    bins: Bins
    context: Context

    def scan(self, gathered: Gathered) -> None:
        """See `ottla.audit.pipeline.Runner`."""
        is_small = len(self.plan.logs) <= DRIVER_LOGS and _range_count(self.plan) <= DRIVER_RANGES
        is_small = is_small and _is_near(self.plan)
        for group in _judged_groups(self.spark, self.bins, self.context, is_small=is_small):
            for index, judged in group.logs:
                gathered.add(index, judged)
            for path, reason in group.failures:
                gathered.add_unreadable(path, reason)
            gathered.add_compared(group.differences, group.findings)
            gathered.add_read_again(group.read_again)

    def predict_starts(self, requests: Sequence[StartRequest]) -> list[list[Row]]:
        """See `ottla.audit.pipeline.Runner`."""
        files = self.plan.inventory.files
        if _is_near(self.plan) and len(requests) <= DRIVER_STARTS:
            checkpoints = Checkpoints(files)
            return [request.rows(checkpoints, files) for request in requests]
        return _carried_out(self.spark, "ottla.spark.tasks:start", files, requests)

    def read_coordinators(self, requests: Sequence[ReadRequest]) -> list[ReadAnswer | None]:
        """See `ottla.audit.pipeline.Runner`."""
        if sum(request.size for request in requests) <= DRIVER_BYTES:
            return [request.rows() for request in requests]
        return _carried_out(self.spark, "ottla.spark.tasks:read", None, requests)


def _carried_out(
    spark: SparkSession, target: str, shared: Any, requests: Sequence[Any]
) -> list[Any]:
    """What tasks answer to requests, in their order."""
    if not requests:
        return []
    told = frame_of_work(spark, target, shared, requests, ANSWER_COLUMNS).toArrow()
    answers = dict(zip(*(told.column(name).to_pylist() for name in ("id", "data")), strict=True))
    return [pickle.loads(answers[number]) for number in range(len(requests))]


def _bin_bytes(spark: SparkSession, byte_count: int) -> int:
    """Bytes of a task: enough for it to be worth one, and something for every core."""
    if is_connect(spark):
        return BIN_BYTES
    tasks: int = spark.sparkContext.defaultParallelism * TASKS_A_CORE
    return min(BIN_BYTES, max(LEAST_BIN_BYTES, byte_count // tasks))


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
    scan = run_in_worker("ottla.spark.tasks:scan", bins)
    return map_in_arrow(spark.range(0, len(bins), 1, len(bins)), scan, CHUNK_COLUMNS)


def _chunk_rows(spark: SparkSession, bins: Bins) -> list[dict[str, Any]]:
    """The chunk table on the driver. A task of an RDD costs half of what one of a frame does."""
    if is_connect(spark):
        found: list[dict[str, Any]] = _chunks(spark, bins).toArrow().to_pylist()
        return found
    numbers = spark.sparkContext.parallelize(range(len(bins)), len(bins))
    rows = numbers.mapPartitions(run_rows_in_worker("ottla.spark.tasks:scan_rows", bins)).collect()
    return [dict(zip(CHUNK_NAMES, row, strict=True)) for row in rows]


def _judged_here(rows: list[dict[str, Any]], context: Context) -> Iterator[JudgedGroup]:
    rows.sort(key=itemgetter("group"))
    surroundings = Surroundings(Checkpoints(context.inventory.files), context.topic_configs)
    for _, group in groupby(rows, itemgetter("group")):
        yield judge_group(group, context.inventory, surroundings)


def _judged_by_tasks(chunks: DataFrame, context: Context) -> Iterator[JudgedGroup]:
    judge = run_table_in_worker("ottla.spark.tasks:judge", context)
    judged = apply_in_arrow(chunks, "group", judge, JUDGED_COLUMNS)
    for data in judged.toArrow().column("data"):
        # Made by a task of this job.
        yield pickle.loads(data.as_buffer())
