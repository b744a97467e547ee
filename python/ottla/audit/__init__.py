"""The audit of logs on disk: what is wrong, where, what is lost, and what to do.

`pipeline` defines the order of the stages: `plan` selects what to scan, `run` scans it, `judge`
derives findings, `result` holds the tables, and `catalogue` explains the findings. Files are read
by `ottla.logs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.catalogue.finding import Finding
    from ottla.audit.pipeline import Level
    from ottla.audit.result.result import AuditResult, Summary
    from ottla.audit.result.tables import Table
    from ottla.audit.run.pace import Progress
    from ottla.logs.columns import Column
    from ottla.logs.reading import Damage, Isolation, read_partition
    from ottla.logs.rebuild import RebuiltPartition, rebuild_side_files
    from ottla.logs.recovery import RecoveryPrediction, predict_recovery
    from ottla.records import decode_record
    from ottla.severity import Severity
    from ottla.storage import Source
else:
    from ottla.on_demand import on_demand

    __getattr__ = on_demand(
        __name__,
        {
            "AuditResult": "ottla.audit.result.result",
            "Column": "ottla.logs.columns",
            "Damage": "ottla.logs.reading",
            "Finding": "ottla.audit.catalogue.finding",
            "Isolation": "ottla.logs.reading",
            "Level": "ottla.audit.pipeline",
            "Progress": "ottla.audit.run.pace",
            "RebuiltPartition": "ottla.logs.rebuild",
            "RecoveryPrediction": "ottla.logs.recovery",
            "Severity": "ottla.severity",
            "Source": "ottla.storage",
            "Summary": "ottla.audit.result.result",
            "Table": "ottla.audit.result.tables",
            "decode_record": "ottla.records",
            "predict_recovery": "ottla.logs.recovery",
            "read_partition": "ottla.logs.reading",
            "rebuild_side_files": "ottla.logs.rebuild",
        },
    )

__all__ = [
    "AuditResult",
    "Column",
    "Damage",
    "Finding",
    "Isolation",
    "Level",
    "Progress",
    "RebuiltPartition",
    "RecoveryPrediction",
    "Severity",
    "Source",
    "Summary",
    "Table",
    "audit",
    "decode_record",
    "predict_recovery",
    "read_partition",
    "rebuild_side_files",
]


def audit(
    source: Source | Sequence[Source] = (),
    *,
    topics: str | Sequence[str] | None = None,
    level: Level = "full",
    threads: int | None = None,
    fail_on: Severity = "error",
    progress: Progress | None = None,
    max_mb_per_s: float | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    split_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    follow_links: bool = False,
    must_exist: bool = True,
) -> AuditResult:
    """Audits a broker's log directory, a partition directory, segment files, or several of them.

    Nothing is written. Beside other paths, one that cannot be read is a finding (`unreadable`).

        >>> from ottla.audit import audit  # the same as ottla.audit
        >>> result = audit("examples/data", topics="orders")
        >>> result.summary.partitions, result.exit_code
        (2, 0)

    Args:
        source: one or several paths, local or in object stores; also of directories of these.
        topics: a shell pattern (``orders-*``) of the topics to audit, or several; all by default.
        level: what to check.
        threads: to list and scan in parallel; by default one per core that this process may use.
        fail_on: the lowest severity for which `AuditResult.raise_for_findings` raises.
        progress: called with the bytes read and the bytes to read, by one thread at a time.
        max_mb_per_s: limit on reading, over all threads, in 10⁶ bytes per second.
        replicas: further paths, by the name of their replica. Copies of a partition are compared;
            so are those below several paths of `source`, unless they are of different clusters.
        topic_configs: ``{"orders": {"cleanup.policy": "compact"}}``, by topic or pattern: that and
            `remote.storage.enable` help to explain gaps.
        split_bytes: size of the ranges that larger files are split into, at least 65,536.
        storage_options: settings of object stores; see `ottla.storage.files_of`.
        follow_links: whether links below the sources may lead out of them; else they are findings.
        must_exist: whether to raise where none of the paths is there; else each is a finding.

    Raises:
        OSError: none of the paths is there to be read, such as ``FileNotFoundError``.
        ValueError, TypeError: an argument is out of range, or of another kind.
        StorageError, MissingDependencyError: a URI leads to no store; obstore is not installed.
        KeyboardInterrupt: on Ctrl-C, within moments.
    """
    from ottla.audit.run.threads import audit_by_threads

    return audit_by_threads(
        source,
        topics=topics,
        level=level,
        threads=threads,
        fail_on=fail_on,
        progress=progress,
        max_mb_per_s=max_mb_per_s,
        replicas=replicas,
        topic_configs=topic_configs,
        split_bytes=split_bytes,
        storage_options=storage_options,
        follow_links=follow_links,
        must_exist=must_exist,
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
