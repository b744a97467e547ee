"""Where reading a growing log begins, goes on, and ends again as it was planned.

A log is known again by its topic id, and by the last batch that was read of it: at its position, or
wherever compaction and the roll of segments have moved it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import SparkError
from ottla.logs.segment import first_batch, follow_batches
from ottla.spark.source.checkpoint import MAX_HOLES, Planned, Reached
from ottla.spark.source.continuity import CONTINUE, Rules, Stretch, follow
from ottla.spark.source.growing import Begin, Spot
from ottla.spark.source.stable import Decided, spot_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.spark.source.growing import GrowingLog
    from ottla.spark.source.stable import Transactions

ANEW = (
    "the option recreated_topics=begin_anew reads it from its start, and"
    " fail_on_data_loss=false goes on at the next offset"
)


class Origin(NamedTuple):
    """The first offset to read of a partition that was not read before."""

    offset: int
    has_earlier: bool = False
    """Whether earlier ones are not asked for."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do about logs that are not as they were."""

    rules: Rules
    begins_anew: bool = False
    """Whether a topic that was created again is read from its start."""
    transactions: Transactions | None = None
    """What finds transactions, with `read_committed`."""


@dataclass(slots=True)
class Plan:
    """What to read of a partition, and how far that comes."""

    log: GrowingLog
    known: Reached | None
    """How far it was read before."""
    reached: Reached
    begin: Begin
    stretch: Stretch

    @property
    def byte_count(self) -> int:
        """How many bytes to read."""
        return self.stretch.byte_count


def originate(log: GrowingLog, origin: Origin, rules: Rules) -> Begin | str:
    """Returns where to begin with a log that was not read before, or why to wait.

    Raises:
        SparkError: its first segments are missing.
        OSError: a segment cannot be read.
    """
    first = log.first_offset
    start = log.beside.log_start_offset
    wanted = origin.offset if origin.has_earlier else min(first, first if start is None else start)
    if wanted < first:
        said = "" if origin.has_earlier else ": the files beside the log say that it starts there"
        what = f"offsets {wanted} to {first - 1} are missing before {log.segments[0].file}{said}"
        if rules.waits and not rules.is_replay:
            return f"{what}, and may still be copied; late_segments=fail ends the query instead"
        if rules.fails_on_loss:
            raise SparkError(f"{log.name}: {what}; {CONTINUE}")
        return Begin(Spot(0, 0), first, passed=(what,), passed_offsets=first - wanted)
    if not origin.has_earlier:
        return Begin(Spot(0, 0), first)
    return log.spot_of(origin.offset)


def resume(log: GrowingLog, reached: Reached, policy: Policy) -> Begin:
    """Returns where to read on.

    Raises:
        SparkError: it is not the log that was read, or unread records of it are gone.
        OSError: a segment cannot be read.
    """
    topic_id = log.beside.topic_id
    if None not in (topic_id, reached.topic_id) and topic_id != reached.topic_id:
        return _other_log(
            log,
            reached,
            policy,
            f"{log.name}: the topic was deleted and created again: topic id {reached.topic_id} was"
            f" read up to offset {reached.next_offset - 1}, and {topic_id} is there now",
        )
    _check_late(log, reached, policy)
    standing = _standing(log, reached)
    if standing is not None:
        return Begin(standing, reached.next_offset)
    first, following = log.first_offset, reached.next_offset
    if first >= following:
        return _behind_retention(log, reached, policy)
    moved = _moved(log, reached)
    if isinstance(moved, str):
        return _other_log(log, reached, policy, moved)
    return moved


def _check_late(log: GrowingLog, reached: Reached, policy: Policy) -> None:
    """Raises SparkError if segments came that begin before where reading began, or in a hole."""
    if not policy.rules.fails_on_loss:
        return
    holes = list(reached.holes)
    if reached.first_offset is not None and not reached.has_earlier:
        holes.append((0, reached.first_offset - 1))
    for first, last in holes:
        index = bisect_left(log.bases, first)
        if index < len(log.bases) and log.bases[index] <= last:
            raise SparkError(
                f"{log.name}: offsets {log.bases[index]} to {last} came after reading had gone on"
                f" at offset {last + 1}, in {log.segments[index].file}: read them by"
                " spark.read.format('ottla'), or begin with a new checkpoint; the option"
                " fail_on_data_loss=false goes on without them"
            )


