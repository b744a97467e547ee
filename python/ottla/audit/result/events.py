"""Events: what happened to the logs, each with the findings that show it.

Where a segment loses its end, an index, a snapshot and the checkpoints say so, too: one event with
one cause, one loss and one cure. The table `events` has a row for each, the gravest first, and the
column `event` of `findings` its number.
"""

from __future__ import annotations

import os
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ottla.audit.catalogue.explain import causes, explain
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.audit.judge.packed import rows_about
from ottla.audit.result.times import NO_TIMES, written
from ottla.audit.result.traces import is_index
from ottla.audit.result.verdict import verdict_of
from ottla.logs.names import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    classify,
    is_segment,
)
from ottla.severity import SEVERITIES, Severity
from ottla.words import count, listed, offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.grouped import Grouped
    from ottla.audit.result.times import LogTimes
    from ottla.audit.result.traces import Group
    from ottla.audit.result.verdict import Verdict
    from ottla.logs.inventory import Partition

    Field: TypeAlias = "Callable[[PlacedFinding], Value | None]"

Value = TypeVar("Value")

TRACES_SHOWN = 6
"""Files that the sentence of an event names; the rest is counted."""

NO_FINDINGS: Mapping[Severity, int] = dict.fromkeys(SEVERITIES, 0)

_WITNESSES = {
    "offset-index": "the index",
    "time-index": "the time index",
    "transaction-index": "the transaction index",
    "producer-snapshot": "the producer snapshot",
    "leader-epoch-checkpoint": "the leader epochs",
    "partition-metadata": "partition.metadata",
}
"""Files beside segments, by kind, as a sentence names them."""

_CHECKPOINTS = {
    RECOVERY_POINTS: "the recovery point",
    HIGH_WATERMARKS: "the high watermark",
    LOG_START_OFFSETS: "the log start offset",
}


class Event(NamedTuple):
    """A cause with the findings that show it.

    The fields are columns of the table `events`; see `docs/tables.md`.
    """

    event: int
    name: str
    severity: Severity
    verdict: Verdict
    file: str | None
    topic: str | None
    partition: int | None
    position: int | None
    first_offset: int | None
    last_offset: int | None
    first_timestamp: int | None
    last_timestamp: int | None
    next_good_offset: int | None
    offsets_lost: int
    records_lost: int | None
    blocks: str | None
    blocked_offset: int | None
    cause: str | None
    replica: str | None
    good_replicas: tuple[str, ...] | None
    findings: int
    files: tuple[str, ...]
    action: str
    message: str


class _Loss(NamedTuple):
    """What consumers of a partition cannot read any more."""

    offsets: tuple[tuple[int, int], ...] = ()
    """Ranges of offsets, first and last, in order and apart."""
    is_dense: bool = True
    """Whether each offset of the partition has a record."""

    @property
    def offset_count(self) -> int:
        return sum([last - first + 1 for first, last in self.offsets])


def make_events(plan: Plan, outcome: Outcome, grouped: Grouped) -> tuple[list[Event], list[int]]:
    """Returns the events, the gravest first, and for each finding the number of its event."""
    findings, partitions, groups = grouped.findings, grouped.partitions, tuple(grouped.groups)
    times = written(rows_about(outcome.tables["timeline"], partitions))
    show = cache(plan.inventory.display)
    events = []
    for group, loss in zip(groups, _losses(outcome, findings, groups, partitions), strict=True):
        directory = findings[group.head].directory or b""
        members = [findings[index] for index in group.members]
        partition, of_log = partitions.get(directory), times.get(directory, NO_TIMES)
        events.append(_event(show, members, group, loss, partition, times=of_log))
    in_order = sorted(range(len(groups)), key=lambda index: (*_weight(events[index]), index))
    numbers = [0] * len(findings)
    for number, index in enumerate(in_order, 1):
        for member in groups[index].members:
            numbers[member] = number
    return [Event._make((n, *events[at][1:])) for n, at in enumerate(in_order, 1)], numbers


