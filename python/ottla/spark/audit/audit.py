"""`ottla.spark.audit`: the audit of `ottla.audit`, run by tasks of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.audit.pipeline import check_arguments, run_audit
from ottla.audit.plan.plan import holding, plan_audit
from ottla.audit.run.pace import check_rate
from ottla.spark.audit.result import SparkAuditResult
from ottla.spark.audit.runner import ClusterRunner
from ottla.spark.setup.jobs import job
from ottla.spark.work.packing import TaskSize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from ottla.audit import Level, Severity, Source

BIN_SIZE = TaskSize(max_bytes=1 << 30, min_bytes=32 << 20, tasks_per_core=4)
"""A task costs some 30 ms, whatever it does, and a core checks gigabytes per second."""


def audit(
    spark: SparkSession,
    uri: Source | Sequence[Source],
    *,
    topics: str | Sequence[str] | None = None,
    level: Level = "full",
    split_bytes: int | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    fail_on: Severity = "error",
    storage_options: Mapping[str, str] | None = None,
    follow_links: bool = False,
    max_mb_per_s: float | None = None,
    must_exist: bool = True,
) -> SparkAuditResult:
    """Audits log directories, partitions or segments that driver and executors can read.

    When this function returns, everything has been scanned once. The tables of the result are data
    frames of the findings; only `batches` and `records` read the files, when they are used. A path
    that cannot be read is a finding (`unreadable`), not a failed job, as long as there is another.

        >>> import ottla.spark  # doctest: +SKIP
        >>> result = ottla.spark.audit(ottla.spark.session(), "examples/data")  # doctest: +SKIP
        >>> result.findings.groupBy("name").count().show()  # doctest: +SKIP

    Args:
        spark: a session, classic or Spark Connect; see `ottla.spark.session`.
        uri: one or several paths; see `ottla.audit`.
        topics: a shell pattern of the topics to audit, or several; all by default.
        level: what to check; see `ottla.audit`.
        split_bytes: size of the ranges into which larger files are split, at least 65,536; by
            default 1 GiB, or less if there is little work for each core. The result does not depend
            on it.
        replicas: further paths, by the name of the replica they belong to.
        topic_configs: configuration by topic or pattern; see `ottla.audit`.
        fail_on: the lowest severity for which `AuditResult.raise_for_findings` raises.
        storage_options: settings of object stores, sent to the executors; see `ottla.audit`.
        follow_links: whether links may lead out of the given paths; see `ottla.audit`.
        max_mb_per_s: limit on the scan, over all tasks, in 10⁶ bytes per second. Each task has the
            share of a core; on Spark Connect, which does not report their number, that of a task.
        must_exist: whether to raise where none of the paths is there; see `ottla.audit`.

    Raises:
        ValueError: an argument is out of range.
        OSError: none of the paths is there to be read.
        SparkError: a job failed; the message says why and what to do.
    """
    check_arguments(level=level, fail_on=fail_on, split_bytes=split_bytes)
    check_rate(max_mb_per_s)
    plan = plan_audit(
        uri,
        topics=topics,
        replicas=replicas,
        storage_options=storage_options,
        follow_links=follow_links,
        must_exist=must_exist,
    )
    bin_bytes = BIN_SIZE.bytes_for(spark, plan.byte_count)
    with holding(plan.split(split_bytes or bin_bytes)) as held:
        runner = ClusterRunner(
            spark,
            held,
            level=level,
            bin_bytes=bin_bytes,
            topic_configs=topic_configs,
            max_mb_per_s=max_mb_per_s,
        )
        with job("the audit", spark):
            outcome, collected = run_audit(runner, level=level, fail_on=fail_on)
    return SparkAuditResult(spark, runner.plan, outcome, collected)