def _standing(log: GrowingLog, reached: Reached) -> Spot | None:
    """Returns where reading stands if the log holds what was read where it was."""
    index = log.index_of(reached.segment)
    if index is None or log.segments[index].size < reached.position:
        return None
    place = log.segments[index].place
    last = reached.last_batch
    if last is not None:
        run = follow_batches(place, last.position, reached.position, has_holes=True)
        is_same = (run.end, run.digest) == (reached.position, last.digest)
    else:
        # Nothing more is known in a checkpoint of version 1, and of a partition without a batch.
        batch = first_batch(place, reached.position)
        is_same = batch is None or batch.base_offset >= reached.next_offset
    return Spot(index, reached.position) if is_same else None


def _behind_retention(log: GrowingLog, reached: Reached, policy: Policy) -> Begin:
    first, following = log.first_offset, reached.next_offset
    if first == following:
        return Begin(Spot(0, 0), following)
    what = (
        f"{log.name}: offsets {following} to {first - 1} are gone, for example by retention, and"
        " were not read"
    )
    if policy.rules.fails_on_loss:
        raise SparkError(f"{what}; {CONTINUE}")
    return Begin(Spot(0, 0), first, passed=(what,), passed_offsets=first - following)


def _moved(log: GrowingLog, reached: Reached) -> Begin | str:
    """Returns where the log goes on that has moved, or why it is not the one that was read."""
    following = reached.next_offset
    here = log.spot_of(following)
    before = log.find(following - 1)
    last = reached.last_batch
    if before is not None and last is not None:
        place = log.segments[before[0].number].place
        run = follow_batches(place, before[0].position, 2**63 - 1, max_bytes=1, has_holes=True)
        if run.digest == last.digest:
            return here
    index = log.index_of(reached.segment)
    if before is None and log.bases[-1] < following:
        segment = None if index is None else log.segments[index]
        if segment is not None and segment.size < reached.position:
            return (
                f"{log.name}: the segment of offset {reached.segment} was cut, or its topic created"
                f" again: {reached.position} bytes of it were read, but it has {segment.size}"
            )
        return (
            f"{log.name}: the log ends before offset {following - 1}, which was read: it was cut,"
            " or its topic deleted and created again"
        )
    number = max(0, bisect_right(log.bases, following - 1) - 1)
    if (
        log.may_be_cleaned(number)
        and log.explain(following - 1, following - 1, (number,)) is not None
    ):
        return here
    if last is None and index is None:
        return here
    base = here.base_offset
    found = "another batch" if base is None else f"a batch of offset {base}"
    return (
        f"{log.name}: the segment of offset {log.bases[number]} was rewritten, or its topic"
        f" created again: position {reached.position} has {found}, but records up to"
        f" {following - 1} were read of another log"
    )


def _other_log(log: GrowingLog, reached: Reached, policy: Policy, what: str) -> Begin:
    if policy.begins_anew:
        return Begin(Spot(0, 0), log.first_offset, is_anew=True, passed=(what,))
    if policy.rules.fails_on_loss:
        raise SparkError(f"{what}; {ANEW}")
    passed = max(0, reached.next_offset - log.first_offset)
    return log.spot_of(reached.next_offset)._replace(passed=(what,), passed_offsets=passed)