def _losses(
    outcome: Outcome,
    findings: Sequence[PlacedFinding],
    groups: Sequence[Group],
    partitions: Mapping[bytes, Partition],
) -> Iterator[_Loss]:
    """Yields what is lost by each group."""
    ranges: list[list[tuple[int, int]]] = [[] for _ in groups]
    at: dict[tuple[bytes | None, int | None], int] = {}
    for number, group in enumerate(groups):
        if group.lost_end is not None:
            ranges[number].append(group.lost_end)
        for finding in (findings[index] for index in group.members):
            # A gap that is a trace of a repeated batch, say, is none: its records are elsewhere.
            if finding.name != findings[group.head].name or not _loses(finding):
                continue
            at[finding.path, finding.position] = number
            if finding.first_offset is not None and finding.last_offset is not None:
                ranges[number].append((finding.first_offset, finding.last_offset))
    sparse = set()
    gaps = rows_about(outcome.tables["gaps"], partitions)
    for partition, row in gaps if any(ranges) or at else ():
        if row["reader"] != "all":
            continue
        if causes()[row["cause"]].is_lawful:
            if row["position"] is not None:
                sparse.add(partition.directory)
        elif (number := at.get((row["file"], row["position"]), -1)) >= 0:
            ranges[number].append((row["first_offset"], row["last_offset"]))
    for number, group in enumerate(groups):
        is_dense = findings[group.head].directory not in sparse
        yield _Loss(tuple(_united(ranges[number])) if ranges[number] else (), is_dense)


def _loses(finding: PlacedFinding) -> bool:
    """Whether records that were there cannot be read any more."""
    if finding.severity == "info" or (finding.cause and causes()[finding.cause].is_lawful):
        return False
    return explain(finding.name).loses_records


