"""`ottla.spark.audit`: the audit of `ottla.audit`, carried out by tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.audit.pipeline import check_arguments, run_audit
from ottla.audit.plan.plan import plan_audit
from ottla.spark.audit.result import AuditResult
from ottla.spark.audit.runner import ClusterRunner
from ottla.spark.setup.jobs import job
from ottla.spark.work.packing import TaskSize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from ottla.audit import Level, Severity, Source

BIN_SIZE = TaskSize(max_bytes=1 << 30, min_bytes=32 << 20, tasks_per_core=4)
"""A task costs some 30 ms whatever it does, and a core checks gigabytes a second."""


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
    bin_bytes = BIN_SIZE.bytes_for(spark, plan.byte_count)
    runner = ClusterRunner(
        spark,
        plan.split(split_bytes or bin_bytes),
        level=level,
        bin_bytes=bin_bytes,
        topic_configs=topic_configs,
    )
    with job("the audit", spark):
        outcome, collected = run_audit(runner, level=level, fail_on=fail_on)
    return AuditResult(spark, runner.plan, outcome, collected)
