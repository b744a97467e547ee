"""The partitions that a consumer has, and how far each has come.

    AWAITING ──▸ RESETTING ──▸ VALIDATING ◂──▸ FETCHING
        └─────────────────────────▸┘
    FAILED ◂── any; left by a seek alone

- ``AWAITING``: what the group has committed is being asked for, or will be.
- ``RESETTING``: the leader is asked for the offset of `reset_timestamp`.
- ``VALIDATING``: there is a position, but its leader changed: the leader is asked whether its log
  still has what was read before the position (KIP-320).
- ``FETCHING``: there is a position that records are fetched from.
- ``FAILED``: the application has to decide; each poll raises `error`.

Invariants:

- There is a position in ``VALIDATING`` and ``FETCHING``, none in ``AWAITING`` and ``RESETTING``.
- `error` is given in ``FAILED`` alone, `reset_timestamp` in ``RESETTING`` alone.
- An answer is buffered in ``FETCHING`` and ``VALIDATING`` alone; it goes on at the position, and
  what was fetched ahead begins where the answer ends.
- `term` grows whenever something other than delivered records moves the position; what was asked
  for in an earlier term is of no interest.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ottla.client.network.metadata import Leader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.client.consumer.errors import PositionError
    from ottla.client.consumer.position import Position
    from ottla.client.partitions import TopicPartition

__all__ = ["Assigned", "State", "Table"]

_NOBODY = Leader(-1, -1)


class Buffered(Protocol):
    """Records of a partition that are fetched, and not all delivered."""

    @property
    def position(self) -> Position:
        """Where the partition goes on: behind what is delivered."""

    @property
    def end(self) -> Position | None:
        """Where it goes on behind all of them; ``None`` where they cannot all be read."""


class State(Enum):
    """What a partition waits for."""

    AWAITING = "awaiting its committed offset"
    RESETTING = "resetting its position"
    VALIDATING = "validating its position"
    FETCHING = "fetching"
    FAILED = "failed"


class Assigned:
    """A partition that is assigned.

    Attributes:
        partition: which.
        state: see above.
        term: how often its position was set anew.
        reset_timestamp: of the offset to go on from: a time, -1 for the end, -2 for the beginning.
        error: why it failed.
        leader: whom its position was last validated with, or is.
        answer: fetched records that are not delivered yet.
        ahead: those that were fetched behind them.
        is_asked: whether a request about it is under way: one fetch, or one lookup.
        not_before_ms: when it may be asked for again, after something went wrong.
        attempts: how often that happened in a row.
        is_paused: whether the application has paused it.
        is_revoked: whether it is about to go to another member.
        is_doubted: whether its topic may be another of the same name, if its id says so.
        replica: the node to fetch from instead of the leader (KIP-392), and until when.
        high_watermark: the end of what a fetch of every record reaches; -1 where not known.
        last_stable_offset: the same for committed records.
        log_start_offset: the first offset of the log; -1 where not known.
    """

    __slots__ = (
        "_position",
        "ahead",
        "answer",
        "attempts",
        "error",
        "high_watermark",
        "is_asked",
        "is_doubted",
        "is_paused",
        "is_revoked",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "not_before_ms",
        "partition",
        "replica",
        "reset_timestamp",
        "state",
        "term",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.state = State.AWAITING
        self.term = 0
        self._position: Position | None = None
        self.reset_timestamp: int | None = None
        self.error: PositionError | None = None
        self.leader = _NOBODY
        self.answer: Buffered | None = None
        self.ahead: Buffered | None = None
        self.is_asked = False
        self.not_before_ms = 0
        self.attempts = 0
        self.is_paused = False
        self.is_revoked = False
        self.is_doubted = False
        self.replica: tuple[int, int] | None = None
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1

    @property
    def position(self) -> Position | None:
        """Where it goes on: behind what was delivered of the answer."""
        return self._position if self.answer is None else self.answer.position

    @property
    def fetch_position(self) -> Position | None:
        """Where to fetch from; ``None`` where enough is fetched."""
        if self.answer is None:
            return self._position
        return self.answer.end if self.ahead is None else None

    @property
    def may_deliver(self) -> bool:
        """Whether its records may be handed to the application."""
        return self.state is State.FETCHING and not self.is_paused and not self.is_revoked

    def seek(self, position: Position) -> None:
        """Goes on from a position, which is validated first where that can be."""
        self._begin(State.VALIDATING)
        self._position = position
        self.leader = _NOBODY

    def reset(self, timestamp: int) -> None:
        """Goes on from the offset of a timestamp, once its leader has told that."""
        self._begin(State.RESETTING)
        self.reset_timestamp = timestamp

    def await_offset(self) -> None:
        """Goes on from what the group has committed."""
        self._begin(State.AWAITING)

    def fail(self, error: PositionError) -> None:
        """Goes on nowhere before the application seeks; keeps its position, to be asked for."""
        position = self.position
        self._begin(State.FAILED)
        self._position = position
        self.error = error

    def validate(self) -> None:
        """Has the position compared with the log of another leader; what is fetched is kept."""
        self.state = State.VALIDATING
        self.is_asked = False

    def validated(self, leader: Leader) -> None:
        """The position is one of this leader's log, as far as can be known."""
        self.state = State.FETCHING
        self.leader = leader

    def learn(self, position: Position) -> None:
        """The log that the position is of is known better; the offset is the same."""
        self._position = position

    def drain(self) -> None:
        """Goes on with what was fetched ahead: all of the answer is delivered."""
        if self.answer is not None:
            self._position = self.answer.position
            self.answer, self.ahead = self.ahead, None

    def refetch(self) -> None:
        """Has what is fetched, and not delivered, fetched again."""
        if self.answer is not None:
            self._position = self.answer.position
            self.answer = self.ahead = None

    def retry(self, at_ms: int) -> None:
        """Something went wrong: it is asked for again later."""
        self.is_asked = False
        self.attempts += 1
        self.not_before_ms = at_ms

    def went_well(self) -> None:
        """An answer came: what went wrong before counts no more."""
        self.is_asked = False
        self.attempts = 0
        self.not_before_ms = 0

    def _begin(self, state: State) -> None:
        self.term += 1
        self.state = state
        self._position = None
        self.reset_timestamp = None
        self.error = None
        self.answer = self.ahead = None
        self.is_asked = False
        self.not_before_ms = 0
        self.attempts = 0


class Table:
    """All partitions that are assigned, in the order in which they are fetched."""

    def __init__(self) -> None:
        self._all: dict[TopicPartition, Assigned] = {}

    def __iter__(self) -> Iterator[Assigned]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, partition: object) -> bool:
        return partition in self._all

    def get(self, partition: TopicPartition) -> Assigned | None:
        """Returns what is known of a partition; ``None`` where it is not assigned."""
        return self._all.get(partition)

    def partitions(self) -> frozenset[TopicPartition]:
        """Returns all partitions."""
        return frozenset(self._all)

    def set(self, partitions: Iterable[TopicPartition]) -> None:
        """Has exactly these; what is known of those that stay is kept."""
        known = self._all
        self._all = {one: known.get(one) or Assigned(one) for one in partitions}

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Has these no longer."""
        for one in partitions:
            self._all.pop(one, None)

    def put_last(self, assigned: Assigned) -> None:
        """Has a partition fetched after the others, as it had its turn."""
        if self._all.pop(assigned.partition, None) is not None:
            self._all[assigned.partition] = assigned