def plan(
    log: GrowingLog,
    known: Reached | None,
    policy: Policy,
    origin: Callable[[GrowingLog], Origin],
    budget: int | None = None,
) -> Plan | str | None:
    """Returns what can be read of a log now: None if nothing, or why it waits.

    Raises:
        SparkError: see `originate`, `resume` and `follow`.
        OSError: a segment cannot be read.
    """
    if known is None:
        asked = origin(log)
        begin = originate(log, asked, policy.rules)
        if isinstance(begin, str):
            return begin
        has_earlier = asked.has_earlier
    elif log.ends_at(known):
        _check_late(log, known, policy)
        return None
    else:
        begin, has_earlier = resume(log, known, policy), known.has_earlier
    stretch = _follow_from(begin, log, policy.rules, budget=budget)
    stretch, decided = _up_to_stable(log, known, begin, stretch, policy)
    if not stretch.parts and not (known is None and has_earlier):
        return stretch.waits
    if known is not None and -1 < stretch.leader_epoch < known.leader_epoch and not begin.is_anew:
        what = (
            f"{log.name}: leader epoch {known.leader_epoch} was read, and epoch"
            f" {stretch.leader_epoch} follows: the topic was deleted and created again, or a byte"
            " of a batch's leader epoch is damaged, which its checksum does not cover"
        )
        begin = _other_log(log, known, policy, what)
        stretch = _follow_from(begin, log, policy.rules, budget=budget)
        stretch, decided = _up_to_stable(log, known, begin, stretch, policy)
    is_new = known is None or begin.is_anew
    segment = log.segments[stretch.end.number]
    same = None if is_new or known is None else known
    last = stretch.last_batch
    if last is None and same is not None and same.segment == segment.base_offset:
        last = same.last_batch
    reached = Reached(
        segment.base_offset,
        stretch.end.position,
        stretch.next_offset,
        first_offset=begin.next_offset if same is None else same.first_offset,
        has_earlier=has_earlier and not begin.is_anew,
        leader_epoch=max(stretch.leader_epoch, -1 if same is None else same.leader_epoch),
        topic_id=log.beside.topic_id or (None if same is None else same.topic_id),
        last_batch=last,
        passed_offsets=(0 if known is None else known.passed_offsets)
        + begin.passed_offsets
        + stretch.passed_offsets,
        holes=((() if same is None else same.holes) + tuple(stretch.holes))[-MAX_HOLES:],
        planned=Planned(
            begin.next_offset,
            stretch.digest,
            begin.is_anew,
            decided.digest(begin.next_offset, stretch.next_offset),
        ),
    )
    return Plan(log, known, reached, begin, stretch)


def _up_to_stable(
    log: GrowingLog, known: Reached | None, begin: Begin, stretch: Stretch, policy: Policy
) -> tuple[Stretch, Decided]:
    """Returns a part of a log up to its last stable offset, and what is decided about it."""
    decided = _decide(log, known, begin, stretch, policy)
    if decided.first_open is not None:
        stop = spot_before(log, stretch, decided.first_open)
        stretch = _follow_from(begin, log, policy.rules, stop=stop)
        stretch.waits = (
            f"the transaction of producer id {decided.producer_id} that began at offset"
            f" {decided.first_open} is open, and isolation_level=read_committed ends before it"
        )
    stretch.aborted = decided.aborted
    return stretch, decided


def _decide(
    log: GrowingLog, known: Reached | None, begin: Begin, stretch: Stretch, policy: Policy
) -> Decided:
    """Returns what is decided about a part of a log."""
    if policy.transactions is None or not stretch.parts:
        return Decided(())
    # Once something was read, all that begins before was decided. Until then, or where something
    # was lost, a transaction may be open that began before.
    is_first = known is None or known.next_offset == known.first_offset or bool(begin.passed)
    rules = policy.rules._replace(is_replay=False)
    return policy.transactions.decide(
        log,
        Spot(0, 0) if is_first else begin.spot,
        stretch,
        lambda size: _follow_from(begin, log, rules, budget=size),
    )


def _follow_from(
    begin: Begin,
    log: GrowingLog,
    rules: Rules,
    *,
    budget: int | None = None,
    stop: Spot | None = None,
) -> Stretch:
    return follow(
        log,
        begin.spot,
        begin.next_offset,
        rules,
        base_offset=begin.base_offset,
        budget=budget,
        stop=stop,
    )


