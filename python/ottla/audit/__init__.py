"""The audit of logs on disk: is this log sound, and if not, what is wrong, where, and what to do.

`inventory` says what lies there, `plan` what to scan, `run` scans it, `result` holds what was found
and `explain` tells what it means. `reading` gives the records a consumer would get.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, get_args

from ottla.audit.findings import Finding
from ottla.audit.internal_topics import with_coordinators
from ottla.audit.plan import LEAST_SPLIT_BYTES, SPLIT_BYTES, make_plan
from ottla.audit.result import AuditResult, Summary, make_result
from ottla.audit.run import Progress, default_threads, run_plan
from ottla.audit.tables import Table
from ottla.logs.columns import Column
from ottla.logs.listing import take_inventory
from ottla.logs.reading import Damage, Isolation, read_partition
from ottla.logs.rebuild import RebuiltPartition, rebuild_side_files
from ottla.logs.recovery import RecoveryPrediction, predict_recovery
from ottla.records import decode_record
from ottla.severity import SEVERITIES, Severity
from ottla.storage import AnyFiles, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.plan import Plan

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

Level = Literal["crc", "decode", "full"]
"""`crc` never looks inside a batch, `decode` inflates and reads its records, `full` holds them
against every rule of the format."""


def audit(
    source: Source | Sequence[Source] = (),
    *,
    topics: Sequence[str] | None = None,
    level: Level = "full",
    threads: int | None = None,
    fail_on: Severity = "error",
    progress: Progress | None = None,
    max_mb_per_s: float | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    split_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> AuditResult:
    """Audits a broker's log directory, a partition directory, segment files, or several of these.

    Nothing is written, and what cannot be read is a finding (`unreadable`), not an exception.

        >>> from ottla.audit import audit  # the same as ottla.audit
        >>> result = audit("examples/data", topics=["orders"])
        >>> result.summary.partitions, result.exit_code
        (2, 0)

    Args:
        source: one path or several, also into object stores (``s3://bucket/logs``); a directory
            that holds log directories will do.
        topics: patterns as of the shell (``orders-*``) of the topics to audit; all by default.
        level: how deep to look.
        threads: files and ranges of files scanned at once; by default one for every core this
            process may use.
        fail_on: the severity from which `AuditResult.raise_for_findings` raises.
        progress: called with the bytes read and the bytes to be read, by one thread at a time.
        max_mb_per_s: bound on what all threads together read a second, in 10⁶ bytes.
        replicas: further paths by the name of the copy they are of. Copies of one partition are
            compared with each other; so are those under several paths of `source`, if they are of
            one cluster as far as `meta.properties` tells.
        topic_configs: settings by topic or pattern, as in ``{"orders": {"cleanup.policy":
            "compact"}}``: `cleanup.policy` and `remote.storage.enable` help to tell gaps apart.
        split_bytes: files larger than this are cut into ranges of as many bytes, which threads
            share, at least 65,536; by default 64 MiB with several threads, and no cuts with one.
            The result does not depend on it.
        storage_options: settings of object stores, as of `ottla.storage.files_of`.

    Raises:
        ValueError: an argument is out of its range.
        StorageError: a URI leads to no store.
        MissingDependencyError: a source is in an object store, and obstore is not installed.
        KeyboardInterrupt: on Ctrl-C, within moments.
    """
    check_arguments(level=level, fail_on=fail_on, split_bytes=split_bytes)
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}, not at least 1")
    if max_mb_per_s is not None and not max_mb_per_s > 0:
        raise ValueError(f"max_mb_per_s is {max_mb_per_s}, not above 0")
    threads = threads or default_threads()
    if split_bytes is None and threads > 1:
        split_bytes = SPLIT_BYTES
    plan = plan_audit(source, topics=topics, replicas=replicas, storage_options=storage_options)
    plan = plan.split(split_bytes)
    outcome = run_plan(
        plan,
        level=level,
        threads=threads,
        max_mb_per_s=max_mb_per_s,
        progress=progress,
        topic_configs=topic_configs,
    )
    outcome = with_coordinators(plan, outcome)
    return make_result(plan, outcome, level=level, fail_on=fail_on)


def check_arguments(*, level: str, fail_on: str, split_bytes: int | None) -> None:
    """Raises ValueError for what no audit takes, wherever it runs."""
    if level not in get_args(Level):
        raise ValueError(f"level is {level!r}, not one of {', '.join(get_args(Level))}")
    if fail_on not in SEVERITIES:
        raise ValueError(f"fail_on is {fail_on!r}, not one of {', '.join(SEVERITIES)}")
    if split_bytes is not None and split_bytes < LEAST_SPLIT_BYTES:
        raise ValueError(f"split_bytes is {split_bytes}, not at least {LEAST_SPLIT_BYTES}")


def plan_audit(
    source: Source | Sequence[Source] = (),
    *,
    topics: Sequence[str] | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of an audit, whoever carries it out; no file is cut yet.

    Raises:
        ValueError: there is nothing to audit.
        StorageError: a URI leads to no store.
    """
    sources = _paths(source)
    named = [(name, path) for name, paths in (replicas or {}).items() for path in _paths(paths)]
    if not sources and not named:
        raise ValueError("there is no source and no replica to audit")
    inventory = take_inventory(sources, named, files=AnyFiles(storage_options))
    return make_plan(inventory, tuple(topics or ()))


def _paths(source: Source | Sequence[Source]) -> list[Source]:
    if isinstance(source, (str, bytes, os.PathLike)):
        return [source]
    return list(source)
