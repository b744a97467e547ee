"""The options there are for one partition before a start, each with its price.

A request is data: a thread carries it out, or a task of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.audit.advice.candidates import (
    MOVE_PARTITION,
    NOTHING,
    Candidate,
    Named,
    candidates,
    mends,
    wrong_side_files,
)
from ottla.audit.advice.deed import Cost
from ottla.audit.advice.trial import Directory, Effect, Start, Trial, moved_away
from ottla.logs.names import CLUSTER_METADATA, LOG_START_OFFSETS, RECOVERY_POINTS
from ottla.storage import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.audit.judge.restarts import StartRequest
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.inventory import Partition
    from ottla.storage import Files

MAX_TRIALS = 40
"""Starts that are tried on one partition."""

BYTES_READ = 64 << 20
SIZES_READ = 6
"""What trials on one partition may read before no more are begun: so many bytes, and so many times
the size of its segments."""

MAX_COMBINED = 8
"""Candidates that are tried beside the best one."""


@dataclass(frozen=True)
class Option:
    """Something to do to a partition before a start, and what the start makes of it then."""

    candidate: Candidate
    effect: Effect
    """At worst: with every segment recovered after an unclean stop, as where the recovery point is
    lost, and by a broker since 4.0, which puts aside what has no topic id."""
    expected: Effect
    """With the recovery point of its checkpoint, and by a broker like the one that left it."""

    @cached_property
    def is_fine(self) -> bool:
        """Nothing is lost, and nothing is in the way."""
        return self.effect.is_perfect and self.expected.is_perfect

    @cached_property
    def cost(self) -> Cost:
        """How bad it is, as expected and at worst."""
        return Cost(_cost(self.expected), _cost(self.effect))

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """By cost; then by producers and leader epochs that are forgotten, and by what is done."""
        known = self.expected.producers or 0, self.expected.leader_epochs
        return (*self.cost, *(-number for number in known), len(self.candidate.operations))


def _cost(effect: Effect) -> tuple[int, int, int]:
    return effect.refuses, effect.gone, effect.exposed_transactions


@dataclass(frozen=True, slots=True)
class Stays:
    """The other directory of a partition that a broker has twice."""

    directory: str
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """What can be done to one partition before a start."""

    clean: bool
    """The start is one after a clean stop."""
    readable: int
    """Offsets that `ottla read` gives."""
    nothing: Option
    best: Option
    """Never worse than `nothing`."""
    mend: Option | None
    """What has the start make more of the wrong side files anew, and costs nothing."""
    left_out: int
    """Candidates that were not tried."""
    stays: Stays | None = None
    """The directory that the broker goes on with if this one is moved away."""

    @property
    def is_hard(self) -> bool:
        """Even the best option costs something, which another kind of start may save."""
        return any(self.best.cost.expected) and not self.best.expected.is_put_aside

    @property
    def move(self) -> Option:
        """Moving the directory away."""
        if self.stays is not None:
            return self.best
        away = moved_away(self.readable)
        return Option(MOVE_PARTITION, away, away)


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """A partition whose options are to be priced."""

    start: StartRequest
    """What the prediction of its next start was asked for."""
    named: tuple[Named, ...]
    clean: bool
    """The start to be tried is one after a clean stop."""

    @property
    def partition(self) -> Partition:
        """Which."""
        return self.start.partition

    def options(
        self, checkpoints: Checkpoints, files: Files, progress: Callable[[int], bool] | None = None
    ) -> PartitionOptions | str:
        """The options, or why there are none.

        Raises:
            AuditCancelledError: `progress` said so.
        """
        partition = self.partition
        point = checkpoints.offset(partition, RECOVERY_POINTS) or 0
        directory = Directory(
            partition=partition,
            log_start_offset=checkpoints.offset(partition, LOG_START_OFFSETS) or 0,
            aborted=self.start.aborted,
            files=files,
            progress=progress,
            wrong=wrong_side_files(partition.names, self.named),
        )
        is_quorum = partition.topic == CLUSTER_METADATA
        starts = [Start(self.clean, recovery_point=0)]
        if not (self.clean or is_quorum) and _skips(partition, point):
            starts.append(Start(clean=False, recovery_point=point))
        try:
            needs_id = self.start.needs_topic_id
            return _Search(directory, starts, self.named, needs_topic_id=needs_id).options()
        except OSError as error:
            return reason_of(error)


def _skips(partition: Partition, recovery_point: int) -> bool:
    """Whether some segment ends before a recovery point."""
    bases = partition.live_base_offsets
    return len(bases) > 1 and recovery_point >= bases[1]


class _Search:
    """The trials on one partition."""

    def __init__(
        self,
        directory: Directory,
        starts: Sequence[Start],
        named: Sequence[Named],
        *,
        needs_topic_id: bool,
    ) -> None:
        self._directory = directory
        self._starts = starts
        self._named = named
        self._needs_topic_id = needs_topic_id
        size = sum(file.size for file in directory.partition.segments)
        self._budget = BYTES_READ + SIZES_READ * size
        self._tried: dict[Candidate, list[Trial]] = {}
        self._options: dict[Candidate, Option] = {}
        self._left_out = 0

    def options(self) -> PartitionOptions:
        self._try([NOTHING])
        nothing = self._options[NOTHING]
        if nothing.effect.refuses or nothing.expected.refuses:
            away = moved_away(nothing.effect.readable)
            self._options[MOVE_PARTITION] = Option(MOVE_PARTITION, away, away)
        if not nothing.is_fine:
            found = candidates(self._directory, self._tried[NOTHING][-1], self._named)
            self._try(found)
            self._combine(found)
        partition = self._directory.partition
        if set(self._directory.wrong) > set(nothing.expected.mended):
            self._try(mends(partition.names, partition.segments, self._directory.wrong))
        offered = [option for option in self._options.values() if self._is_offered(option)]
        best = min(offered, key=lambda option: option.rank)
        best = best if best.cost.expected < nothing.cost.expected else nothing
        free = [option for option in offered if self._is_free(option, best)]
        mend = min(free, key=_mending, default=None)
        is_more = mend is not None and len(mend.expected.mended) > len(nothing.expected.mended)
        return PartitionOptions(
            clean=self._starts[0].clean,
            readable=nothing.effect.readable,
            nothing=nothing,
            best=best,
            mend=mend if is_more else None,
            left_out=self._left_out,
        )

    def _is_free(self, option: Option, best: Option) -> bool:
        """No record and no producer is the price of it."""
        tried = self._tried.get(option.candidate)
        return (
            tried is not None
            and option.cost.expected <= best.cost.expected
            and all(trial.keeps_producers for trial in tried)
        )

    def _is_offered(self, option: Option) -> bool:
        """Nobody is told to do what may cost more than doing nothing, at worst."""
        nothing, effect = self._options[NOTHING].effect, option.effect
        return (effect.refuses, effect.readable_offsets_lost, effect.gone) <= (
            nothing.refuses,
            nothing.readable_offsets_lost,
            nothing.gone,
        )

    def _combine(self, found: Sequence[Candidate]) -> None:
        """Tries the best so far beside others, as long as it is not good enough."""
        best = min(self._options.values(), key=lambda option: option.rank)
        if best.is_fine or best.candidate in (NOTHING, MOVE_PARTITION):
            return
        others = [c for c in found if not c.operations <= best.candidate.operations]
        both = dict.fromkeys(best.candidate.beside(other) for other in others)
        self._try([*both][:MAX_COMBINED])

    def _try(self, wanted: Iterable[Candidate]) -> None:
        """Tries candidates, and prices them."""
        new = []
        for candidate in wanted:
            if candidate in self._tried:
                continue
            is_over = self._directory.bytes_read > self._budget
            if is_over or len(self._tried) * len(self._starts) >= MAX_TRIALS:
                self._left_out += 1
                continue
            starts = self._starts
            self._tried[candidate] = [self._directory.predict(s, candidate.gone) for s in starts]
            new.append(candidate)
        if not new:
            return
        flat = [trial for candidate in new for trial in self._tried[candidate]]
        effects = self._directory.effects(flat)
        for number, candidate in enumerate(new):
            worst, *others = effects[number * len(self._starts) :][: len(self._starts)]
            expected = others[0] if others else worst
            if not self._needs_topic_id:
                expected = expected._replace(is_put_aside=False)
            self._options[candidate] = Option(candidate, worst, expected)


def _mending(option: Option) -> tuple[int, int]:
    """The order of options by what they have a start make anew."""
    return -len(option.expected.mended), len(option.candidate.operations)
