"""The findings of an audit in groups of one cause, each of which is an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.audit.judge.packed import rows_about
from ottla.audit.result.traces import LogEnd, group_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.audit.catalogue.findings import Findings
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.traces import Groups
    from ottla.logs.inventory import Partition


class Grouped(NamedTuple):
    """Findings in groups of one cause, each an event."""

    findings: Findings
    """Sorted by place."""
    partitions: Mapping[bytes, Partition]
    """Those with a finding, by directory."""
    groups: Groups


def group_by_cause(plan: Plan, outcome: Outcome, findings: Findings) -> Grouped:
    """Returns findings in groups of one cause.

    Args:
        plan: the plan of the audit.
        outcome: what came of it.
        findings: those of its findings that count, sorted by place.
    """
    directories = {directory for _, _, directory in findings.kinds}
    partitions = {p.directory: p for p in plan.partitions if p.directory in directories}
    return Grouped(findings, partitions, group_findings(findings, _ends(outcome, partitions)))


def _ends(outcome: Outcome, partitions: Mapping[bytes, Partition]) -> dict[bytes, LogEnd]:
    """Returns the ends of the logs with a finding, by directory."""
    ends: dict[bytes, LogEnd] = {}
    for partition, row in rows_about(outcome.tables["metrics"], partitions):
        if partition.is_whole and partition.has_segments:
            last = partition.segments[-1]
            known = ends.get(partition.directory)
            ends[partition.directory] = LogEnd(
                offset=max(row["log_end_offset"], known.offset if known else 0),
                segment=last.path,
                size=last.size,
                is_clean=partition.stopped_cleanly,
            )
    return ends