def replay(
    log: GrowingLog, known: Reached | None, end: Reached, policy: Policy
) -> tuple[Begin, Stretch]:
    """Returns what was planned to be read between two places, proved to be the same.

    Raises:
        SparkError: it is not what was planned.
        OSError: a segment cannot be read.
    """
    rules = policy.rules._replace(is_replay=True)
    policy = replace(policy, rules=rules)
    planned = end.planned
    first = known.next_offset if known is not None else log.first_offset
    if planned is not None:
        first = planned.first_offset
    if known is None or (planned is not None and planned.begins_anew):
        begin = _begin_at(log, first, end, policy)
        if planned is not None and planned.begins_anew:
            what = f"{log.name}: the topic was created again, and is read from its start"
            begin = begin._replace(passed=(what, *begin.passed))
    else:
        begin = resume(log, known, policy)
    stop = _stop_of(log, end, policy)
    if end.next_offset < begin.next_offset:
        raise SparkError(
            f"{log.name}: the checkpoint goes back, from offset {begin.next_offset} to"
            f" {end.next_offset}: give the checkpointLocation of this query"
        )
    stretch = _follow_from(begin, log, rules, stop=stop)
    decided = _decide(log, known, begin, stretch, policy)
    if decided.first_open is not None:
        what = (
            f"{log.name}: this is not what was planned: the transaction of producer id"
            f" {decided.producer_id} that began at offset {decided.first_open} was decided, and is"
            " open now"
        )
        if rules.fails_on_loss:
            raise SparkError(f"{what}; {CONTINUE}")
        stop = spot_before(log, stretch, decided.first_open)
        stretch = _follow_from(begin, log, rules, stop=stop)
        stretch.passed.append(what)
        stretch.passed_offsets += end.next_offset - stretch.next_offset
    stretch.aborted = decided.aborted
    is_told = bool(begin.passed_offsets or stretch.passed)
    if (
        planned is not None
        and not is_told
        and not _is_proved(Plan(log, known, end, begin, stretch), decided, planned, policy)
    ):
        what = (
            f"{log.name}: this is not what was planned: the batches of offsets {first} to"
            f" {end.next_offset - 1} have changed since"
        )
        if rules.fails_on_loss:
            raise SparkError(f"{what}; {CONTINUE}")
        stretch.passed.append(what)
    return begin, stretch


def _begin_at(log: GrowingLog, first: int, end: Reached, policy: Policy) -> Begin:
    """Returns where a partition begins that nothing was read of when the batch was planned."""
    topic_id = log.beside.topic_id
    is_other = None not in (topic_id, end.topic_id) and topic_id != end.topic_id
    if is_other or log.first_offset > first:
        gone = f"offsets {first} to {log.first_offset - 1} are gone"
        if is_other:
            gone = f"topic id {end.topic_id} was planned, and {topic_id} is there"
        what = f"{log.name}: this is not what was planned: {gone}"
        if policy.rules.fails_on_loss:
            raise SparkError(f"{what}; {CONTINUE}")
        passed = max(0, log.first_offset - first)
        return Begin(Spot(0, 0), log.first_offset, passed=(what,), passed_offsets=passed)
    if first == log.first_offset:
        return Begin(Spot(0, 0), first)
    return log.spot_of(first)


def _stop_of(log: GrowingLog, end: Reached, policy: Policy) -> Spot:
    """Returns where a planned batch ends."""
    standing = _standing(log, end)
    if standing is not None:
        return standing
    found = log.find(end.next_offset)
    if found is not None:
        index, position = found[0]
        if position == 0 and index > 0:
            # The same place, before what may be missing between the segments.
            return Spot(index - 1, log.segments[index - 1].size)
        return found[0]
    if log.find(end.next_offset - 1) is None and policy.rules.fails_on_loss:
        raise SparkError(
            f"{log.name}: this is not what was planned: offset {end.next_offset - 1} was planned,"
            f" and is not there; {CONTINUE}"
        )
    return log.end()[0]


def _is_proved(found: Plan, decided: Decided, planned: Planned, policy: Policy) -> bool:
    """Whether the batches are those that were planned, or what compaction left of them."""
    log, known, begin, stretch = found.log, found.known, found.begin, found.stretch
    if known is None or planned.first_offset >= known.next_offset or planned.begins_anew:
        digest = stretch.digest
    elif log.first_offset > planned.first_offset:
        # Planned without knowing where reading stands, and the beginning is gone lawfully.
        return True
    else:
        at = log.find(planned.first_offset)
        spot, base = (begin.spot, None) if at is None else at
        first, end = planned.first_offset, stretch.end
        whole = follow(log, spot, first, policy.rules, base_offset=base, stop=end)
        decided = _decide(log, None, Begin(spot, first, base), whole, policy)
        digest = whole.digest
    if digest == planned.digest:
        return decided.digest(planned.first_offset, stretch.next_offset) == planned.aborted
    numbers = range(begin.spot.number, stretch.end.number + 1)
    around = tuple(number for number in numbers if log.may_be_cleaned(number))
    if not around:
        return False
    bases = log.bases[around[-1] + 1 :]
    offset = (
        min(found.reached.next_offset, *bases[:1]) - 1 if bases else found.reached.next_offset - 1
    )
    return log.explain(offset, offset, around) is not None