def _united(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields ranges in order, those that overlap or touch as one."""
    start, stop = 0, -1
    for first, last in sorted(ranges):
        if first > stop + 1 or stop < start:
            if stop >= start:
                yield start, stop
            start, stop = first, last
        stop = max(stop, last)
    if stop >= start:
        yield start, stop


def _event(
    show: Callable[[bytes], str],
    members: Sequence[PlacedFinding],
    group: Group,
    loss: _Loss,
    partition: Partition | None,
    *,
    times: LogTimes,
) -> Event:
    head = members[0]
    cause = _cause(head, group, partition)
    first, last = _reach(members, loss)
    severity, offsets_lost = group.severity, loss.offset_count
    action_for = "lost-end" if group.lost_end is not None else cause
    # In the order of the fields: with their names it takes as long as all else.
    return Event(
        0,
        head.name,
        severity,
        _verdict(severity, UNREADABLE in [f.name for f in members]),
        None if head.path is None else show(head.path),
        partition.topic if partition else head.pattern,
        partition.partition if partition else None,
        head.position,
        first,
        last,
        *times.span(head.path, first, last),
        _first_of(members, _NEXT_GOOD_OFFSET),
        offsets_lost,
        offsets_lost if loss.is_dense else None,
        *_blocks(members),
        cause,
        _first_of(members, _REPLICA),
        _first_of(members, _GOOD_REPLICAS),
        len(members),
        tuple(dict.fromkeys([show(f.path) for f in members if f.path is not None])),
        _action(head.name, head.cause, action_for),
        _message(members, group, partition),
    )


def _reach(members: Sequence[PlacedFinding], loss: _Loss) -> tuple[int | None, int | None]:
    """Returns the first and the last of the offsets of an event."""
    name = members[0].name
    ends = [o for f in members if f.name == name for o in (f.first_offset, f.last_offset)]
    if loss.offsets:
        ends += [offset for span in loss.offsets for offset in span]
    known = [offset for offset in ends if offset is not None]
    return (min(known), max(known)) if known else (None, None)


def _weight(event: Event) -> tuple[int, int, int, str, int]:
    """Sort key of events, the gravest first."""
    return (
        SEVERITIES.index(event.severity),
        -event.offsets_lost,
        (None, "read_committed", "all").index(event.blocks) * -1,
        event.file or "",
        event.position or 0,
    )


def _blocks(members: Sequence[PlacedFinding]) -> tuple[str | None, int | None]:
    """Returns the consumers that do not get past the event, and the offset where they stop."""
    found: dict[str, int] = {}
    for finding in members:
        stops, first = _stopped(finding.name, finding.severity), finding.first_offset
        if stops is not None and first is not None:
            found[stops] = min(first, found.get(stops, first))
    for reader in ("all", "read_committed") if found else ():
        if reader in found:
            return reader, found[reader]
    return None, None


@cache
def _stopped(name: str, severity: Severity) -> str | None:
    """Returns the consumers that do not get past a finding."""
    stops = explain(name).stops
    is_grave = severity == "error" or (stops == "read_committed" and severity == "warning")
    return stops if is_grave else None


def _cause(head: PlacedFinding, group: Group, partition: Partition | None) -> str | None:
    if group.lost_end is not None:
        return "lost-end" if _missing_segment(group, partition) is None else "missing-file"
    if group.is_contradicted:
        kind, _, _ = classify(os.path.basename(head.path or b""))
        if kind == "offset-checkpoint":
            return "wrong-checkpoint"
    return head.cause


@cache
def _action(name: str, own_cause: str | None, cause: str | None) -> str:
    """Returns what to do: for the cause, unless the finding says which bytes are at fault."""
    kind = explain(name)
    if cause is None or (kind.condemns and cause == own_cause):
        return kind.action
    return causes()[cause].action


def _missing_segment(group: Group, partition: Partition | None) -> int | None:
    """Returns the base offset of the segment that held the lost end, if other files show it."""
    if group.lost_end is None or partition is None:
        return None
    first = group.lost_end[0]
    if any(f.base_offset == first and f.state == "live" for f in partition.files):
        return None if first in partition.live_base_offsets else first
    return None


def _message(members: Sequence[PlacedFinding], group: Group, partition: Partition | None) -> str:
    """Returns what happened in a sentence: the cause, and where else it shows."""
    head, *others = members
    text = head.message
    if not others and group.lost_end is None:
        return text
    witnesses = [finding for finding in others if finding.name != head.name]
    is_seen = False
    if group.lost_end is not None:
        first, last = group.lost_end
        missing = _missing_segment(group, partition)
        # A checkpoint beside the partition does not tell which one it is about.
        of = ""
        if partition is not None and os.path.dirname(head.path or b"") != partition.directory:
            of = f" of {partition.topic}-{partition.partition}"
        text = f"the log{of} lost its end, {offsets(first, last)}"
        if missing is not None:
            text += f": the segment that begins at offset {missing} is missing"
        if head.path is not None and is_segment(head.path):
            # What proves it stands behind its first clause, and is named below.
            text += f": {head.message.partition('; ')[0]}"
        else:
            is_seen, witnesses = True, [*members]
    elif head.cause == "truncated-tail" and any(is_index(f.path) for f in witnesses):
        # The index that proves it stands in brackets, and is named below.
        text = f"{head.message.rpartition(' (')[0]}: the previous file was cut short"
    elif len(others) > len(witnesses):
        text += f" ({count(len(others) - len(witnesses), 'more finding')} like it)"
    seen: dict[str, int] = {}
    for witness in witnesses:
        place = _shown_by(witness)
        seen[place] = seen.get(place, 0) + 1
    if not seen:
        return text
    places = [place if n == 1 else f"{place} ({n:,})" for place, n in seen.items()]
    return f"{text}; {'seen' if is_seen else 'also seen'} in {listed(places, TRACES_SHOWN)}"


def _shown_by(trace: PlacedFinding) -> str:
    """Returns what shows an event, in a few words."""
    name = os.path.basename(trace.path or b"")
    if name in _CHECKPOINTS:
        return _CHECKPOINTS[name]
    return _WITNESSES.get(classify(name)[0]) or f"the finding {trace.name}"


@cache
def _verdict(severity: Severity, not_read: bool) -> Verdict:
    """What a finding of a severity alone makes of the log."""
    return verdict_of({**NO_FINDINGS, severity: 1}, int(not_read))


_NEXT_GOOD_OFFSET: Field[int] = attrgetter("next_good_offset")
_REPLICA: Field[str] = attrgetter("replica")
_GOOD_REPLICAS: Field[tuple[str, ...]] = attrgetter("good_replicas")


def _first_of(members: Iterable[PlacedFinding], field: Field[Value]) -> Value | None:
    """The first value of a field that some member has."""
    for member in members:
        value = field(member)
        if value is not None:
            return value
    return None
