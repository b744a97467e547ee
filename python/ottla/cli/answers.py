"""The first lines of a report: what is lost, what the next start does, who is blocked, what to do.

They answer for all events together; each event has its own lines further down.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.audit.catalogue.findings import UNREADABLE
from ottla.cli.next_start import first_step
from ottla.cli.remedies import SEE_NEXT_START, TAILS, is_unbounded, is_without_batch
from ottla.logs.names import META_PROPERTIES, display
from ottla.words import count, listed, offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.audit import AuditResult, Severity
    from ottla.cli.remedies import Remedies

SHOWN = 3
"""Topics and partitions that a line names."""

RESTARTS: dict[str, tuple[Severity, str]] = {
    "refuses": ("error", "the broker will not start"),
    "put-aside": ("error", "an empty partition will replace"),
    "ends-early": ("error", "offsets of existing records will be assigned again"),
    "cuts": ("warning", "cuts off records"),
    "empties": ("error", "every segment is deleted"),
    "exposes-aborted": ("warning", "read_committed consumers will receive aborted records"),
}
"""What a start can do to a partition, worst first, and how grave that is."""

LOOK_FIRST = (
    "before the broker starts, look for the lost offsets on the other replicas and in backups, and"
    " copy the log directory: as leader it assigns them again. Then"
)

UNEXPLAINED_LOG_START = "unexplained-log-start"
_NONE = "no lost record was found"

Event = Mapping[str, Any]
Line = tuple[str, str, "Severity"]
"""A line: what it is about, the answer, and how grave that is."""

_SAME: Line = ("Next start", "it changes nothing.", "info")


def answers(
    result: AuditResult, events: Sequence[Event], heads: Mapping[int, Any], remedies: Remedies
) -> Iterator[Line]:
    """Yields the first lines of a report; none where there is nothing to answer.

    Args:
        result: the result of an audit.
        events: its events, the gravest first.
        heads: the finding of each event that is its cause, by its number.
        remedies: what to do about findings.
    """
    grave = [e for e in events if e["severity"] != "info" and e["name"] != UNREADABLE]
    starts: list[Line] = [*_refused(result), *_starts(result)]
    if not (grave or starts):
        return
    losing = [event for event in events if event["offsets_lost"]]
    starts += _deleted((heads[event["event"]] for event in losing), remedies)
    starts += _withheld(grave)
    where = " in what could be read" if result.summary.not_read else ""
    missing = list(_missing_partitions(result))
    uncounted = [*_lost_ends(result), *missing]
    if losing or starts or uncounted:
        if losing or not uncounted:
            yield from _lost(losing, where)
        yield from uncounted
        yield from starts
        assigned = list(_assigned_again(losing))
        yield from assigned
        if not (starts or assigned or missing):
            yield from _unchanged(result)
    else:
        unchanged = list(_unchanged(result))
        is_same = unchanged == [_SAME]
        start = "; the next start changes nothing" if is_same else ""
        yield "Lost", f"{_NONE}{where}{start}.", "info"
        if not is_same:
            yield from unchanged
    yield from _blocked(events)
    step = _first_step(result, grave, heads, remedies)
    if step is not None:
        yield "Do first", step, "info"


def _lost(losing: Sequence[Event], where: str) -> Iterator[Line]:
    """Yields how many records and offsets are lost, by topic."""
    if not losing:
        yield "Lost", f"{_NONE}{where}.", "info"
        return
    by_topic: dict[str, list[Event]] = {}
    for event in losing:
        by_topic.setdefault(event["topic"] or event["file"], []).append(event)
    in_order = sorted(by_topic.items(), key=lambda item: -_sum(item[1]))
    if len(in_order) == 1:
        text = f"{_records(losing)}: {_places(losing)}"
    else:
        topics = [f"{_sum(of_topic):,} in {_places(of_topic)}" for _, of_topic in in_order]
        text = f"{_records(losing)}: {listed(topics, SHOWN)}"
    kept = [event for event in losing if event["good_replicas"]]
    if kept:
        names = list(dict.fromkeys(name for event in kept for name in event["good_replicas"]))
        whose = "them" if len(kept) == len(losing) else f"{_sum(kept):,} of them"
        text += f"; {listed(names, SHOWN)} {'has' if len(names) == 1 else 'have'} {whose}"
    yield "Lost", f"{text}.", _worst(losing)


def _sum(events: Iterable[Event]) -> int:
    return sum(event["offsets_lost"] for event in events)


def _records(events: Sequence[Event]) -> str:
    """The number of records; not every offset has one where transactions end or logs shrink."""
    lost = _sum(events)
    if any(event["records_lost"] is None for event in events):
        return f"{count(lost, 'offset')} with at most as many records"
    return count(lost, "record")


def _places(events: Sequence[Event]) -> str:
    """Where the offsets of one topic were."""
    if len(events) == 1:
        (event,) = events
        return f"{offsets(event['first_offset'], event['last_offset'])} of {_partition(event)}"
    partitions = list(dict.fromkeys(_partition(event) for event in events))
    if len(partitions) == 1:
        return f"{count(len(events), 'range')} of {partitions[0]}"
    return _few(partitions)


def _few(places: Sequence[str]) -> str:
    """Places as a line names them: all of them, or the first and how many more."""
    return listed(places, SHOWN if len(places) <= SHOWN else 1)


def _partition(event: Event) -> str:
    if event["topic"] is None or event["partition"] is None:
        return str(event["file"])
    name = f"{event['topic']}-{event['partition']}"
    return name if event["replica"] is None else f"{name} on {event['replica']}"


def _starts(result: AuditResult) -> Iterator[Line]:
    """Yields what the next start does, a line for each outcome, the worst first."""
    rows = [row for row in result.recovery if row["is_next"] and row["outcome"] in RESTARTS]
    for outcome, (severity, meaning) in RESTARTS.items():
        found = [row for row in rows if row["outcome"] == outcome]
        if found:
            places = [f"{row['directory']} ({restart_text(row)})" for row in found]
            # Nothing but a file that is written helps those that are put aside.
            action = f" {found[0]['action']}." if outcome == "put-aside" else ""
            yield "Next start", f"{meaning}: {_few(places)}.{action}", severity
    unknown = [row for row in result.recovery if row["outcome"] is None]
    if unknown:
        places = [f"{row['directory']} ({row['message']})" for row in unknown]
        yield "Next start", f"{_few(places)}.", "warning"


def _deleted(heads: Iterable[Mapping[str, Any]], remedies: Remedies) -> Iterator[Line]:
    """Yields the files that the next start deletes, and which may hold what is lost."""
    held = [path for head in heads for path in remedies.leftovers.holding(head)]
    if held:
        yield "Next start", f"it deletes {_few(held)}, which may hold them.", "error"


def _withheld(events: Iterable[Event]) -> Iterator[Line]:
    """Yields the logs whose records a broker deletes below a log start that no broker has moved."""
    logs = [_partition(event) for event in events if event["name"] == UNEXPLAINED_LOG_START]
    if logs:
        withheld = "readable records below the log start offset stay withheld"
        text = f"{withheld}, and segments that hold no others are deleted: {_few(logs)}."
        yield "Next start", text, "warning"


def _missing_partitions(result: AuditResult) -> Iterator[Line]:
    """Yields the partitions that a checkpoint knows and that have no directory."""
    for row in result.findings:
        if row["name"] == "missing-partition":
            above = os.path.dirname(row["file"])
            where = f"in {above}" if above else "here"
            text = f"all records of {row['found']}, which has no directory {where},"
            yield "Lost", f"{text} unless it was deleted or moved on purpose.", "warning"


def _lost_ends(result: AuditResult) -> Iterator[Line]:
    """Yields the logs whose records are lost from an offset on, without a witness of how many."""
    tails = [row for row in result.findings if row["name"] in TAILS]
    ends = [
        f"from offset {row['first_offset']:,} of {_partition(row)} on"
        for row in tails
        if is_unbounded(row)
    ]
    if ends:
        yield "Lost", f"records {_few(ends)}; nothing shows how many.", "error"
    noise = [row["file"] for row in tails if is_without_batch(row)]
    if noise:
        one = len(noise) == 1
        text = f"{_few(noise)} {'holds' if one else 'hold'} no batch, and nothing shows whether"
        yield "Lost", f"{text} {'it' if one else 'they'} ever did.", "warning"


def _is_lost_end(event: Event) -> bool:
    """Whether a broker that starts as leader assigns the offsets of an event again."""
    if event["cause"] == "missing-file":
        # One in the midst of a log leaves a hole that stays.
        return event["next_good_offset"] is None
    return bool(event["cause"] == "lost-end")


def _assigned_again(losing: Sequence[Event]) -> Iterator[Line]:
    """Yields the offsets behind the ends of logs, which a start does not bring back."""
    lost = [event for event in losing if _is_lost_end(event)]
    if lost:
        text = "a broker that starts as leader assigns lost offsets to other records"
        yield "Next start", f"{text}: {_places(lost)}.", "error"


def _refused(result: AuditResult) -> Iterator[Line]:
    """Yields why a broker does not start that no partition alone shows."""
    twice = [row["file"] for row in result.findings if row["name"] == "duplicate-partition"]
    if twice:
        which = "this partition" if len(twice) == 1 else "these partitions"
        text = f"a broker with both directories of {which} does not start: {_few(twice)}."
        yield "Next start", text, "error"
    unread = _unread_properties(result)
    if unread:
        text = (
            f"the broker will not start, or leave the directory out: {_few(unread)} is not valid."
        )
        yield "Next start", text, "error"
    named = _without_topic(result)
    if named:
        text = f"the broker will not start: {_few(named)} (no name of a topic and a partition)."
        yield "Next start", text, "error"


def _without_topic(result: AuditResult) -> list[str]:
    """The directories whose names keep a broker from starting."""
    return [
        row["file"]
        for row in result.findings
        if row["name"] == "unknown-file" and row["severity"] == "warning"
    ]


def _unread_properties(result: AuditResult) -> list[str]:
    """The `meta.properties` that a broker cannot read."""
    return [
        row["file"]
        for row in result.findings
        if row["name"] == "metadata-mismatch"
        and os.path.basename(row["file"]) == display(META_PROPERTIES)
    ]


def _rename(result: AuditResult, named: Sequence[str]) -> str:
    """What to do about directories whose names are none of Kafka's.

    One that has the place of a partition which is not there may be all that is left of it.
    """
    known = {f"{row['topic']}-{row['partition']}" for row in result.metrics}
    for path in named:
        above, name = os.path.split(path)
        stem = re.match(r".+?-[0-9]+(?![0-9])", name)
        if stem is not None and stem[0] not in known:
            whole = os.path.join(above, stem[0])
            return f"give {path} its name {whole} back if it is that partition, or move it away"
        if name == "lost+found":
            return f"look into {path} for files of logs, and keep logs below the disk's mount point"
    return f"move {_few(named)} out of the log directory"


def _unchanged(result: AuditResult) -> Iterator[Line]:
    """Yields that the next start takes no record, where that is known."""
    rows = [row for row in result.recovery if row["is_next"]]
    if not rows or any(row["outcome"] != "opens" for row in rows):
        return
    cut = [row["directory"] for row in rows if row["bytes_cut"]]
    if cut:
        text = f"bytes behind the last batch are cut off: {_few(cut)}."
        yield "Next start", text, "info"
    else:
        yield _SAME


def restart_text(row: Mapping[str, Any]) -> str:
    """What a start does to a partition, in a few words."""
    if not row["opens"]:
        return f"{row['error'].rpartition('.')[2]}: {row['message'].rstrip('.')}"
    if row["outcome"] == "empties":
        return f"its log begins at {row['log_start_offset']}"
    parts = [f"ends at {row['log_end_offset']}"]
    if row["offsets_lost"]:
        parts[0] += f" instead of {row['log_end_offset'] + row['offsets_lost']}"
    if row["segments_deleted"]:
        parts.append(f"{count(len(row['segments_deleted']), 'segment')} deleted")
    if row["exposed_transactions"]:
        parts.append(count(row["exposed_transactions"], "transaction"))
    return ", ".join(parts)


def _blocked(events: Sequence[Event]) -> Iterator[Line]:
    """Yields which consumers do not get on, and where."""
    for reader, who in (("all", "all consumers"), ("read_committed", "read_committed consumers")):
        first: dict[str, Event] = {}
        for event in events:
            if event["blocks"] == reader:
                known = first.setdefault(_partition(event), event)
                if event["blocked_offset"] < known["blocked_offset"]:
                    first[_partition(event)] = event
        if first:
            at = {event["blocked_offset"] for event in first.values()}
            places = list(first)
            if len(at) > 1:
                places = [f"{name} at offset {e['blocked_offset']}" for name, e in first.items()]
            where = f", at offset {at.pop()}" if len(at) == 1 else ""
            yield "Blocked", f"{who} of {_few(places)}{where}.", _worst(first.values())


def _worst(events: Iterable[Event]) -> Severity:
    """The gravest severity of some events."""
    found = {event["severity"] for event in events}
    return "error" if "error" in found else "warning" if "warning" in found else "info"


def _of_copies(result: AuditResult, event: Event) -> str | None:
    """What to do about offsets that other copies have."""
    if not event["good_replicas"] or event["first_offset"] is None:
        return None
    for row in result.differences:
        is_here = (row["topic"], row["partition"]) == (event["topic"], event["partition"])
        overlaps = (
            row["first_offset"] <= event["last_offset"]
            and event["first_offset"] <= row["last_offset"]
        )
        if is_here and overlaps and event["replica"] in row["bad_replicas"]:
            return str(row["action"])
    return None


def _before_start(result: AuditResult, grave: Sequence[Event]) -> str | None:
    """What a broker needs before it starts beside sound logs; None if nothing is known."""
    if named := _without_topic(result):
        return _rename(result, named)
    if unread := _unread_properties(result):
        return (
            f"write {unread[0]} anew, with version, cluster.id and node.id as the broker's other"
            " log directories have them"
        )
    is_missing = any(row["name"] == "missing-partition" for row in result.findings)
    if is_missing and grave[0]["severity"] != "error":
        return "look for the directories that are missing, under other names and in backups, too"
    return None


def _first_step(
    result: AuditResult, grave: Sequence[Event], heads: Mapping[int, Any], remedies: Remedies
) -> str | None:
    """The first thing to do: before the next start if that costs anything, else the first event."""
    step = first_step(result)
    if step is not None or not grave:
        prefix = "before the broker starts, "
        is_lost = any(_is_lost_end(event) and event["offsets_lost"] for event in grave)
        if step is not None and is_lost and not step.startswith("do not start"):
            step = f"{LOOK_FIRST} {step.removeprefix(prefix)}"
        return step
    hindrance = _before_start(result, grave)
    if hindrance is not None:
        return f"before the broker starts, {hindrance}."
    event = grave[0]
    head = heads[event["event"]]
    if event["good_replicas"] and (cure := remedies.cure(head)):
        return cure[0].lower() + cure[1:]
    text = _of_copies(result, event) or remedies.of(head)
    if text is None or text == SEE_NEXT_START:
        text = event["action"]
    sentence, dot, _ = text.partition(". ")
    return sentence[0].lower() + sentence[1:] + dot.strip()
