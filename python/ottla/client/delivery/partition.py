"""The batches of one partition, in order, and their sequences.

    add ─▸ waiting ─▸ next_batch ─▸ open ─┬▸ done, or failed
                          ▴               │
                          └── to repeat ──┘

`open` has the batches that have sequences and no end yet, in order; some of them are under way,
others wait to be sent again. What holds:

- the sequences of `open` follow each other without a gap, from the one behind the last that was
  acknowledged to `next_sequence`;
- a batch is sent again alone, and as the oldest of `open`; a new one only where none is to be sent
  again;
- a batch that the leader refused leaves no gap: those behind it move up (*renumbering*), which the
  leader allows, as it never saw them in order;
- where it is not sure what the leader expects, all that is open is numbered from 0 under a new
  epoch, once it is sure that none of it is in the log (*bumping*).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from ottla.client.delivery.batch import NO_SEQUENCE, Batch, Identity, sequence_after
from ottla.client.delivery.reactions import Reaction, reaction
from ottla.client.errors import KafkaTimeoutError, UnknownProducerIdError, error_of
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.delivery.batch import QueuedRecord
    from ottla.client.delivery.reactions import Kind
    from ottla.client.transactions.reactions import Policy
    from ottla.protocol.messages.produce import PartitionProduceResponse

__all__ = ["PartitionQueue", "Producer"]

_WRITTEN_PERHAPS = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}


class Producer(Protocol):
    """What partitions share.

    Attributes:
        kind: of the producer.
        policy: whose rules there are for errors.
        identity: the id and epoch that new sequences belong to.
        drops_invalid_records: whether records that the leader names fail alone.
        recovers_unknown_producer: whether records that may be lost are no reason to stop.
        delivery_timeout_ms: after which a record fails.
    """

    kind: Kind
    policy: Policy
    identity: Identity
    drops_invalid_records: bool
    recovers_unknown_producer: bool
    delivery_timeout_ms: int

    def backoff_ms(self, attempts: int) -> int:
        """How long to wait before a batch is sent again."""

    def refresh(self, topic: str) -> None:
        """The leaders of a topic have to be looked up again."""

    def need_bump(self) -> None:
        """A new epoch is needed, as soon as the partition's `may_bump` says so."""

    def fail_abortably(self, error: BaseException, *, must_bump: bool = False) -> None:
        """The open transaction has to be aborted."""

    def fail_fatally(self, error: BaseException) -> None:
        """The producer has to be closed."""

    def lose_data(
        self, topic: str, partition: int, last_offset: int, log_start_offset: int
    ) -> None:
        """Acknowledged records may be lost."""


