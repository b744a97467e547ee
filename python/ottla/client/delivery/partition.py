"""The batches of one partition, in order, and their sequences.

    growing ─▸ waiting ─▸ next_batch ─▸ open ─┬▸ done, or failed
                              ▴               │
                              └── to repeat ──┘

The batch that is growing takes records until it is full, or leaves because it has lingered long
enough and nothing is before it. `open` has the batches that have sequences and no end yet, in
order; some of them are under way, others wait to be sent again. What holds:

- the sequences of `open` follow each other without a gap, from the one behind the last that was
  acknowledged to `next_sequence`;
- a batch is sent again alone, and as the oldest of `open`; a new one only where none is to be sent
  again;
- there is one batch under way until the leader has acknowledged one of this producer: it takes in a
  producer that it does not know with whatever sequence comes first;
- a batch that the leader refused leaves no gap: those behind it move up (*renumbering*), which the
  leader allows, as it never saw them in order;
- where it is not sure what the leader expects, all that is open is numbered from 0 under a new
  epoch, once it is sure that none of it is in the log (*bumping*).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from ottla.client.delivery.batch import NO_SEQUENCE, SEQUENCES, Batch, Identity, sequence_after
from ottla.client.delivery.promises import Place
from ottla.client.delivery.reactions import Reaction, reaction
from ottla.client.delivery.refusals import error_beside, error_in, error_of_record
from ottla.client.errors import (
    KafkaTimeoutError,
    OutOfOrderSequenceError,
    TransactionAbortedError,
    UnknownProducerIdError,
)
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.delivery.reactions import Kind
    from ottla.client.transactions.reactions import Policy
    from ottla.protocol.messages.produce import (
        PartitionProduceResponse,
    )

__all__ = ["PartitionQueue", "Producer"]

# Batches of a producer that a leader knows again.
_REMEMBERED = 5

_WRITTEN_PERHAPS = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}


class Producer(Protocol):
    """What partitions share.

    Attributes:
        kind: of the producer.
        policy: whose rules there are for errors.
        identity: the id and epoch that new sequences belong to.
        drops_invalid_records: whether records that the leader names fail alone.
        recovers_unknown_producer: whether records that may be lost are no reason to stop where the
            leader does not know the producer.
        is_fatal_out_of_order: whether they are one where it expects an earlier sequence.
        delivery_timeout_ms: after which a record fails.
        retries: how often a batch is sent again.
    """

    kind: Kind
    policy: Policy
    identity: Identity
    drops_invalid_records: bool
    recovers_unknown_producer: bool
    is_fatal_out_of_order: bool
    delivery_timeout_ms: int
    retries: int

    def backoff_ms(self, attempts: int) -> int:
        """How long to wait before a batch is sent again."""

    def refresh(self, topic: str) -> None:
        """The leaders of a topic have to be looked up again."""

    def fail_abortably(self, error: BaseException, *, must_bump: bool = False) -> None:
        """The open transaction has to be aborted."""

    def fail_fatally(self, error: BaseException) -> None:
        """The producer has to be closed."""

    def lose_data(
        self, topic: str, partition: int, last_offset: int, log_start_offset: int
    ) -> None:
        """Acknowledged records may be lost."""

    def warn(self, topic: str, partition: int, error: BaseException, count: int) -> None:
        """Some records are not written, which nobody may look at."""

    def ended(self, batch: Batch, error: BaseException | None) -> None:
        """A batch has ended: what it had of the buffer is free."""

    def count(self, metric: str, by: int = 1) -> None:
        """Something has happened that is counted, by Kafka's name for it."""


