"""Whether a history is one that Kafka promises. It shares no code with what it judges.

A log is given as batches in the order of their offsets, as they are stored. What is committed in
it is worked out here from its markers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from support.simulation.history import History, Ownership


class Stored(NamedTuple):
    """A batch of a log."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    marker: bool | None
    """Of a marker, whether it commits; `None` of a batch of records."""
    values: tuple[bytes, ...]


Logs = dict[tuple[str, int], list[Stored]]


def committed(log: Iterable[Stored]) -> list[tuple[int, bytes]]:
    """Return offset and value of what a reader of committed records gets, in order."""
    open_batches: dict[int, list[Stored]] = defaultdict(list)
    got: list[tuple[int, bytes]] = []
    for batch in log:
        if batch.marker is not None:
            ended = open_batches.pop(batch.producer_id, [])
            if batch.marker:
                got += (record for each in ended for record in records_of(each))
        elif batch.is_transactional:
            open_batches[batch.producer_id].append(batch)
        else:
            got += records_of(batch)
    return sorted(got)


def records_of(batch: Stored) -> Iterator[tuple[int, bytes]]:
    """Iterate over offset and value."""
    first = batch.last_offset - len(batch.values) + 1
    return ((first + number, value) for number, value in enumerate(batch.values))


def check(history: History, logs: Logs) -> None:
    """Hold a history against the logs that it has left."""
    assert not history.faults, history.faults
    for place, log in logs.items():
        _check_offsets(place, log)
    _check_sent(history, logs)
    _check_transactions(history, logs)
    assert any(reading.records for reading in history.readings), "nobody has read anything"
    check_readings(history, logs)
    _check_sessions(history)
    _check_commits(history)
    _check_fencing(history)
    _check_generations(history)
    _check_owners(history)


def _check_offsets(place: tuple[str, int], log: list[Stored]) -> None:
    next_offset = 0
    for batch in log:
        assert batch.base_offset == next_offset, f"{place}: {batch} where {next_offset} is next"
        next_offset = batch.last_offset + 1


def _check_sent(history: History, logs: Logs) -> None:
    """What was acknowledged is there once, where the broker said; what was refused is not there."""
    offsets: dict[tuple[str, int, bytes], list[int]] = defaultdict(list)
    for (topic, partition), log in logs.items():
        for batch in log:
            for offset, value in records_of(batch):
                offsets[topic, partition, value].append(offset)
    for sent in history.sent:
        if (sent.topic, sent.partition) not in logs:
            continue
        for number, value in enumerate(sent.values):
            found = offsets[sent.topic, sent.partition, value]
            assert len(found) <= 1, f"{value!r} is there {len(found)} times, at {found}"
            if sent.outcome == "done":
                assert found == [sent.base_offset + number], f"{value!r} is at {found}: {sent}"
            elif sent.outcome == "refused":
                assert not found, f"{value!r} was refused and is at {found}"
    _check_order(history, offsets)


def _check_order(history: History, offsets: dict[tuple[str, int, bytes], list[int]]) -> None:
    last: dict[tuple[str, str, int], int] = {}
    for sent in history.sent:
        if sent.outcome == "lost":
            # A retry that came late may have written it again.
            continue
        key = sent.producer, sent.topic, sent.partition
        for value in sent.values:
            for offset in offsets[sent.topic, sent.partition, value]:
                assert offset > last.get(key, -1), f"{value!r} of {sent.producer} is out of order"
                last[key] = offset


def _check_transactions(history: History, logs: Logs) -> None:
    """Of a transaction everything is committed or nothing, as its producer was told."""
    visible: Counter[bytes] = Counter()
    for log in logs.values():
        visible.update(value for _, value in committed(log))
    for transaction in history.transactions:
        # At the level of the page cache a batch may be gone before its producer ends the
        # transaction, and nobody can tell: what is left of it is committed whole or not at all.
        left = [sent for sent in transaction.sent if sent.outcome != "lost"]
        values = [value for sent in left for value in sent.values]
        there = sum(visible[value] for value in values)
        what = f"{there} of {len(values)} records are committed: {transaction}"
        if transaction.outcome == "committed":
            assert there == len(values), what
        elif transaction.outcome == "aborted":
            assert not there, what
        else:
            assert there in {0, len(values)}, what


def check_offsets_of_transactions(
    history: History, logs: Logs, producer: str, offset: int | None
) -> None:
    """A group has the offset that the last committed transaction with one gave it."""
    visible = {value for log in logs.values() for _, value in committed(log)}
    expected = None
    for transaction in history.transactions:
        # A power cut may have taken all of its records before it was committed.
        is_committed = transaction.outcome == "committed" or any(
            value in visible for sent in transaction.sent for value in sent.values
        )
        if transaction.producer == producer and transaction.offsets and is_committed:
            expected = transaction.offsets[0]
    assert offset == expected, f"the group of {producer} is at {offset} instead of {expected}"


def check_readings(history: History, logs: Logs) -> None:
    """A reader gets what is in the log, all of it, in order."""
    for reading in history.readings:
        log = logs[reading.topic, reading.partition]
        everything = (
            committed(log)
            if reading.is_committed
            else [record for batch in log if batch.marker is None for record in records_of(batch)]
        )
        if not reading.records:
            continue
        first, last = reading.records[0][0], reading.records[-1][0]
        expected = [record for record in everything if first <= record[0] <= last]
        assert reading.records == expected, f"{reading} instead of {expected}"


def _check_commits(history: History) -> None:
    """What a group is told is what was committed before it asked, or while it did."""
    for told in history.commits:
        if told.kind != "fetch":
            continue
        before = [
            each.offset
            for each in history.commits
            if each.kind == "commit"
            and (each.group, each.partition) == (told.group, told.partition)
            and 0 <= each.answered_at < told.sent_at
        ]
        least = max(before, default=-1)
        # What no member commits has no epoch that would tell a late attempt from a new one.
        is_of_late_attempt = any(
            each.is_repeated and (each.group, each.offset) == (told.group, told.offset)
            for each in history.commits
            if each.sent_at < told.answered_at
        )
        assert told.offset >= least or is_of_late_attempt, (
            f"{told}, though {least} was committed before"
        )


def _check_sessions(history: History) -> None:
    """Once another session of its name has begun, a producer ends no transaction."""
    for producer, session, sent_at in history.ends:
        starts = [each for each in history.starts if each.producer == producer]
        own = max(
            each.answered_at
            for each in starts
            if each.session == session and each.answered_at < sent_at
        )
        for start in starts:
            is_later = own < start.sent_at and start.answered_at < sent_at
            assert not is_later, f"a transaction of {producer} was ended, and {start} was before"


def _check_fencing(history: History) -> None:
    """Once a member of a later generation has committed, none of an earlier one does."""
    for late in history.commits:
        for early in history.commits:
            assert not (
                late.kind == early.kind == "commit"
                and (late.group, late.partition) == (early.group, early.partition)
                and -1 < late.epoch < early.epoch
                and 0 <= early.answered_at < late.sent_at <= late.answered_at
            ), f"{late} was taken, and {early} was before it"


def _check_generations(history: History) -> None:
    """In a generation each partition is one member's."""
    owners: dict[tuple[str, int, int], str] = {}
    for group, generation, member, partitions in history.generations:
        for partition in partitions:
            owner = owners.setdefault((group, generation, partition), member)
            assert owner == member, f"{owner} and {member} have {partition} of {group}"


def _check_owners(history: History) -> None:
    """At each moment a partition is one member's, in groups that see to that (KIP-848)."""
    classic = {group for group, *_ in history.generations}
    last: dict[tuple[str, int], Ownership] = {}
    found = (each for each in history.ownerships if each.group not in classic)
    for ownership in sorted(found, key=lambda each: each.begin):
        place = ownership.group, ownership.partition
        before = last.get(place)
        assert before is None or (before.end is not None and before.end <= ownership.begin), (
            f"{ownership} while {before}"
        )
        last[place] = ownership


def check_power_cut(before: Logs, sure: Logs, after: Logs) -> Logs:
    """A power cut leaves the beginning of each log, and everything that was synced of it.

    Returns what it has left. Behind it are only markers, of transactions that a start goes on with.
    """
    kept: Logs = {}
    for place, log in after.items():
        pairs = zip(log, before[place], strict=False)
        kept[place] = [now for now, was in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        new = log[len(kept[place]) :]
        assert all(batch.marker is not None for batch in new), (
            f"{place}: {new[:3]} where {before[place][len(kept[place]) :][:3]} was before a cut"
        )
        lost = sure[place][len(kept[place]) :]
        assert not lost, f"{place}: {lost} was synced, and is gone"
    return kept


def ends_of(logs: Logs) -> dict[tuple[str, int], int]:
    """Where each log ends."""
    return {place: log[-1].last_offset + 1 if log else 0 for place, log in logs.items()}
