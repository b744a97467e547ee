"""One finding, as every table, report and output form carries it.

The engine finds what is wrong inside segments; names and small files tell what is wrong around
them. Both end up here, so nobody downstream asks where a finding came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNREADABLE = "unreadable"
"""The finding whose presence means that something asked for was not audited (exit status 3)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, where, and what was expected there.

    The fields are the columns of the `findings` table; `docs/tables.md` tells what each holds.
    """

    name: str
    severity: Severity
    file: str | None
    topic: str | None
    partition: int | None
    message: str
    position: int | None = None
    size: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    record_index: int | None = None
    producer_id: int | None = None
    next_good_offset: int | None = None
    cause: str | None = None
    replica: str | None = None
    good_replicas: tuple[str, ...] | None = None
    commands: tuple[str, ...] = ()
    expected: str | None = None
    found: str | None = None


def by_place(finding: Finding) -> tuple[str, int, int, str]:
    """Sorts findings as tables and reports have them."""
    return finding.file or "", finding.position or 0, finding.first_offset or 0, finding.name


def from_engine(
    finding: Mapping[str, Any],
    *,
    file: str | None,
    topic: str | None,
    partition: int | None,
    commands: tuple[str, ...] = (),
) -> Finding:
    """The engine's finding with the names of the file and partition it belongs to."""
    return Finding(
        name=finding["name"],
        severity=finding["severity"],
        file=file,
        topic=topic,
        partition=partition,
        message=finding["message"],
        position=finding["position"],
        size=finding["size"],
        first_offset=finding["first_offset"],
        last_offset=finding["last_offset"],
        record_index=finding["record_index"],
        producer_id=finding["producer_id"],
        next_good_offset=finding["next_good_offset"],
        cause=finding["cause"],
        replica=finding.get("replica"),
        good_replicas=tuple(good) if (good := finding.get("good_replicas")) is not None else None,
        commands=commands,
        expected=finding["expected"] or None,
        found=finding["found"] or None,
    )


def severity_counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many findings of each severity, the gravest first; zeros included."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