class PartitionQueue:
    """The batches of a partition.

    Args:
        topic: its name.
        partition: its number.
        producer: what it shares with others.

    Attributes:
        growing: the last batch, which still takes records; ``None`` where there is none.
        waiting: batches without sequences that take none.
        open: batches with sequences and no end yet.
        next_sequence: of the next batch to be numbered.
        last_sequence: the last that was acknowledged.
        last_offset: likewise.
        must_bump: whether it goes on with a new epoch only.
        closed_bytes: of batches that take no more records, all that there were.
    """

    def __init__(self, topic: str, partition: int, producer: Producer) -> None:
        self.topic = topic
        self.partition = partition
        self.growing: Batch | None = None
        self.waiting: deque[Batch] = deque()
        self.open: list[Batch] = []
        self.next_sequence = 0
        self._latest: deque[int] = deque(maxlen=_REMEMBERED - 1)
        self.last_sequence = NO_SEQUENCE
        self.last_offset = -1
        self.must_bump = False
        self.closed_bytes = 0
        self._identity = Identity()
        self._known_producer_id = Identity().producer_id
        self._unresolved = False
        self._abandoned: BaseException | None = None
        self._producer = producer

    def add(self, batch: Batch) -> None:
        """Puts a batch behind the others, which takes no more records."""
        self.waiting.append(batch)

    def close_growing(self) -> None:
        """The batch that is growing takes no more records."""
        if self.growing is not None:
            self.closed_bytes += self.growing.records.size_bytes
            self.waiting.append(self.growing)
            self.growing = None

    @property
    def is_idle(self) -> bool:
        """Whether no answer is to come."""
        return not any(batch.is_under_way for batch in self.open)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be sent or answered."""
        return not self.open and not self.waiting and self.growing is None

    @property
    def batches(self) -> list[Batch]:
        """Returns those whose fate is not known, in order."""
        growing = self.growing
        return [*self.open, *self.waiting, *([] if growing is None else [growing])]

    @property
    def waiting_count(self) -> int:
        """How many batches were not sent yet."""
        return len(self.waiting) + (self.growing is not None)

    def has_next(self, now_ms: int, linger_ms: int) -> bool:
        """Whether there may be a batch to send now."""
        if self.waiting or self.must_bump or self._unresolved:
            return True
        if self.open and not all(batch.is_under_way for batch in self.open):
            return True
        return self.growing is not None and self.growing.created_ms + linger_ms <= now_ms

    @property
    def next_bytes(self) -> int:
        """The size of the batch that is the next to be sent, without compression."""
        batch = _first([one for one in self.open if not one.is_under_way])
        batch = batch or (self.waiting[0] if self.waiting else self.growing)
        size: int = batch.records.size_bytes if batch else 0
        return size

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

    def next_batch(self, now_ms: int, max_in_flight: int, linger_ms: int = 0) -> Batch | None:
        """Returns the batch to send now, which is under way from then on; `None` for none.

        Args:
            now_ms: the time.
            max_in_flight: how many may be under way.
            linger_ms: how long a batch waits for more records.
        """
        under_way = sum(batch.is_under_way for batch in self.open)
        if under_way >= max_in_flight:
            return None
        due_ms = now_ms - linger_ms
        if not self._has_sequences:
            repeated = next((batch for batch in self.open if not batch.is_under_way), None)
            return self._repeated(repeated, now_ms) if repeated else self._fresh(now_ms, due_ms)
        self._take_over()
        if self.must_bump:
            self._give_up_transaction()
            doubtful = _first([batch for batch in self.open if batch.may_be_written])
            return self._repeated(doubtful, now_ms) if doubtful and not under_way else None
        if self.open and not all(batch.is_under_way for batch in self.open):
            first = _first(self.open)
            return self._repeated(first, now_ms) if first and not under_way else None
        if self._unresolved or self._identity != self._producer.identity:
            return None
        if self.open and not self._may_overtake(self.open[0]):
            return None
        return self._fresh(now_ms, due_ms)

    def _may_overtake(self, oldest: Batch) -> bool:
        """Whether the leader takes a batch behind it only if it has it, and then knows it again."""
        is_known = self._known_producer_id == self._identity.producer_id
        return is_known and oldest.base_sequence in self._latest

    def _repeated(self, batch: Batch, now_ms: int) -> Batch | None:
        return None if batch.not_before_ms > now_ms else self._send(batch)

    def _fresh(self, now_ms: int, due_ms: int) -> Batch | None:
        if not self.waiting:
            if self.growing is None or self.growing.created_ms > due_ms:
                return None
            self.close_growing()
        batch = self.waiting.popleft()
        batch.first_sent_ms = now_ms
        if self._has_sequences:
            batch.number(self._identity, self.next_sequence)
            self._latest.append(self.next_sequence)
            self.next_sequence = sequence_after(self.next_sequence, batch.count)
        self.open.append(batch)
        return self._send(batch)

    def next_deadlines_ms(self, linger_ms: int = 0) -> list[int]:
        """Returns when something is to be done: a batch sent, or sent again, or failed."""
        times: list[int] = []
        timeout_ms = self._producer.delivery_timeout_ms
        for batch in self.open:
            if not batch.is_under_way:
                times += [batch.not_before_ms, batch.created_ms + timeout_ms]
        if self.waiting:
            times.append(self.waiting[0].created_ms + timeout_ms)
        elif self.growing is not None:
            created_ms = self.growing.created_ms
            times += [created_ms + linger_ms, created_ms + timeout_ms]
        return times

    def _take_over(self) -> None:
        """Begins with the producer's new epoch, if there is one and it can be."""
        is_new = self._identity != self._producer.identity
        if is_new and (self.may_bump if self.open else True):
            self._begin(self._producer.identity)
        elif self._unresolved and not self.open:
            self._resolve()

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
        batch.is_passed_over = batch.is_renumbered = False
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
                self._lose_sight_of(batch)
            self._repeat(batch, now_ms, error_in(answer))
        elif found is Reaction.SPLIT:
            self._split(batch, answer)
        elif found is Reaction.DROP:
            self._drop(batch, answer, now_ms)
        elif found is Reaction.STATE:
            self._reconcile(batch, answer, now_ms)
        elif found is Reaction.BUMP:
            batch.not_before_ms = now_ms + self._producer.backoff_ms(batch.attempts)
            self._bump()
        else:
            self._give_up(batch, found, error_in(answer))

    def disconnected(self, batch: Batch, error: BaseException, now_ms: int) -> None:
        """No answer came.

        Args:
            batch: what was sent.
            error: why; `is_sent` of a `NetworkError` tells whether the leader may have it.
            now_ms: the time.
        """
        batch.is_under_way = False
        if getattr(error, "is_sent", True):
            self._lose_sight_of(batch)
        self._producer.refresh(self.topic)
        self._repeat(batch, now_ms, error)

    def _lose_sight_of(self, batch: Batch) -> None:
        """Nobody knows whether the leader has it, or is going to have it."""
        if batch.sent_sequence == batch.base_sequence:
            batch.may_be_written = True
            return
        # It was sent to a place behind what the leader had refused, and has moved up since. It is
        # not written there, but would be if it came late, once others have filled the places
        # before: under a new epoch the leader takes it no more.
        self._doubt()

    def refused(self, batch: Batch, error: BaseException) -> None:
        """It cannot be sent: the leader lets nobody in, or does not speak the protocol."""
        batch.is_under_way = False
        is_fatal = self._has_sequences and getattr(error, "fatal", True)
        self._give_up(batch, Reaction.FATAL if is_fatal else Reaction.FAIL, error)

    def expire(self, now_ms: int) -> None:
        """Fails what has waited too long, except where an answer is to come."""
        before_ms = now_ms - self._producer.delivery_timeout_ms
        if self.growing is not None and self.growing.created_ms <= before_ms:
            self.close_growing()
        while self.waiting and self.waiting[0].created_ms <= before_ms:
            self._expired(self.waiting.popleft())
        for batch in [one for one in self.open if one.created_ms <= before_ms]:
            if not batch.is_under_way:
                self._leave(batch)
                self._expired(batch)

    def _leave(self, batch: Batch) -> None:
        """A batch is sent no more: whether it is in the log decides the sequence of the next."""
        self.open.remove(batch)
        self._unresolved |= self._has_sequences

    def fail_unsent(self, error: BaseException) -> None:
        """Fails what was never sent."""
        self.close_growing()
        waiting, self.waiting = self.waiting, deque()
        for batch in waiting:
            self._fail(batch, error)

    def abandon(self, error: BaseException) -> None:
        """Fails everything, except what an answer is to come for: that, if it is to be repeated."""
        self._abandoned = error
        self.fail_unsent(error)
        for batch in [one for one in self.open if not one.is_under_way]:
            self.open.remove(batch)
            self._fail(batch, error)

    def _fail(self, batch: Batch, error: BaseException) -> None:
        self._producer.ended(batch, error)
        batch.fail(error)

    def _warn(self, error: BaseException, count: int) -> None:
        self._producer.warn(self.topic, self.partition, error, count)

    def _expired(self, batch: Batch) -> None:
        told = f", the last: {batch.last_error}" if batch.last_error else ""
        error = KafkaTimeoutError(
            f"{batch.count} records for {self.topic}-{self.partition} were not acknowledged within "
            f"delivery_timeout_ms ({self._producer.delivery_timeout_ms}); "
            f"attempts: {batch.attempts}{told}"
        )
        self._warn(error, batch.count)
        self._fail(batch, error)
        if self._producer.kind == "transactional":
            self._producer.fail_abortably(error, must_bump=batch.attempts > 0)

    def _resolve(self) -> None:
        """Nothing is open: either all was acknowledged, or a batch has left a gap."""
        if self.next_sequence == sequence_after(self.last_sequence, 1):
            self._unresolved = False
        else:
            self._doubt()

    def _done(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        self._finish_before(batch)
        self.open.remove(batch)
        if answer.base_offset >= 0:
            self.last_offset = max(self.last_offset, answer.base_offset + batch.count - 1)
        if self._has_sequences:
            self._known_producer_id = batch.identity.producer_id
            if batch.sent_sequence != batch.base_sequence:
                # The leader took it at the place that it had before: what it expects is not known.
                self._doubt()
            elif not self._is_acknowledged(batch):
                self.last_sequence = sequence_after(batch.base_sequence, batch.count - 1)
        self._producer.ended(batch, None)
        batch.succeed(
            Place(self.topic, self.partition, answer.base_offset, answer.log_append_time_ms)
        )

    def _finish_before(self, batch: Batch) -> None:
        """Those that were passed over are in the log: a leader takes no sequence before others."""
        before = self.open[: self.open.index(batch)]
        for one in [one for one in before if one.is_passed_over]:
            self.open.remove(one)
            self._producer.ended(one, None)
            one.succeed(Place(self.topic, self.partition, -1, -1))

    def _repeat(self, batch: Batch, now_ms: int, error: BaseException) -> None:
        if self._abandoned is not None:
            self.open.remove(batch)
            self._fail(batch, self._abandoned)
            return
        if batch.attempts > self._producer.retries:
            self._leave(batch)
            self._warn(error, batch.count)
            self._fail(batch, error)
            if self._producer.kind == "transactional":
                self._producer.fail_abortably(error, must_bump=True)
            return
        self._producer.count("record-retry", batch.count)
        batch.last_error = error
        batch.not_before_ms = now_ms + self._producer.backoff_ms(batch.attempts)

    def _is_acknowledged(self, batch: Batch) -> bool:
        """Whether a later batch was acknowledged before this one: their answers came crosswise."""
        behind = sequence_after(self.last_sequence, 1)
        return sequence_after(behind, -batch.base_sequence) in range(1, SEQUENCES // 2)

    def _split(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        """Sends the two halves, whose sequences are those of the whole."""
        if batch.count == 1:
            self._give_up(batch, Reaction.FAIL, error_in(answer))
            return
        self._producer.count("batch-split")
        middle = batch.count // 2
        halves = batch.split(middle)
        for half in halves:
            half.may_be_written = batch.may_be_written
        if self._has_sequences:
            halves[0].number(batch.identity, batch.base_sequence)
            halves[1].number(batch.identity, sequence_after(batch.base_sequence, middle))
        place = self.open.index(batch)
        self.open[place : place + 1] = halves

    def _drop(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        """Fails the records that the leader names, and sends the others again (KIP-467)."""
        producer = self._producer
        named = {one.batch_index: one for one in answer.record_errors}
        if not named or not all(0 <= index < batch.count for index in named):
            self._give_up(batch, Reaction.FAIL, error_in(answer))
            return
        errors = {index: error_of_record(answer, named, index) for index in named}
        in_place = self._is_in_place(batch)
        is_transactional = producer.kind == "transactional"
        if is_transactional and producer.drops_invalid_records and self._may_come_first(batch):
            # A transaction has no other epoch to go on with: those before it are sent again first.
            self._repeat(batch, now_ms, error_in(answer))
            return
        is_dropped = producer.drops_invalid_records and (in_place or not is_transactional)
        producer.count("record-drop" if is_dropped else "record-error", len(errors))
        root = errors[min(errors)]
        self._warn(root, len(errors))
        survivors, culprits = batch.without(errors)
        if is_dropped:
            if survivors.count:
                producer.count("batch-culprit-retry")
                self._replace(batch, survivors, in_place=in_place)
            else:
                self._replace(batch, None, in_place=in_place)
                producer.ended(survivors, None)
        else:
            self._replace(batch, None, in_place=in_place)
        for index, run in culprits:
            run.fail(errors[index])
        if is_dropped:
            return
        self._fail(survivors, error_beside(root, is_transactional=is_transactional))
        if is_transactional:
            producer.fail_abortably(root, must_bump=self.must_bump)

    def _may_come_first(self, batch: Batch) -> bool:
        """Whether it has a sure place as soon as those before it have an end."""
        is_sure = not batch.may_be_written and not self._unresolved and not self.must_bump
        return is_sure and batch is not self.open[0]

    def _is_in_place(self, batch: Batch) -> bool:
        """Whether the leader surely expects this batch next, so that others can have its place."""
        return (
            batch is self.open[0]
            and not batch.may_be_written
            and not self._unresolved
            and batch.base_sequence == sequence_after(self.last_sequence, 1)
        )

    def _replace(self, batch: Batch, survivors: Batch | None, *, in_place: bool) -> None:
        """Puts fewer records in the place of a batch, and moves up those behind it."""
        place = self.open.index(batch)
        self.open[place : place + 1] = [survivors] if survivors else []
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
        # What went wrong is not known, nor whether it did so before the leader wrote: a batch that
        # got the same sequences could be taken for a repetition of this one.
        is_refused = getattr(error, "error_code", None) != ErrorCode.UNKNOWN_SERVER_ERROR
        self._replace(batch, None, in_place=is_refused and self._is_in_place(batch))
        self._warn(error, batch.count)
        self._fail(batch, error)
        if found is Reaction.FATAL:
            producer.fail_fatally(error)
        elif producer.kind == "transactional":
            must_bump = found is Reaction.ABORT_BUMP or self.must_bump
            producer.fail_abortably(error, must_bump=must_bump)

    def _give_up_transaction(self) -> None:
        """Fails what could only be sent in an epoch of which the transaction is over."""
        if self._producer.kind != "transactional":
            return
        error = TransactionAbortedError("its transaction was aborted")
        for batch in [one for one in self.open if not one.is_under_way]:
            if not batch.may_be_written:
                self.open.remove(batch)
                self._fail(batch, error)

    def _bump(self) -> None:
        self.must_bump = True

    def _doubt(self) -> None:
        """It is not known what the leader expects: only a new epoch is sure."""
        self._bump()
        if self._producer.kind == "transactional":
            error = OutOfOrderSequenceError(
                f"which sequence {self.topic}-{self.partition} expects is not known, as a batch "
                "expired of which it is not known whether it was written"
            )
            self._producer.fail_abortably(error, must_bump=True)

    def _reconcile(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        """The leader expects another sequence, or does not know the producer (KIP-192)."""
        if answer.error_code != ErrorCode.UNKNOWN_PRODUCER_ID:
            if self._is_behind(batch):
                self._done(batch, answer)
                return
            if self._pass_over(batch):
                return
        # What is in the log would have been known as a repetition.
        for one in self.open:
            if one is batch or one.is_passed_over:
                one.may_be_written = one.is_passed_over = False
        is_next = batch.base_sequence == sequence_after(self.last_sequence, 1)
        is_as_sent = batch.sent_sequence == batch.base_sequence
        if self._unresolved and is_as_sent and not is_next and batch is self.open[0]:
            # The one before it expired, and is not in the log, or this one would be.
            self._doubt()
        elif not is_as_sent or self.must_bump or not is_next:
            # One before it failed first, and is sent again before it.
            self._repeat(batch, now_ms, error_in(answer))
        elif answer.error_code == ErrorCode.UNKNOWN_PRODUCER_ID:
            self._reconcile_unknown(batch, answer, now_ms)
        else:
            self._reconcile_order(batch, answer)

    def _is_behind(self, batch: Batch) -> bool:
        """Whether a leader that acknowledged a later batch has had this one, too."""
        is_as_sent = batch.sent_sequence == batch.base_sequence
        is_alike = batch.identity == self._identity and not batch.is_renumbered
        return is_as_sent and is_alike and self._is_acknowledged(batch)

    def _pass_over(self, batch: Batch) -> bool:
        """Leaves it to those behind a batch to tell whether it is in the log, if they can.

        A leader that has started again, or was only elected, may know no more of a producer than
        its last batch: it then takes a repetition of an earlier one for a gap.
        """
        behind = self.open[self.open.index(batch) + 1 :]
        batch.is_passed_over = (
            batch.may_be_written
            and batch.sent_sequence == batch.base_sequence
            and any(
                one.may_be_written and not one.is_passed_over and one.identity == batch.identity
                for one in behind
            )
        )
        return batch.is_passed_over

    def _reconcile_unknown(
        self, batch: Batch, answer: PartitionProduceResponse, now_ms: int
    ) -> None:
        producer = self._producer
        self._known_producer_id = Identity().producer_id
        log_start_offset = answer.log_start_offset
        if log_start_offset < 0:
            # The partition has moved; an answer of its leader says more.
            self._repeat(batch, now_ms, error_in(answer))
            return
        batch.not_before_ms = now_ms + producer.backoff_ms(batch.attempts)
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
        producer.lose_data(self.topic, self.partition, self.last_offset, log_start_offset)
        if producer.kind == "transactional":
            self._give_up(batch, Reaction.ABORT_BUMP, error)
        elif producer.recovers_unknown_producer:
            self._bump()
        else:
            self._give_up(batch, Reaction.FATAL, error)

    def _reconcile_order(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        producer = self._producer
        error = OutOfOrderSequenceError(
            f"{self.topic}-{self.partition} misses records of this producer before these, though "
            f"its record at offset {self.last_offset} was acknowledged: records may be lost"
        )
        producer.lose_data(self.topic, self.partition, self.last_offset, answer.log_start_offset)
        if producer.kind == "transactional":
            self._give_up(batch, Reaction.ABORT_BUMP, error)
        elif producer.is_fatal_out_of_order:
            self._give_up(batch, Reaction.FATAL, error)
        else:
            self._replace(batch, None, in_place=False)
            self._warn(error, batch.count)
            self._fail(batch, error)


def _first(batches: Sequence[Batch]) -> Batch | None:
    """Returns the first of those that were not passed over, or of all if there is none."""
    return next((one for one in batches if not one.is_passed_over), batches[0] if batches else None)
