"""A finding, as passed between the stages of an audit, and as displayed in tables and reports.

The engine detects faults. A `PlacedFinding` locates one by paths of the plan, so that no stage has
to parse a displayed name; `result` turns it into a `Finding` once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from ottla.audit.catalogue.explain import explain
from ottla.severity import SEVERITIES, Severity
from ottla.text import visible_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla import _engine

UNREADABLE = "unreadable"
"""The finding that something given was not audited (exit status 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a finding says, whether its place is a path of the plan or a displayed name."""

    name: str
    severity: Severity
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


_SAID = tuple(field.name for field in fields(Fault))
_said = attrgetter(*_SAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Fault):
    """A fault, its place, and what was expected.

    The fields are the columns of the `findings` table; see `docs/tables.md`.
    """

    file: str | None
    topic: str | None
    partition: int | None
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFinding(Fault):
    """A fault at a place of the plan."""

    path: bytes | None
    """The file or directory."""
    directory: bytes | None = None
    """Directory of the partition that it is about."""
    pattern: str | None = None
    """Pattern of topics, if it is not about a file."""

    def displayed(self, *, file: str | None, topic: str | None, partition: int | None) -> Finding:
        """Returns the finding as displayed in tables and reports."""
        # Sentences and commands quote names of strangers.
        said: dict[str, Any] = dict(zip(_SAID, map(visible_all, _said(self)), strict=True))
        return Finding(file=file, topic=topic, partition=partition, **said)


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
    return PlacedFinding(
        name=finding.name,
        severity=finding.severity,
        path=path,
        directory=directory,
        message=finding.message,
        position=finding.position,
        size=finding.size,
        first_offset=finding.first_offset,
        last_offset=finding.last_offset,
        record_index=finding.record_index,
        producer_id=finding.producer_id,
        next_good_offset=finding.next_good_offset,
        cause=finding.cause,
        replica=replica,
        good_replicas=good_replicas,
        commands=commands,
        expected=finding.expected,
        found=finding.found,
    )


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