class PartitionQueue:
    """The batches of a partition.

    Args:
        topic: its name.
        partition: its number.
        producer: what it shares with others.

    Attributes:
        waiting: batches without sequences.
        open: batches with sequences and no end yet.
        next_sequence: of the next batch to be numbered.
        last_sequence: the last that was acknowledged.
        last_offset: likewise.
        must_bump: whether it goes on with a new epoch only.
    """

    def __init__(self, topic: str, partition: int, producer: Producer) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.open: list[Batch] = []
        self.next_sequence = 0
        self.last_sequence = NO_SEQUENCE
        self.last_offset = -1
        self.must_bump = False
        self._identity = Identity()
        self._unresolved = False
        self._producer = producer

    def add(self, records: Iterable[QueuedRecord]) -> None:
        """Puts records behind the others, as one batch."""
        self.waiting.append(Batch([*records]))

    @property
    def is_idle(self) -> bool:
        """Whether no answer is to come."""
        return not any(batch.is_under_way for batch in self.open)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be sent or answered."""
        return not self.open and not self.waiting

    @property
    def may_bump(self) -> bool:
        """Whether it needs a new epoch, and what is open is surely not in the log.

        What may be is sent again in the old epoch first: in that one the leader knows it.
        """
        is_sure = not any(batch.is_under_way or batch.may_be_written for batch in self.open)
        return self.must_bump and is_sure

    @property
    def _has_sequences(self) -> bool:
        return self._producer.kind != "none"

    # To the leader.

    def next_batch(self, now_ms: int, max_in_flight: int) -> Batch | None:
        """Returns the batch to send now, which is under way from then on; `None` for none."""
        under_way = sum(batch.is_under_way for batch in self.open)
        if under_way >= max_in_flight:
            return None
        if not self._has_sequences:
            repeated = next((batch for batch in self.open if not batch.is_under_way), None)
            return self._repeated(repeated, now_ms) if repeated else self._fresh()
        self._take_over()
        if self.must_bump:
            doubtful = next((batch for batch in self.open if batch.may_be_written), None)
            return self._repeated(doubtful, now_ms) if doubtful and not under_way else None
        if self.open and not all(batch.is_under_way for batch in self.open):
            return None if under_way else self._repeated(self.open[0], now_ms)
        if self._unresolved or self._identity != self._producer.identity:
            return None
        return self._fresh()

    def _repeated(self, batch: Batch, now_ms: int) -> Batch | None:
        return None if batch.not_before_ms > now_ms else self._send(batch)

    def _fresh(self) -> Batch | None:
        if not self.waiting:
            return None
        batch = self.waiting.popleft()
        if self._has_sequences:
            batch.number(self._identity, self.next_sequence)
            self.next_sequence = sequence_after(self.next_sequence, batch.count)
        self.open.append(batch)
        return self._send(batch)

    def next_deadline_ms(self) -> int | None:
        """Returns when a batch may be sent again, or expires; `None` for never."""
        times = [batch.not_before_ms for batch in self.open[:1] if not batch.is_under_way]
        times += [
            batch.created_ms + self._producer.delivery_timeout_ms
            for batch in (*self.open, *self.waiting)
            if not batch.is_under_way
        ]
        return min(times, default=None)

    def _take_over(self) -> None:
        """Begins with the producer's new epoch, if there is one and it can be."""
        if self._unresolved and not self.open:
            self._resolve()
        is_new = self._identity != self._producer.identity
        if is_new and (self.may_bump if self.open else True):
            self._begin(self._producer.identity)

    def _begin(self, identity: Identity) -> None:
        """Numbers from 0 under an identity."""
        self._identity = identity
        self.must_bump = False
        self._unresolved = False
        self.last_sequence = NO_SEQUENCE
        self.next_sequence = 0
        for batch in self.open:
            batch.number(identity, self.next_sequence)
            self.next_sequence = sequence_after(self.next_sequence, batch.count)

    def _send(self, batch: Batch) -> Batch:
        batch.is_under_way = True
        batch.attempts += 1
        batch.sent_sequence = batch.base_sequence
        batch.is_renumbered = False
        return batch

    # From the leader.

    def answered(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        """The leader has answered."""
        batch.is_under_way = False
        found = reaction(answer.error_code, self._producer.kind, self._producer.policy)
        if found is Reaction.DONE:
            self._done(batch, answer)
        elif found in (Reaction.RETRY, Reaction.REFRESH):
            if found is Reaction.REFRESH:
                self._producer.refresh(self.topic)
            if answer.error_code in _WRITTEN_PERHAPS:
                batch.may_be_written = True
            self._repeat(batch, now_ms)
        elif found is Reaction.SPLIT:
            self._split(batch, answer)
        elif found is Reaction.DROP:
            self._drop(batch, answer)
        elif found is Reaction.STATE:
            self._reconcile(batch, answer, now_ms)
        elif found is Reaction.BUMP:
            self._bump()
        else:
            self._give_up(batch, found, _error_in(answer))

    def disconnected(self, batch: Batch, now_ms: int) -> None:
        """The connection broke before the answer came."""
        batch.is_under_way = False
        batch.may_be_written = True
        self._producer.refresh(self.topic)
        self._repeat(batch, now_ms)

    def expire(self, now_ms: int) -> None:
        """Fails what has waited too long, except where an answer is to come."""
        before_ms = now_ms - self._producer.delivery_timeout_ms
        for batch in [one for one in self.waiting if one.created_ms <= before_ms]:
            self.waiting.remove(batch)
            self._expired(batch)
        for batch in [one for one in self.open if one.created_ms <= before_ms]:
            if batch.is_under_way:
                continue
            self.open.remove(batch)
            if self._has_sequences:
                # Whether it is in the log decides the sequence of the next.
                self._unresolved = True
            self._expired(batch)

    def fail_unsent(self, error: BaseException) -> None:
        """Fails what was never sent."""
        waiting, self.waiting = self.waiting, deque()
        for batch in waiting:
            batch.fail(error)

    def _expired(self, batch: Batch) -> None:
        error = KafkaTimeoutError(
            f"{batch.count} records for {self.topic}-{self.partition} were not acknowledged within "
            f"delivery_timeout_ms ({self._producer.delivery_timeout_ms})"
        )
        batch.fail(error)
        if self._producer.kind == "transactional":
            self._producer.fail_abortably(error, must_bump=batch.attempts > 0)

    def _resolve(self) -> None:
        """Nothing is open: either all was acknowledged, or a batch has left a gap."""
        if self.next_sequence == sequence_after(self.last_sequence, 1):
            self._unresolved = False
        else:
            self._bump()

    def _done(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        self.open.remove(batch)
        if answer.base_offset >= 0:
            self.last_offset = max(self.last_offset, answer.base_offset + batch.count - 1)
        if self._has_sequences:
            if batch.sent_sequence != batch.base_sequence:
                # The leader took it at the place that it had before: what it expects is not known.
                self._bump()
            else:
                self.last_sequence = sequence_after(batch.base_sequence, batch.count - 1)
        batch.succeed(answer.base_offset)

    def _repeat(self, batch: Batch, now_ms: int) -> None:
        batch.not_before_ms = now_ms + self._producer.backoff_ms(batch.attempts)

    def _split(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        """Sends the two halves, whose sequences are those of the whole."""
        if batch.count == 1:
            self._give_up(batch, Reaction.FAIL, _error_in(answer))
            return
        middle = batch.count // 2
        halves = [Batch(batch.records[:middle]), Batch(batch.records[middle:])]
        if self._has_sequences:
            halves[0].number(batch.identity, batch.base_sequence)
            halves[1].number(batch.identity, sequence_after(batch.base_sequence, middle))
        place = self.open.index(batch)
        self.open[place : place + 1] = halves

    def _drop(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        """Fails the records that the leader names, and sends the others again (KIP-467)."""
        producer = self._producer
        named = {one.batch_index: one for one in answer.record_errors}
        is_sound = bool(named) and all(0 <= index < batch.count for index in named)
        if not is_sound or not producer.drops_invalid_records:
            self._give_up(batch, Reaction.FAIL, _error_in(answer))
            return
        survivors = Batch([r for i, r in enumerate(batch.records) if i not in named])
        in_place = self._is_in_place(batch)
        if producer.kind == "transactional" and not in_place:
            self._give_up(batch, Reaction.FAIL, _error_in(answer))
            return
        self._replace(batch, survivors, in_place=in_place)
        for index in sorted(named):
            one = named[index]
            code = one.error_code or (answer.error_code if len(named) == 1 else 0)
            said = one.batch_index_error_message or answer.error_message
            error = error_of(code or ErrorCode.INVALID_RECORD, said)
            batch.records[index].settle(-1, error)

    def _is_in_place(self, batch: Batch) -> bool:
        """Whether the leader surely expects this batch next, so that others can have its place."""
        return (
            batch is self.open[0]
            and batch.attempts == 1
            and not batch.may_be_written
            and not self._unresolved
            and batch.base_sequence == sequence_after(self.last_sequence, 1)
        )

    def _replace(self, batch: Batch, survivors: Batch, *, in_place: bool) -> None:
        """Puts fewer records in the place of a batch, and moves up those behind it."""
        place = self.open.index(batch)
        self.open[place : place + 1] = [survivors] if survivors.records else []
        if not self._has_sequences:
            return
        if not in_place:
            self._bump()
            return
        sequence = batch.base_sequence
        for one in self.open[place:]:
            one.number(batch.identity, sequence)
            sequence = sequence_after(sequence, one.count)
        self.next_sequence = sequence

    def _give_up(self, batch: Batch, found: Reaction, error: BaseException) -> None:
        """Fails the records of a batch that the leader refused."""
        producer = self._producer
        self._replace(batch, Batch([]), in_place=self._is_in_place(batch))
        batch.fail(error)
        if found is Reaction.FATAL:
            producer.fail_fatally(error)
        elif producer.kind == "transactional":
            producer.fail_abortably(error, must_bump=found is Reaction.ABORT_BUMP)

    def _bump(self) -> None:
        self.must_bump = True
        self._producer.need_bump()

    def _reconcile(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        """The leader expects another sequence, or does not know the producer (KIP-192)."""
        # What is in the log would have been known as a repetition.
        batch.may_be_written = False
        is_next = batch.base_sequence == sequence_after(self.last_sequence, 1)
        if batch.sent_sequence != batch.base_sequence or self.must_bump or not is_next:
            # One before it failed first, and is sent again before it.
            self._repeat(batch, now_ms)
        elif answer.error_code == ErrorCode.UNKNOWN_PRODUCER_ID:
            self._reconcile_unknown(batch, answer, now_ms)
        else:
            self._reconcile_order(batch, answer)

    def _reconcile_unknown(
        self, batch: Batch, answer: PartitionProduceResponse, now_ms: int
    ) -> None:
        producer = self._producer
        log_start_offset = answer.log_start_offset
        if log_start_offset < 0:
            # The partition has moved; an answer of its leader says more.
            self._repeat(batch, now_ms)
            return
        is_lossless = self.last_offset < log_start_offset
        if is_lossless and producer.kind == "transactional":
            # All that was acknowledged is deleted, and the leader begins the producer anew.
            self._begin(self._identity)
            return
        if is_lossless:
            self._bump()
            return
        error = UnknownProducerIdError(
            f"{self.topic}-{self.partition} does not know this producer, though its record at "
            f"offset {self.last_offset} was acknowledged and its log begins at {log_start_offset}: "
            "records may be lost"
        )
        if producer.kind == "transactional":
            self._give_up(batch, Reaction.ABORT_BUMP, error)
        elif producer.recovers_unknown_producer:
            producer.lose_data(self.topic, self.partition, self.last_offset, log_start_offset)
            self._bump()
        else:
            self._give_up(batch, Reaction.FATAL, error)

    def _reconcile_order(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        producer = self._producer
        if producer.kind == "transactional":
            self._give_up(batch, Reaction.ABORT_BUMP, _error_in(answer))
            return
        producer.lose_data(self.topic, self.partition, self.last_offset, answer.log_start_offset)
        self._replace(batch, Batch([]), in_place=False)
        batch.fail(_error_in(answer))


def _error_in(answer: PartitionProduceResponse) -> BaseException:
    return error_of(answer.error_code, answer.error_message)
