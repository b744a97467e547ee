"""Findings and events as tables show them, made when somebody first asks for them.

How many there are of each severity is known before. An audit may have thousands of findings, of
which a report shows a few and an exit status none.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.catalogue.explain import commands_at
from ottla.audit.catalogue.findings import severity_counts
from ottla.audit.result.selection import EVERYTHING
from ottla.audit.result.tables import CHUNK_ROWS
from ottla.logs.names import display
from ottla.text import visible_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.audit.catalogue.finding import Finding, PlacedFinding
    from ottla.audit.catalogue.findings import Findings
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.grouped import Grouped
    from ottla.audit.result.selection import Selection
    from ottla.logs.columns import Row
    from ottla.severity import Severity


class _Paths(dict[bytes, tuple[str, str]]):
    """Of each path how it is displayed, relative to the base and whole: findings share them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __missing__(self, path: bytes) -> tuple[str, str]:
        shown = self[path] = self._plan.inventory.display(path), display(path)
        return shown


class ShownFindings:
    """The findings of an audit that count, and the events they show."""

    def __init__(self, plan: Plan, outcome: Outcome, selection: Selection) -> None:
        self._plan = plan
        self._outcome = outcome
        self._paths = _Paths(plan)
        self.counting = outcome.findings
        """The findings that count, sorted by place."""
        if selection != EVERYTHING:
            shown = self._displayed(outcome.findings, None)
            counting = [number for number, row in enumerate(shown) if selection.has(row)]
            self.counting = outcome.findings.some(counting)
        self._grouped = _grouped(plan, outcome, self.counting)
        groups = self._grouped.groups if self._grouped else None
        self.event_count = len(groups) if groups else 0
        self.event_counts: dict[Severity, int] = (
            groups.severity_counts if groups else severity_counts({})
        )
        """Number of events of each severity."""

    def event_rows(self) -> Iterator[Row]:
        """Yields the rows of the table `events`, the gravest first."""
        rows, _ = self._events
        yield from rows

    def finding_rows(self) -> Iterator[Finding]:
        """Yields the rows of the table `findings`, by file and position."""
        order, numbers = self._order, self._events[1]
        return self._displayed(self.counting.some(order), [numbers[index] for index in order])

    @property
    def places(self) -> tuple[str, ...]:
        """For each row of `findings`, the directory of its partition, or its file."""
        return tuple(self._place_of(self.counting[index]) for index in self._order)

    @property
    def segments(self) -> dict[str, list[str]]:
        """Names of the live segments in the directories of partitions with a finding, in order."""
        return {
            self._plan.inventory.display(partition.directory): [
                display(segment.name) for segment in partition.segments
            ]
            for partition in (self._grouped.partitions.values() if self._grouped else ())
            if partition.topic is not None
        }

    @cached_property
    def _events(self) -> tuple[Sequence[Row], Sequence[int]]:
        """The fields of the events, and for each finding that counts the number of its event."""
        if self._grouped is None:
            return (), ()
        from ottla.audit.result.events import make_events

        return make_events(self._outcome, self._grouped, self._paths)

    @cached_property
    def _order(self) -> Sequence[int]:
        """The findings that count by number, as they are displayed: by file, then by position."""
        paths = self.counting.found.paths()
        files = ["" if path is None else self._paths[path][0] for path in paths]
        return sorted(range(len(files)), key=files.__getitem__)

    @cached_property
    def _places(self) -> dict[bytes | None, tuple[str | None, int | None]]:
        """Topic and partition of the directories with a finding."""
        wanted = {directory for _, _, directory in self._outcome.findings.kinds}
        found = {p.directory: p for p in self._plan.partitions if p.directory in wanted}
        return {directory: (p.topic, p.partition) for directory, p in found.items()}

    def _displayed(self, findings: Findings, events: Sequence[int] | None) -> Iterator[Finding]:
        """Yields findings as tables have them, each with the number of its event."""
        if not findings:
            # What a finding is made of is loaded with the first one.
            return
        from ottla.audit.catalogue.finding import Finding

        for start in range(0, len(findings), CHUNK_ROWS):
            some = range(start, min(start + CHUNK_ROWS, len(findings)))
            rows = _engine.finding_rows(
                findings.found.some(some),
                None if events is None else events[some.start : some.stop],
                self._paths,
                self._places,
                commands_at,
                visible_all,
            )
            yield from map(partial(tuple.__new__, Finding), rows)

    def _file_of(self, placed: PlacedFinding) -> str | None:
        return None if placed.path is None else self._paths[placed.path][0]

    def _place_of(self, placed: PlacedFinding) -> str:
        inventory = self._plan.inventory
        if placed.directory not in (None, inventory.base):
            return inventory.display(placed.directory)
        topic, _ = self._places.get(placed.directory or b"") or (placed.pattern, None)
        return self._file_of(placed) or topic or ""


def _grouped(plan: Plan, outcome: Outcome, findings: Findings) -> Grouped | None:
    """Returns findings in groups of one cause; None where there is none, as in most audits."""
    if not findings:
        return None
    from ottla.audit.result.grouped import group_by_cause

    return group_by_cause(plan, outcome, findings)
