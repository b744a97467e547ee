"""Follows a growing log from batch to batch, and passes nothing over that it cannot explain.

The end of each segment is held against the beginning of the next one, each batch against the one
before it. Where that does not fit, a stream waits, passes what is explained, or fails; see
`docs/spark/streaming.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import SparkError
from ottla.logs.names import MAX_OFFSET
from ottla.logs.segment import first_batch, follow_batches, segment_table
from ottla.spark.source.checkpoint import LastBatch
from ottla.spark.source.growing import Spot

if TYPE_CHECKING:
    from ottla.logs.segment import Followed, FoundBatch
    from ottla.spark.source.growing import GrowingLog, SegmentFile
    from ottla.spark.source.spans import Transaction

MASK = 2**64 - 1

CONTINUE = "the option fail_on_data_loss=false continues at the next available offset"


class Rules(NamedTuple):
    """What a stream does about what it finds."""

    waits: bool = True
    """Whether it waits for segments that may still come."""
    fails_on_damage: bool = True
    passes_misplaced: bool = True
    """Whether a batch that is out of its place is damage. With `read_committed` it is an error: a
    transaction may begin or end there."""
    fails_on_loss: bool = True
    is_replay: bool = False
    """Whether the same range was planned before: then nothing can be waited for."""


class Run(NamedTuple):
    """Batches of a segment that follow each other."""

    start: int
    stop: int
    digest: int


@dataclass(slots=True)
class Part:
    """What to read of a segment."""

    segment: SegmentFile
    start: int
    stop: int
    expected: int | None = None
    """The offset that its first batch is to have; None if that is not known."""
    runs: list[Run] = field(default_factory=list)


@dataclass(slots=True)
class Stretch:
    """What can be read of a log from a position on."""

    end: Spot
    next_offset: int
    parts: list[Part] = field(default_factory=list)
    digest: int = 0
    leader_epoch: int = -1
    last_batch: LastBatch | None = None
    holes: list[tuple[int, int]] = field(default_factory=list)
    """Holes between segments that are explained."""
    passed: list[str] = field(default_factory=list)
    """What is lost and passed over, in words."""
    passed_offsets: int = 0
    waits: str | None = None
    """Why it does not go on, in words; None at the end of the log."""
    behind: FoundBatch | None = None
    """The batch behind it if it ends with damage: it shows how far the damage reaches."""
    aborted: tuple[Transaction, ...] = ()
    """Aborted transactions whose records are left out, with `read_committed`."""

    @property
    def byte_count(self) -> int:
        """How many bytes to read."""
        return sum(part.stop - part.start for part in self.parts)


class _Walk:
    """One walk over a log."""

    def __init__(self, log: GrowingLog, rules: Rules, start: Spot, next_offset: int) -> None:
        self.log = log
        self.rules = rules
        self.index, self.position = start
        self.expected: int | None = next_offset
        self.has_holes = False
        self.is_behind_damage = False
        self.has_batch_before = False
        self.start_offset = next_offset
        self.stretch = Stretch(start, next_offset)

    @property
    def segment(self) -> SegmentFile:
        return self.log.segments[self.index]

    @property
    def is_last(self) -> bool:
        return self.index == len(self.log.segments) - 1

    def take(self, run: Followed) -> None:
        """Adds a run of batches."""
        stretch = self.stretch
        if run.batches:
            stretch.digest = (stretch.digest + run.digest) & MASK
            stretch.leader_epoch = max(stretch.leader_epoch, run.leader_epoch)
            one = follow_batches(self.segment.place, run.last, run.end, has_holes=True)
            stretch.last_batch = LastBatch(run.last, one.digest)
            stretch.next_offset = max(stretch.next_offset, run.next_offset or 0)
            self.has_batch_before = True
        self.extend(run.end, Run(self.position, run.end, run.digest) if run.batches else None)
        if run.batches:
            self.expected = run.next_offset
            if not self.rules.fails_on_damage:
                self.look_at_last(run.last)

    def look_at_last(self, position: int) -> None:
        """Looks whether the header of the last batch of a run is damaged."""
        batch = first_batch(self.segment.place, position)
        is_readable = batch is not None and batch.position == position and batch.is_valid
        # What a damaged batch says of its offsets shows in the one that follows it.
        self.is_behind_damage = not is_readable
        if batch is not None and is_readable:
            # It can be read although its magic is wrong, by which it would have one record.
            next_offset = batch.last_offset + 1
            self.stretch.next_offset = max(self.stretch.next_offset, next_offset)
            self.expected = max(self.expected or 0, next_offset)

    def extend(self, end: int, run: Run | None = None) -> None:
        """Reads the segment up to a position."""
        parts = self.stretch.parts
        if end > self.position:
            if not parts or parts[-1].segment is not self.segment:
                parts.append(Part(self.segment, self.position, end, self.expected))
            parts[-1].stop = end
            if run is not None:
                parts[-1].runs.append(run)
            self.position = end
            self.stretch.end = Spot(self.index, end)

    def go_to_next(self) -> bool:
        """Goes on to the next segment; False if offsets between them are waited for."""
        following = self.log.segments[self.index + 1]
        may_come = self.rules.waits and not self.rules.is_replay
        is_before = following.base_offset < self.stretch.next_offset
        if self.is_behind_damage and (is_before or not may_come):
            self.go_on_behind(following.base_offset)
        expected = self.stretch.next_offset
        self.has_holes = False
        if following.base_offset > expected and not self.pass_hole(
            expected, following.base_offset - 1, (self.index, self.index + 1), may_come=True
        ):
            return False
        self.index, self.position = self.index + 1, 0
        self.has_batch_before = False
        self.expected = max(expected, following.base_offset)
        self.stretch.next_offset = max(expected, following.base_offset)
        # Until a batch of it was read, the end of the stretch is that of the segment before.
        return True

    def pass_hole(
        self, first: int, last: int, around: tuple[int, ...], *, may_come: bool = False
    ) -> bool:
        """Passes offsets that are missing; False if they are waited for.

        Raises:
            SparkError: nothing explains that they are missing.
        """
        if self.log.explain(first, last, around) is not None:
            # What explains an offset at the end of the segment explains all holes in it.
            bases = self.log.bases[around[-1] + 1 :]
            at_end = bases[0] - 1 if bases else MAX_OFFSET
            self.has_holes = self.log.explain(at_end, at_end, around) is not None
            if may_come:
                # An empty segment has the name of the first offset that is missing.
                is_there = self.log.bases[around[0]] == first
                self.stretch.holes.append((first + is_there, last))
            return True
        rules, name = self.rules, self.log.name
        if may_come and rules.waits and not rules.is_replay:
            self.stretch.waits = (
                f"offsets {first} to {last} are missing before"
                f" {self.log.segments[around[-1]].file}, and may still be copied;"
                " late_segments=fail ends the query instead"
            )
            return False
        what = f"{name}: offsets {first} to {last} are missing"
        if rules.is_replay:
            what = (
                f"{name}: this is not what was planned: offsets {first} to {last} are missing now"
            )
        if rules.fails_on_loss:
            raise SparkError(
                f"{what}: neither compaction nor the log start of a checkpoint beside the log"
                f" explains it; {CONTINUE}"
            )
        self.stretch.passed.append(what)
        self.stretch.passed_offsets += last - first + 1
        return True

    def damage(self, what: str, behind: FoundBatch | None) -> None:
        """Steps over bytes that are no batch, to the one behind them or the end of the segment.

        Raises:
            SparkError: damage is to fail.
        """
        position = self.position
        if self.rules.fails_on_damage:
            goes_on = (
                f"; the next batch has offset {behind.base_offset}" if behind is not None else ""
            )
            raise SparkError(
                f"{self.segment.file}: damage at position {position}, where offset"
                f" {self.stretch.next_offset} is expected: {what}{goes_on}; the option"
                " on_damage=skip goes on behind it"
            )
        self.extend(self.segment.size if behind is None else behind.position)
        self.has_batch_before = False
        following = None if behind is None else behind.base_offset
        self.expected = following
        if following is None and not self.is_last:
            # What is missing before the next segment was here.
            following = self.log.bases[self.index + 1]
        self.is_behind_damage = following is not None
        if following is not None:
            self.stretch.next_offset = max(self.stretch.next_offset, following)

    def pass_misplaced(self, expected: int) -> bool | None:
        """Steps over a batch whose offsets contradict what is around it, though its checksum holds.

        The reader of records decides, which a task will ask, too.

        Returns:
            Whether there is such a batch; None if only a batch that is still to come will tell.
        """
        segment, position = self.segment, self.position
        found = first_batch(segment.place, position)
        if self.rules.fails_on_damage or not self.rules.passes_misplaced:
            return False
        if found is None or found.position != position:
            return False
        behind = first_batch(segment.place, position + found.size)
        if behind is not None and behind.position >= segment.size:
            behind = None
        if behind is None and self.is_last:
            return False if self.rules.is_replay else None
        following = None if self.is_last else self.log.bases[self.index + 1]
        rows = segment_table(
            segment.place,
            "records",
            columns=["offset"],
            start=position,
            stop=segment.size if behind is None else behind.position + behind.size,
            place_in_log=(segment.base_offset, following, False),
            expected=expected,
        )
        for _ in rows:
            pass
        damage = [one for one in rows.take_damage() if one["position"] == position]
        if not damage:
            return False
        self.damage(damage[0]["message"], behind)
        return True

    def drop_unwritten(self, run: Followed) -> Followed | None:
        """Returns a run of the last segment without last batches that are still being written."""
        behind = first_batch(self.segment.place, run.end)
        if behind is not None and behind.is_valid:
            return run
        while not self.is_valid(run.last):
            if run.batches == 1:
                return None
            run = follow_batches(
                self.segment.place,
                self.position,
                run.last,
                next_offset=self.expected,
                has_holes=self.has_holes,
            )
        return run

    def is_valid(self, position: int) -> bool:
        """Whether the checksum of the batch at a position of the segment is correct."""
        batch = first_batch(self.segment.place, position)
        return batch is not None and batch.position == position and batch.is_valid

    def go_on_behind(self, base_offset: int) -> bool:
        """Goes on with a batch that does not follow, if the one before it is damaged; else False.

        Then its offsets are not what its header says.
        """
        last = self.stretch.last_batch
        if self.rules.fails_on_damage or last is None or not self.has_batch_before:
            return False
        if self.is_valid(last.position):
            return False
        self.is_behind_damage = True
        self.expected = base_offset
        self.stretch.next_offset = max(self.start_offset, base_offset)
        return True


def follow(
    log: GrowingLog,
    start: Spot,
    next_offset: int,
    rules: Rules,
    *,
    base_offset: int | None = None,
    budget: int | None = None,
    stop: Spot | None = None,
) -> Stretch:
    """Follows a log from a position to its end, a budget of bytes or another position.

    Args:
        log: the log.
        start: where a batch begins, or the log ends.
        next_offset: the first offset to read.
        rules: what to do about holes and damage.
        base_offset: of the batch there, if it begins before `next_offset`.
        budget: ends with the batch that reaches this number of bytes.
        stop: ends there at the latest.

    Raises:
        SparkError: the rules say so.
        OSError: a segment cannot be read.
    """
    walk = _Walk(log, rules, start, next_offset)
    if stop is not None and start >= stop:
        return walk.stretch
    if base_offset is not None:
        walk.expected = min(base_offset, next_offset)
    while _step(walk, budget, stop):
        # What follows damage shows how far it reaches.
        if budget is not None and walk.stretch.byte_count >= budget and not walk.is_behind_damage:
            break
    if walk.is_behind_damage:
        walk.stretch.behind = first_batch(walk.segment.place, walk.position)
    return walk.stretch


def _step(walk: _Walk, budget: int | None, stop: Spot | None) -> bool:
    """Follows one run of batches; whether there may be another."""
    is_end = stop is not None and walk.index == stop.number
    limit = stop.position if stop is not None and is_end else walk.segment.size
    left = None if budget is None else max(1, budget - walk.stretch.byte_count)
    run = follow_batches(
        walk.segment.place,
        walk.position,
        limit,
        max_bytes=left,
        next_offset=walk.expected,
        has_holes=walk.has_holes,
    )
    if run.batches and walk.is_last and not walk.rules.is_replay:
        whole = walk.drop_unwritten(run)
        if whole is not run:
            if whole is not None:
                walk.take(whole)
            walk.stretch.waits = _unwritten(walk)
            return False
    walk.take(run)
    if run.found_offset is not None and walk.go_on_behind(run.found_offset):
        return True
    if run.stop == "limit":
        return walk.is_behind_damage
    if run.stop == "hole" and run.found_offset is not None:
        expected = walk.expected if walk.expected is not None else walk.stretch.next_offset
        if run.found_offset <= expected:
            # The header of the batch before it said less.
            return True
        is_misplaced = walk.pass_misplaced(expected)
        if is_misplaced is None:
            walk.stretch.waits = (
                f"the last batch of {walk.segment.file} has offset {run.found_offset} where"
                f" {expected} is expected: one behind it shows whether this is damage"
            )
            return False
        if not is_misplaced:
            walk.pass_hole(expected, run.found_offset - 1, (walk.index,))
            walk.expected = run.found_offset
            walk.stretch.next_offset = max(walk.stretch.next_offset, run.found_offset)
        return True
    if run.stop == "back":
        if walk.pass_misplaced(walk.stretch.next_offset):
            return True
        walk.damage(
            f"a batch of offset {run.found_offset}", first_batch(walk.segment.place, walk.position)
        )
        walk.expected = None
        return True
    if run.stop in ("torn", "no-batch") and not _step_over(walk):
        return False
    if is_end or walk.is_last:
        return walk.position < limit
    return walk.position < limit or walk.go_to_next()


def _unwritten(walk: _Walk) -> str:
    left, file = walk.segment.size - walk.position, walk.segment.file
    return f"{left} bytes of {file} from position {walk.position} on are no whole batch yet"


def _step_over(walk: _Walk) -> bool:
    """Goes on behind bytes that are no whole batch; False if they may still be written."""
    behind = first_batch(walk.segment.place, walk.position)
    if behind is not None and behind.position == walk.position:
        # It is damaged, or its offsets, which no checksum covers, are none.
        behind = first_batch(walk.segment.place, walk.position + behind.size)
    expected = walk.stretch.next_offset
    proven = behind is not None and behind.is_valid and behind.base_offset >= expected
    if behind is not None and proven and behind.position < walk.segment.size:
        what = f"{behind.position - walk.position} bytes are no batch, but another follows"
        walk.damage(what, behind)
        return True
    if walk.is_last:
        walk.stretch.waits = _unwritten(walk)
        return False
    # What a closed segment ends with is lost only if offsets are.
    following = walk.log.segments[walk.index + 1].base_offset
    if following > expected and walk.rules.waits and not walk.rules.is_replay:
        if walk.log.explain(expected, following - 1, (walk.index, walk.index + 1)) is None:
            left = walk.segment.size - walk.position
            walk.stretch.waits = (
                f"{left} bytes at the end of {walk.segment.file} are no whole batch, and offsets"
                f" {expected} to {following - 1} are missing: it may still be copied;"
                " late_segments=fail ends the query instead"
            )
            return False
    elif following > expected:
        walk.damage(
            f"{walk.segment.size - walk.position} bytes at the end are no whole batch", None
        )
        return True
    walk.extend(walk.segment.size)
    return True
