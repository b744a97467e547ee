"""Which findings have one cause: a finding of the log, and what shows it in other places.

The rules are in the engine (`rust/ottla-audit/src/traces.rs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.logs.lazy import LazySequence
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.audit.catalogue.findings import Findings


class LogEnd(NamedTuple):
    """The end of a partition's log."""

    offset: int
    """The log end offset."""
    segment: bytes
    """Path of the last segment."""
    size: int
    """Its size in bytes."""
    is_clean: bool
    """Whether the broker had stopped cleanly."""


class Group(NamedTuple):
    """Findings of one partition that have one cause, by index."""

    head: int
    """The cause, or what shows it best."""
    members: tuple[int, ...]
    """All of them, the head first."""
    severity: Severity
    """That of the gravest."""
    lost_end: tuple[int, int] | None = None
    """The first and the last of the offsets that the log had at its end, if it lost it."""
    is_contradicted: bool = False
    """Whether the head claims offsets beyond the end that no other file confirms."""


class Groups(LazySequence[Group]):
    """Groups, made as they are read: how grave they are is known before."""

    __slots__ = ("found",)

    def __init__(self, found: _engine.FindingGroups) -> None:
        self.found = found
        """The same as the engine has them."""

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Group]:
        return map(Group._make, map(self.found.row, range(len(self))))

    def _item(self, number: int) -> Group:
        return Group._make(self.found.row(number))

    @property
    def severity_counts(self) -> dict[Severity, int]:
        """The number of each severity, in descending order, including zeros."""
        return dict(zip(SEVERITIES, self.found.severity_counts(), strict=True))


def group_findings(findings: Findings, ends: Mapping[bytes, LogEnd]) -> Groups:
    """Returns the findings in groups of one cause; every finding is in one of them.

    Args:
        findings: all findings, sorted by place.
        ends: the ends of logs, by directory; those that are not known are left out.
    """
    return Groups(_engine.group_findings(findings.found, ends))
