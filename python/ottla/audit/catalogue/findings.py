"""Findings made, sorted and counted.

What a finding is made of is loaded with the first one: most logs have none.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.catalogue.explain import explain
from ottla.logs.lazy import LazySequence
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import TypeAlias

    from ottla.audit.catalogue.finding import PlacedFinding

    Kind: TypeAlias = tuple[str, Severity, bytes | None]
    """Name, severity, and directory of the partition."""

UNREADABLE = "unreadable"
"""The finding that something given was not audited (exit status 3)."""


class Findings(LazySequence["PlacedFinding"]):
    """Findings that the engine holds: a log may have thousands, of which few are ever displayed."""

    def __init__(self, found: _engine.PlacedFindings) -> None:
        self.found = found
        """The same as the engine has them."""

    @classmethod
    def of(cls, rows: Iterable[PlacedFinding]) -> Findings:
        """Returns findings in their order."""
        return cls(_engine.PlacedFindings([*rows]))

    @classmethod
    def in_order(cls, parts: Sequence[_engine.PlacedFindings]) -> Findings:
        """Returns findings sorted by file and position."""
        return cls(_engine.PlacedFindings.in_order(parts))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[PlacedFinding]:
        return map(self._item, range(len(self)))

    def _item(self, number: int) -> PlacedFinding:
        from ottla.audit.catalogue.finding import PlacedFinding

        return PlacedFinding._make(self.found.row(number))

    def some(self, numbers: Sequence[int]) -> Findings:
        """Returns some findings by their numbers."""
        return Findings(self.found.some(numbers))

    def named(self, names: AbstractSet[str]) -> Iterator[PlacedFinding]:
        """Yields the findings of some names."""
        return map(self._item, self.found.named(names))

    @cached_property
    def kinds(self) -> Mapping[Kind, int]:
        """How many there are of each name, severity and directory of a partition.

        Most answers need no more than this.
        """
        return self.found.kinds()


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


def severity_counts(kinds: Mapping[Kind, int]) -> dict[Severity, int]:
    """Returns the number of each severity, in descending order, including zeros."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for (_, severity, _), count in kinds.items():
        counts[severity] += count
    return counts


def count_of(name: str, kinds: Mapping[Kind, int]) -> int:
    """Returns the number of findings of a name."""
    return sum(count for (known, _, _), count in kinds.items() if known == name)
