"""Findings and events as tables show them, made when somebody first asks for them.

How many there are of each severity is known before. An audit may have thousands of findings, of
which a report shows a few and an exit status none.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from ottla.audit.catalogue.explain import commands
from ottla.audit.catalogue.findings import by_place, severity_counts
from ottla.audit.result.columns import EVENTS, FINDINGS
from ottla.audit.result.grouped import group_by_cause
from ottla.audit.result.selection import EVERYTHING
from ottla.logs.names import display

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.audit.catalogue.finding import Finding, PlacedFinding
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.events import Event
    from ottla.audit.result.grouped import Grouped
    from ottla.audit.result.selection import Selection
    from ottla.logs.columns import Row
    from ottla.severity import Severity


class ShownFindings:
    """The findings of an audit that count, and the events they show."""

    def __init__(self, plan: Plan, outcome: Outcome, selection: Selection) -> None:
        self._plan = plan
        self._outcome = outcome
        self.counting: Sequence[PlacedFinding] = outcome.findings
        """The findings that count, sorted by place."""
        if selection != EVERYTHING:
            displayed = [pair for pair in self._displayed if selection.has(pair[0])]
            selected = {id(placed) for _, placed in displayed}
            self.counting = [f for f in outcome.findings if id(f) in selected]
            self._displayed = displayed
        self._grouped: Grouped = group_by_cause(plan, outcome, self.counting)
        self.event_count = len(self._grouped.groups)
        self.event_counts: dict[Severity, int] = severity_counts(self._grouped.groups)
        """Number of events of each severity."""

    def event_rows(self) -> Iterator[Row]:
        """Yields the rows of the table `events`, the gravest first."""
        return map(attrgetter(*(column.name for column in EVENTS)), self._events[0])

    def finding_rows(self) -> Iterator[Row]:
        """Yields the rows of the table `findings`, by file and position."""
        numbers = self._events[1]
        event_of = {id(f): number for f, number in zip(self.counting, numbers, strict=True)}
        names = [column.name for column in FINDINGS]
        values = attrgetter(*names)
        for finding, placed in self._displayed:
            row = dict(zip(names, values(finding), strict=True))
            path = None if placed.path is None else display(placed.path)
            row["event"] = event_of[id(placed)]
            row["commands"] = finding.commands or tuple(commands(row, path))
            yield tuple(row.values())

    @property
    def places(self) -> tuple[str, ...]:
        """For each row of `findings`, the directory of its partition, or its file."""
        return tuple(self._place_of(finding, placed) for finding, placed in self._displayed)

    @property
    def segments(self) -> dict[str, list[str]]:
        """Names of the live segments in the directories of partitions with a finding, in order."""
        return {
            self._plan.inventory.display(partition.directory): [
                display(segment.name) for segment in partition.segments
            ]
            for partition in self._grouped.partitions.values()
            if partition.topic is not None
        }

    @cached_property
    def _events(self) -> tuple[list[Event], list[int]]:
        if not self._grouped.groups:
            return [], []
        from ottla.audit.result.events import make_events

        return make_events(self._plan, self._outcome, self._grouped)

    @cached_property
    def _displayed(self) -> list[tuple[Finding, PlacedFinding]]:
        """Findings as displayed, by file and position, each with its original."""
        plan = self._plan
        wanted = {finding.directory for finding in self.counting}
        partitions = {p.directory: p for p in plan.partitions if p.directory in wanted}
        displayed = []
        for placed in self.counting:
            partition = partitions.get(placed.directory or b"")
            finding = placed.displayed(
                file=None if placed.path is None else plan.inventory.display(placed.path),
                topic=partition.topic if partition else placed.pattern,
                partition=partition.partition if partition else None,
            )
            displayed.append((finding, placed))
        displayed.sort(key=lambda pair: (pair[0].file or "", *by_place(pair[1])[1:]))
        return displayed

    def _place_of(self, finding: Finding, placed: PlacedFinding) -> str:
        inventory = self._plan.inventory
        if placed.directory not in (None, inventory.base):
            return inventory.display(placed.directory)
        return finding.file or finding.topic or ""
