"""Which findings have one cause: a finding of the log, and what shows it in other places.

The catalogue says of each kind what it does as a cause (`effects`), and of which effects it can be
a trace (`trace_of`). Here is where cause and trace have to be for that; both are in one partition.
Finding the cause of a trace takes time in proportion to the logarithm of the number of findings.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.audit.catalogue.explain import causes, explain
from ottla.logs.names import classify, is_segment
from ottla.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ottla._engine import Explanation
    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.severity import Severity

Place: TypeAlias = "bytes | int | None"
"""The segment or the producer that a cause and its traces share, where they have to."""

INDEXES = ("offset-index", "time-index", "transaction-index")
"""Kinds of files whose entries alone do not prove that the log was longer."""

LOSES_END = "loses-end"
REPEATS_SEQUENCES = "repeats-sequences"
COMMIT_BEYOND_END = "commit-beyond-end"


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


def group_findings(findings: Sequence[PlacedFinding], ends: Mapping[bytes, LogEnd]) -> list[Group]:
    """Returns the findings in groups of one cause; every finding is in one of them.

    Args:
        findings: all findings, sorted by place.
        ends: the ends of logs, by directory; those that are not known are left out.
    """
    by_log: dict[bytes, list[int]] = {}
    for index, finding in enumerate(findings):
        by_log.setdefault(finding.directory or finding.path or b"", []).append(index)
    groups: list[Group] = []
    for directory, indexes in by_log.items():
        if len(indexes) == 1 and directory not in ends:
            groups.append(Group(indexes[0], (indexes[0],), findings[indexes[0]].severity))
        else:
            groups += _Log(findings, indexes, ends.get(directory)).groups()
    return groups


class _Causes:
    """Causes with one effect, by segment or producer, in the order of offsets."""

    def __init__(self) -> None:
        self.found: dict[Place, list[tuple[int, int]]] = {}
        """First offset and index of each."""
        self.without_offsets: dict[Place, int] = {}
        """The first cause of each place whose offsets are not known."""

    def add(self, place: Place, first: int | None, index: int) -> None:
        if first is None:
            self.without_offsets.setdefault(place, index)
        else:
            self.found.setdefault(place, []).append((first, index))

    def sort(self) -> None:
        for found in self.found.values():
            found.sort()

    def last_up_to(self, place: Place, offset: int) -> int | None:
        """Returns the last cause that begins at or below an offset."""
        found = self.found.get(place, [])
        at = bisect_right(found, (offset, sys.maxsize))
        return found[at - 1][1] if at else None

    def first_above(self, place: Place, offset: int) -> int | None:
        """Returns the first cause that begins above an offset."""
        found = self.found.get(place, [])
        at = bisect_right(found, (offset, sys.maxsize))
        return found[at][1] if at < len(found) else None


class _Log:
    """The findings of one partition."""

    def __init__(
        self, findings: Sequence[PlacedFinding], indexes: Sequence[int], end: LogEnd | None
    ) -> None:
        self._findings = findings
        self._indexes = indexes
        self._end = end
        self._causes: dict[str, _Causes] = {}
        self._cause_of: dict[int, int] = {}
        self._lost_end: dict[int, tuple[int, int]] = {}
        self._contradicted: set[int] = set()
        for index in indexes:
            finding = findings[index]
            if not _is_lawful(finding):
                for effect in explain(finding.name).effects:
                    place = _place(effect, finding)
                    causes = self._causes.setdefault(effect, _Causes())
                    causes.add(place, self._first(index), index)
        for causes in self._causes.values():
            causes.sort()

    def groups(self) -> list[Group]:
        """Returns the groups, in the order of their first findings."""
        for index in self._indexes:
            cause = self._cause(index)
            if cause is not None:
                self._cause_of[index] = cause
        if self._end is not None:
            self._join_lost_end(self._end)
        self._join_alike()
        members: dict[int, list[int]] = {}
        for index in self._indexes:
            head = index
            while head in self._cause_of:
                head = self._cause_of[head]
            members.setdefault(head, []).append(index)
        return [
            Group(
                head=head,
                members=(head, *(index for index in found if index != head)),
                severity=self._gravest(found) if found[1:] else self._findings[head].severity,
                lost_end=self._lost_end.get(head),
                is_contradicted=head in self._contradicted,
            )
            for head, found in members.items()
        ]

    def _gravest(self, indexes: Iterable[int]) -> Severity:
        """The highest severity of some findings."""
        return min((self._findings[index].severity for index in indexes), key=SEVERITIES.index)

    def _first(self, index: int) -> int | None:
        """The first offset of a cause; at the end of the log, the log end offset."""
        finding = self._findings[index]
        if finding.first_offset is None and self._is_at_end(finding):
            return None if self._end is None else self._end.offset
        return finding.first_offset

    def _is_at_end(self, finding: PlacedFinding) -> bool:
        """Whether nothing that can be read is behind it."""
        end = self._end
        if end is None or finding.path != end.segment:
            return False
        if finding.first_offset is not None and finding.first_offset >= end.offset:
            return True
        return (finding.position or 0) + (finding.size or 0) >= end.size

    def _cause(self, index: int) -> int | None:
        """Returns the cause of which a finding is a trace, if it is one of the log itself."""
        trace = self._findings[index]
        if _is_lawful(trace):
            return None
        for effect in explain(trace.name).trace_of:
            causes = self._causes.get(effect)
            if causes is None or effect == LOSES_END:
                continue
            cause = self._matching(effect, causes, trace)
            if cause is not None and cause != index:
                return cause
        return None

    def _matching(self, effect: str, causes: _Causes, trace: PlacedFinding) -> int | None:
        """Returns the cause with an effect that is where the trace says."""
        place = _place(effect, trace)
        is_beside = trace.path is not None and not is_segment(trace.path)
        if effect == "misplaces-batches" and is_beside and causes.found.get(place):
            return causes.found[place][0][1]
        if trace.first_offset is None or (effect == "disturbs-producer" and place is None):
            return None
        first, last = trace.first_offset, _last(trace)
        if effect == REPEATS_SEQUENCES:
            return self._repeated(causes, trace, first)
        if effect == "disturbs-producer" and explain(trace.name).stops == "read_committed":
            last = sys.maxsize
        if effect == "loses-markers":
            return causes.first_above(place, first)
        cause = causes.last_up_to(place, last)
        if effect in ("moves-batches", "changes-timestamps"):
            return causes.without_offsets.get(place) if cause is None else cause
        if cause is None:
            return None
        reach = _last(self._findings[cause])
        if effect in ("miscounts-offsets", "disturbs-producer"):
            reach += 1
        return cause if reach >= first else None

    def _repeated(self, causes: _Causes, trace: PlacedFinding, first: int) -> int | None:
        """Returns the batches whose sequences a trace has again."""
        own = causes.last_up_to(trace.producer_id, first)
        if own is not None and self._size(own) == _sequences_back(trace):
            return own
        any_producer = causes.last_up_to(None, first)
        if any_producer is not None and _last(self._findings[any_producer]) + 1 >= first:
            return any_producer
        return None

    def _size(self, index: int) -> int:
        """The number of offsets of a finding that has some."""
        finding = self._findings[index]
        return _last(finding) - (finding.first_offset or 0) + 1

    def _join_lost_end(self, end: LogEnd) -> None:
        """Joins what shows that the log had offsets behind its end."""
        shows = [
            index
            for index in self._indexes
            if LOSES_END in explain(self._findings[index].name).trace_of
        ]
        strong = [index for index in shows if self._proves(index, end)]
        found = self._causes.get(LOSES_END, _Causes()).found.get(None, [])
        at_end = [index for _, index in found if self._is_at_end(self._findings[index])]
        grave = [index for index in strong if self._findings[index].severity != "info"]
        if not strong:
            return
        head = at_end[0] if at_end else min(strong, key=self._weight)
        reach = max(self._last_claimed(index) for index in strong)
        witnesses = [index for index in strong if index != head]
        if grave:
            # Groups that committed offsets of an earlier topic of this name prove nothing.
            files = {self._findings[index].path for index in strong}
            is_sure = bool(at_end) or len(files) > 1 or not end.is_clean
            if is_sure:
                self._lost_end[head] = (
                    end.offset,
                    max(self._last_claimed(index) for index in grave),
                )
                witnesses += self._weaker(shows, end.offset, reach)
            else:
                self._contradicted.add(head)
        for index in witnesses:
            if index not in self._cause_of and index != head:
                self._cause_of[index] = head

    def _weaker(self, shows: Iterable[int], end: int, reach: int) -> list[int]:
        """Returns what a lost end explains, but does not prove it.

        Entries of indexes between the end and the last offset known, and open transactions.
        """
        found = []
        for index in shows:
            finding = self._findings[index]
            is_open = explain(finding.name).stops == "read_committed"
            is_entry = is_index(finding.path)
            first = finding.first_offset
            if is_open or (is_entry and first is not None and end <= first <= reach):
                found.append(index)
        return found

    def _proves(self, index: int, end: LogEnd) -> bool:
        """Whether a finding has an offset behind the end that only a longer log explains."""
        finding = self._findings[index]
        is_open = explain(finding.name).stops == "read_committed"
        is_weak = is_open or is_index(finding.path)
        return not is_weak and finding.first_offset is not None and _last(finding) >= end.offset

    def _last_claimed(self, index: int) -> int:
        finding = self._findings[index]
        # What a group commits is the offset of the record after the last one that it got.
        return _last(finding) - (finding.name == COMMIT_BEYOND_END)

    def _weight(self, index: int) -> tuple[int, str, bytes]:
        finding = self._findings[index]
        return SEVERITIES.index(finding.severity), finding.name, finding.path or b""

    def _join_alike(self) -> None:
        """Joins findings of one kind that have one cause although neither is a trace."""
        heads: dict[tuple[object, ...], int] = {}
        alike: dict[tuple[object, ...], list[int]] = {}
        for index in self._indexes:
            key = _joint(self._findings[index], explain(self._findings[index].name))
            if key is not None:
                alike.setdefault(key, []).append(index)
                if index in self._cause_of:
                    heads.setdefault(key, index)
        for key, indexes in alike.items():
            head = heads.get(key, indexes[0])
            for index in indexes:
                if index != head and index not in self._cause_of:
                    self._cause_of[index] = head


def _joint(finding: PlacedFinding, kind: Explanation) -> tuple[object, ...] | None:
    """Returns what findings with one cause have in common, None if each stands alone."""
    if kind.joins == "same-batch":
        return kind.name, finding.path, finding.position
    if kind.joins == "same-file":
        return kind.name, finding.path
    if kind.joins == "same-partition":
        return (kind.name,)
    if kind.joins == "same-lawful-cause" and _is_lawful(finding):
        return kind.name, finding.cause
    return None


def is_index(path: bytes | None) -> bool:
    """Returns whether a file is an index of a segment."""
    return path is not None and classify(os.path.basename(path))[0] in INDEXES


def _is_lawful(finding: PlacedFinding) -> bool:
    return finding.cause is not None and causes()[finding.cause].is_lawful


def _place(effect: str, finding: PlacedFinding) -> Place:
    """Returns the segment or the producer that a cause and its traces share, None for any."""
    if effect in ("disturbs-producer", REPEATS_SEQUENCES):
        return finding.producer_id
    if effect in _OF_SEGMENT:
        return os.path.basename(finding.path or b"").partition(b".")[0]
    return None


_OF_SEGMENT: Collection[str] = (
    "moves-batches",
    "misplaces-batches",
    "miscounts-offsets",
    "changes-timestamps",
)


def _last(finding: PlacedFinding) -> int:
    first, last = finding.first_offset, finding.last_offset
    return last if last is not None else (-1 if first is None else first)


def _sequences_back(trace: PlacedFinding) -> int | None:
    """How far the sequences of a producer go back; `None` for a batch that is stored again."""
    expected, found = trace.expected or "", trace.found or ""
    return int(expected) - int(found) if expected.isdecimal() and found.isdecimal() else None
