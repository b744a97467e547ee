"""Findings made, sorted and counted.

What a finding is made of is loaded with the first one: most logs have none.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.explain import explain
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.finding import PlacedFinding

    Kind: TypeAlias = tuple[str, Severity, bytes | None]
    """Name, severity, and directory of the partition."""

UNREADABLE = "unreadable"
"""The finding that something given was not audited (exit status 3)."""


def in_order(findings: Sequence[PlacedFinding]) -> list[PlacedFinding]:
    """Returns findings sorted by file and position."""
    return _engine.sorted_findings(findings)


def kinds_of(findings: Sequence[PlacedFinding]) -> Mapping[Kind, int]:
    """Returns how many findings there are of each name, severity and directory of a partition.

    A log may have thousands of findings, of which most answers need no more than this.
    """
    return _engine.count_findings(findings)


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

    return map(partial(tuple.__new__, PlacedFinding), rows)


def severity_counts(kinds: Mapping[Kind, int]) -> dict[Severity, int]:
    """Returns the number of each severity, in descending order, including zeros."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for (_, severity, _), count in kinds.items():
        counts[severity] += count
    return counts


def count_of(name: str, kinds: Mapping[Kind, int]) -> int:
    """Returns the number of findings of a name."""
    return sum(count for (known, _, _), count in kinds.items() if known == name)
