"""The ends of logs, where consumer groups or other copies know of more than the log holds.

What lies beside a log judges its end as soon as it is merged (`rust/ottla-audit`); these witnesses
come once all logs are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.catalogue.findings import Findings
from ottla.audit.judge.packed import rows_about
from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan

TAILS = ("truncated-tail", "garbage-tail", "zero-tail")
"""Findings of bytes behind the last batch of a segment."""

Witness = tuple[str, int]
"""What knows of more, in words, and where the log ended at least."""


def with_witnesses_elsewhere(plan: Plan, outcome: Outcome) -> Outcome:
    """Returns the outcome with the bytes behind a log as an error where such a witness is."""
    kinds = outcome.findings.kinds
    tails = {directory for name, _, directory in kinds if name in TAILS and directory is not None}
    witnesses: dict[bytes, list[Witness]] = {}
    for finding in outcome.findings if tails else ():
        if finding.directory in tails and (witness := _witness(finding)) is not None:
            witnesses.setdefault(finding.directory, []).append(witness)
    if not witnesses:
        return outcome
    active = {
        partition.segments[-1].path: partition.directory
        for partition in plan.partitions
        if partition.directory in witnesses and partition.is_whole and partition.has_segments
    }
    ends: dict[bytes, int] = {}
    for partition, row in rows_about(outcome.tables["metrics"], witnesses):
        known = ends.get(partition.directory, 0)
        ends[partition.directory] = max(known, row["log_end_offset"])

    def judged(finding: PlacedFinding) -> PlacedFinding:
        directory = active.get(finding.path or b"")
        if finding.name not in TAILS or directory not in ends:
            return finding
        return _judged(finding, ends[directory], witnesses[directory])

    return outcome._replace(findings=Findings.of(map(judged, outcome.findings)))


def _witness(finding: PlacedFinding) -> Witness | None:
    """Returns what a finding knows of the end of a log.

    That several copies have more proves nothing of one that was down, and is info.
    """
    first, last = finding.first_offset, finding.last_offset
    if first is None or last is None or finding.severity == "info":
        return None
    if finding.name == "commit-beyond-end":
        return f"the committed offset {first}", first
    if finding.name == "replica-difference" and finding.good_replicas:
        return f"the copy on {listed(finding.good_replicas, 2)}", last + 1
    return None


def _judged(finding: PlacedFinding, end: int, witnesses: Iterable[Witness]) -> PlacedFinding:
    proof = _engine.proved_end(end, list(_furthest(witnesses)))
    if proof is None:
        return finding
    known = finding.last_offset if finding.severity == "error" else None
    if known is not None and known >= (proof.last_offset or 0):
        return finding
    return finding._replace(
        severity=proof.severity,
        first_offset=proof.first_offset,
        last_offset=proof.last_offset,
        message=f"{finding.message}; {proof.message}",
    )


def _furthest(witnesses: Iterable[Witness]) -> Iterator[Witness]:
    """Yields the witness of each kind that knows most: there may be thousands of groups."""
    best: dict[str, Witness] = {}
    for witness in witnesses:
        kind = witness[0].rpartition(" ")[0]
        best[kind] = max(best.get(kind, witness), witness, key=lambda known: known[1])
    yield from best.values()
