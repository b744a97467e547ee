"""Findings made, sorted and counted.

What a finding is made of is loaded with the first one: most logs have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.audit.catalogue.explain import explain
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla import _engine
    from ottla.audit.catalogue.finding import PlacedFinding

UNREADABLE = "unreadable"
"""The finding that something given was not audited (exit status 3)."""


def by_place(finding: PlacedFinding) -> tuple[bytes, int, int, str]:
    """Sort key of findings: by file and position."""
    return finding.path or b"", finding.position or 0, finding.first_offset or 0, finding.name


def make_finding(
    name: str,
    message: str,
    *,
    path: bytes | None,
    directory: bytes | None = None,
    pattern: str | None = None,
    first_offset: int | None = None,
    expected: str | None = None,
    found: str | None = None,
) -> PlacedFinding:
    """Returns a finding with the severity that the catalogue has for its name."""
    from ottla.audit.catalogue.finding import PlacedFinding

    return PlacedFinding(
        name=name,
        severity=explain(name).severity,
        path=path,
        directory=directory,
        pattern=pattern,
        message=message,
        first_offset=first_offset,
        expected=expected,
        found=found,
    )


def place_finding(
    finding: _engine.Finding,
    *,
    path: bytes,
    directory: bytes | None,
    replica: str | None = None,
    good_replicas: tuple[str, ...] | None = None,
    commands: tuple[str, ...] = (),
) -> PlacedFinding:
    """Returns a finding of the engine at its place."""
    from ottla.audit.catalogue.finding import PlacedFinding

    beside = (replica, good_replicas, commands, path, directory, None)
    return PlacedFinding._make((*finding.said(), *beside))


def placed_rows(rows: Sequence[tuple[Any, ...]]) -> Iterable[PlacedFinding]:
    """Returns findings of the engine that it has given their places (`PartitionScan.placed`)."""
    if not rows:
        return ()
    from ottla.audit.catalogue.finding import PlacedFinding

    return map(PlacedFinding._make, rows)


class HasSeverity(Protocol):
    """A finding or an event."""

    @property
    def severity(self) -> Severity:
        """How grave it is."""


def severity_counts(findings: Iterable[HasSeverity]) -> dict[Severity, int]:
    """Returns the number of each severity, in descending order, including zeros."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
