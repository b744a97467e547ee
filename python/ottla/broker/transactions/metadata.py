"""What the coordinator knows of a transactional id, and every change that it can undergo.

States, with the numbers that the log has for them (KIP-98, KIP-890):

    Empty ─────────add──▶ Ongoing ──commit──▶ PrepareCommit ──markers──▶ CompleteCommit
                           │
                           └──abort, fence──▶ PrepareAbort ──markers──▶ CompleteAbort

- ``add``: from Empty and from both Complete states, and within Ongoing.
- ``init``: from Empty and from both Complete states to Empty, by a higher epoch or another id. In
  Ongoing it fences first; in the Prepare states it waits.
- ``abort`` of a transaction without partitions: transaction version 2 has it from Empty and from
  both Complete states as well, since its producer cannot know whether a partition was added.
- Dead: the id has expired; its record in the log is a tombstone.
- PrepareEpochFence: the epoch is raised so that an abort can follow. Both happen at once here, so
  it is a step (`fenced`), never a state that is kept.

Invariants: a change never lowers the epoch of a producer id; the epoch 32767 is for fencing and is
never handed out; `partitions` is empty unless a transaction is under way; metadata is immutable,
so what could not be written to the log has not happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MAX_EPOCH",
    "NO_PRODUCER",
    "STATE_NAMES",
    "TopicPartition",
    "TransactionMetadata",
    "TransactionState",
]

TopicPartition = tuple[str, int]

MAX_EPOCH: Final = 32767
NO_PRODUCER: Final = -1
"""Stands for no producer id, and for no epoch."""

EPOCH_BUMPS: Final = 2
"""From this transaction version on, each end of a transaction raises the epoch (KIP-890)."""


class TransactionState:
    """Where a transactional id stands: numbers of the log."""

    EMPTY: Final = 0
    ONGOING: Final = 1
    PREPARE_COMMIT: Final = 2
    PREPARE_ABORT: Final = 3
    COMPLETE_COMMIT: Final = 4
    COMPLETE_ABORT: Final = 5
    DEAD: Final = 6
    PREPARE_EPOCH_FENCE: Final = 7


STATE_NAMES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Kafka's names, by number."""


class TransactionMetadata(NamedTuple):
    """A transactional id.

    Attributes:
        producer_id, producer_epoch: the only producer that may act for the id. While markers of
            version 2 are written, the epoch is that of the markers: one more than the producer's.
        previous_producer_id: the id before the last change; tells a retry across a change of it.
        next_producer_id: the id that follows when the transaction is complete, -1 for the same.
        last_producer_epoch: the epoch before the last one handed out, -1 if that is of no use to
            a retry. It is not in the log, as in Kafka: a retry across a restart is fenced.
        timeout_ms: how long a transaction may take.
        state: a number of `TransactionState`.
        partitions: of the transaction under way.
        start_ms: when the transaction began, -1 before the first.
        last_update_ms: when this became so.
        transaction_version: of the client that made the last change.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    last_producer_epoch: int = NO_PRODUCER
    timeout_ms: int = 0
    state: int = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    last_update_ms: int = -1
    transaction_version: int = 0

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return STATE_NAMES[self.state]

    @property
    def is_exhausted(self) -> bool:
        """Whether no further epoch can be handed out: the last one is kept for fencing."""
        return self.producer_epoch >= MAX_EPOCH - 1

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and markers are still to be written."""
        return self.state in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is under way."""
        return self.state in {
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        }

    def with_next_epoch(
        self, timeout_ms: int, *, expects_epoch: bool, now_ms: int
    ) -> TransactionMetadata:
        """Returns Empty with the next epoch, for a producer that starts or resumes (KIP-360)."""
        return self._replace(
            previous_producer_id=self.producer_id,
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=self.producer_epoch if expects_epoch else NO_PRODUCER,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            start_ms=-1,
            last_update_ms=now_ms,
        )

    def with_producer_id(
        self, producer_id: int, timeout_ms: int, *, expects_epoch: bool, now_ms: int
    ) -> TransactionMetadata:
        """Returns Empty with another producer id, for the epochs of this one are used up."""
        return self._replace(
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if expects_epoch else NO_PRODUCER,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            start_ms=-1,
            last_update_ms=now_ms,
        )

    def with_timeout(self, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """Returns Empty with the same producer, for the retry of a start that succeeded."""
        return self._replace(
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            start_ms=-1,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], transaction_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Returns Ongoing with more partitions."""
        return self._replace(
            previous_producer_id=self.producer_id,
            state=TransactionState.ONGOING,
            partitions=self.partitions.union(added),
            start_ms=now_ms if self.is_idle else self.start_ms,
            last_update_ms=now_ms,
            transaction_version=transaction_version,
        )

    def fenced(self) -> TransactionMetadata:
        """Returns the same with an epoch that no producer has; an abort follows at once."""
        return self._replace(
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER,
        )

    def prepared(
        self, *, commit: bool, next_producer_id: int, transaction_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Returns the state in which the outcome is decided, with the epoch of the markers."""
        bumps = transaction_version >= EPOCH_BUMPS
        return self._replace(
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=min(self.producer_epoch + bumps, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            start_ms=now_ms if self.is_idle else self.start_ms,
            last_update_ms=now_ms,
            transaction_version=transaction_version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Returns the state after the last marker; a next producer id takes over here."""
        is_commit = self.state == TransactionState.PREPARE_COMMIT
        changes_id = self.next_producer_id != NO_PRODUCER
        return self._replace(
            producer_id=self.next_producer_id if changes_id else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER,
            producer_epoch=0 if changes_id else self.producer_epoch,
            state=TransactionState.COMPLETE_COMMIT
            if is_commit
            else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )
