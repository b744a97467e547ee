"""Batches on their way to a leader: what it refuses is dropped, the rest arrives in order, once.

The leader is the engine's, which decides as Kafka's does; the network loses requests and answers.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import ottla
import pytest
from ottla import Leader, NewRecord, TopicConfig
from ottla.client.delivery.batch import Batch, Identity, sequence_after
from ottla.client.delivery.partition import PartitionQueue
from ottla.client.errors import (
    InvalidRecordError,
    KafkaTimeoutError,
    NetworkError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TransactionAbortedError,
    UnknownProducerIdError,
)
from ottla.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from support.listed_records import ListedRecords

if TYPE_CHECKING:
    from ottla.client.delivery.promises import Place

NOW_MS = 1_700_000_000_000
TIMEOUT_MS = 120_000


class Told:
    """Records whose fate is written down."""

    def __init__(self, sender: Sender, values: tuple[bytes, ...]) -> None:
        self.sender = sender
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> Told:
        return Told(self.sender, self.values[start:stop])

    def succeed(self, place: Place) -> None:
        for index, value in enumerate(self.values):
            self.sender.require_unknown(value)
            known = place.base_offset >= 0
            self.sender.delivered[value] = place.base_offset + index if known else -1

    def fail(self, error: BaseException) -> None:
        for value in self.values:
            self.sender.require_unknown(value)
            self.sender.failed[value] = error


class Sender:
    """A producer with one partition, and its leader.

    Attributes:
        queue: what is under test.
        log: the values that the leader has appended, in order.
        delivered: those that were acknowledged.
        failed: the others, with their errors.
    """

    def __init__(self, kind: Any = "idempotent", *, unknown_producer: str = "auto") -> None:
        self.kind = kind
        self.policy: Any = "kip691"
        self.identity = Identity() if kind == "none" else Identity(7, 0)
        self.drops_invalid_records = True
        self.recovers_unknown_producer = False
        self.is_fatal_out_of_order = False
        self.delivery_timeout_ms = TIMEOUT_MS
        self.retries = 2**31 - 1
        self.abortable: list[BaseException] = []
        self.must_bump = False
        self.fatal: list[BaseException] = []
        self.lost: list[tuple[str, int, int, int]] = []
        self.warned: list[tuple[type[BaseException], int]] = []
        self.refreshed = 0
        self.queue = PartitionQueue("prices", 0, self)
        self.leader = Leader(
            TopicConfig(cleanup_policy="compact"), unknown_producer=unknown_producer
        )
        self.log: list[bytes] = []
        self.delivered: dict[bytes, int] = {}
        self.failed: dict[bytes, BaseException] = {}
        self.now_ms = NOW_MS
        self.ended_bytes = 0
        self.failed_batches = 0
        self.added_bytes = 0
        self.counts: dict[str, int] = {}

    def backoff_ms(self, attempts: int) -> int:
        return 100 * attempts

    def refresh(self, topic: str) -> None:
        assert topic == "prices"
        self.refreshed += 1

    def fail_abortably(self, error: BaseException, *, must_bump: bool = False) -> None:
        self.abortable.append(error)
        self.must_bump |= must_bump

    def fail_fatally(self, error: BaseException) -> None:
        self.fatal.append(error)

    def lose_data(self, *what: Any) -> None:
        self.lost.append(what)

    def warn(self, topic: str, partition: int, error: BaseException, count: int) -> None:
        assert (topic, partition) == ("prices", 0)
        self.warned.append((type(error), count))

    def ended(self, batch: Batch, error: BaseException | None) -> None:
        self.failed_batches += error is not None
        self.ended_bytes += batch.reserved_bytes

    def count(self, metric: str, by: int = 1) -> None:
        self.counts[metric] = self.counts.get(metric, 0) + by

    def require_unknown(self, value: bytes) -> None:
        assert value not in self.delivered
        assert value not in self.failed

    def add(self, *values: bytes) -> None:
        """Gives records to the producer; those that begin with ``!`` have no key."""
        rows = []
        for value in values:
            key = None if value.startswith(b"!") else b"k"
            rows.append(NewRecord(key=key, value=value, timestamp=self.now_ms))
        # Two callers of whom each waits for some of the records.
        middle = len(values) // 2
        parts = [part for part in (values[:middle], values[middle:]) if part]
        runs = [Told(self, part) for part in parts]
        self.added_bytes += 16_384
        self.queue.add(Batch(ListedRecords(rows), [*runs], self.now_ms, 16_384))

    def introduce(self) -> None:
        """Has the leader know the producer, by a record before all others."""
        self.add(b"introduced")
        self.run()
        assert self.log == [b"introduced"]

    def next(self, max_in_flight: int = 5) -> Batch | None:
        """The next batch; a new epoch as soon as one is needed and can be had."""
        batch = self.queue.next_batch(self.now_ms, max_in_flight)
        if batch is None and self.queue.may_bump and self.kind == "idempotent":
            self.identity = Identity(7, self.identity.epoch + 1)
            batch = self.queue.next_batch(self.now_ms, max_in_flight)
        return batch

    def bytes_of(self, batch: Batch) -> bytes:
        return ottla.build_batch(
            batch.records.rows,
            producer_id=batch.identity.producer_id,
            producer_epoch=batch.identity.epoch,
            base_sequence=batch.sent_sequence,
        )

    def append(self, data: bytes) -> PartitionProduceResponse:
        """The leader's answer to a batch."""
        verdict = self.leader.append(data, now_ms=self.now_ms, api_version=9)
        if verdict.accepted and not verdict.is_duplicate:
            self.log += [r.value or b"" for b in ottla.read_batches(data) for r in b.records()]
        return PartitionProduceResponse(
            index=0,
            error_code=verdict.error,
            base_offset=verdict.base_offset,
            log_append_time_ms=-1,
            log_start_offset=verdict.log_start_offset,
            record_errors=[
                BatchIndexAndErrorMessage(
                    batch_index=one.batch_index, batch_index_error_message=one.message
                )
                for one in verdict.record_errors
            ],
            error_message=verdict.error_message,
        )

    def disconnect(self, batch: Batch) -> None:
        """No answer comes."""
        self.queue.disconnected(batch, NetworkError("the connection broke"), self.now_ms)

    def answer(self, batch: Batch, code: int | None = None, **fields: Any) -> None:
        """Has the leader answer, or answers with a code in its place."""
        if code is None:
            found = self.append(self.bytes_of(batch))
        else:
            fields = {"base_offset": -1, "log_append_time_ms": -1, **fields}
            found = PartitionProduceResponse(index=0, error_code=code, **fields)
        self.queue.answered(batch, found, self.now_ms)

    def run(self) -> None:
        """Sends and answers until nothing is left."""
        for _ in range(1_000):
            batch = self.next()
            if batch is not None:
                self.answer(batch)
            elif self.queue.is_empty:
                assert self.ended_bytes == self.added_bytes
                return
            else:
                self.now_ms = max(self.now_ms, min(self.queue.next_deadlines_ms()))
                self.queue.expire(self.now_ms)
        raise AssertionError("no end")


KINDS = ["none", "idempotent"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "values",
    [
        [b"!0", b"1", b"2"],
        [b"0", b"!1", b"2"],
        [b"0", b"1", b"!2"],
        [b"!0", b"1", b"!2", b"3"],
        [b"!0", b"!1"],
    ],
)
def test_records_that_the_leader_names_fail_and_the_others_are_sent_again(
    kind: str, values: list[bytes]
) -> None:
    sender = Sender(kind)
    sender.add(*values)
    sender.add(b"behind")
    sender.run()
    sound = [value for value in values if not value.startswith(b"!")]
    assert sender.log == [*sound, b"behind"]
    assert sender.delivered == {value: i for i, value in enumerate(sender.log)}
    assert set(sender.failed) == set(values) - set(sound)
    assert all(isinstance(one, InvalidRecordError) for one in sender.failed.values())


def test_batches_behind_a_refused_one_keep_their_order_and_the_epoch() -> None:
    sender = Sender()
    sender.introduce()
    sender.add(b"0", b"!1", b"2")
    sender.add(b"3", b"4")
    sender.add(b"5")
    batches = [sender.next() for _ in range(3)]
    assert [b.sent_sequence for b in batches if b] == [1, 4, 6]
    for batch in batches:
        assert batch is not None
        sender.answer(batch)
    sender.run()
    assert sender.log == [b"introduced", b"0", b"2", b"3", b"4", b"5"]
    assert sender.identity == Identity(7, 0)
    assert sender.queue.last_sequence == 5


def test_a_refused_batch_whose_place_is_not_sure_is_sent_again_in_a_new_epoch() -> None:
    sender = Sender()
    sender.add(b"0", b"!1", b"2")
    first = sender.next()
    assert first is not None
    sender.disconnect(first)
    sender.run()
    assert sender.log == [b"0", b"2"]
    assert sender.identity == Identity(7, 1)


def test_a_batch_that_moved_up_under_way_and_has_no_answer_is_sent_in_a_new_epoch() -> None:
    # What was sent to the place behind would be appended there once that place is the next.
    sender = Sender()
    sender.introduce()
    sender.add(b"!0", b"1")
    sender.add(b"2")
    sender.add(b"3")
    refused, behind = sender.next(2), sender.next(2)
    assert refused is not None
    assert behind is not None
    late = sender.bytes_of(behind)
    sender.answer(refused)
    sender.disconnect(behind)
    sender.run()
    sender.append(late)
    assert sender.identity == Identity(7, 1)
    assert sender.log == [b"introduced", b"1", b"2", b"3"]
    assert sender.delivered == {b"introduced": 0, b"1": 1, b"2": 2, b"3": 3}


def test_an_answer_that_names_a_record_that_was_not_sent_fails_all_of_them() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    sender.add(b"2")
    batch = sender.next()
    assert batch is not None
    named = [BatchIndexAndErrorMessage(batch_index=2)]
    sender.answer(batch, 87, record_errors=named, error_message="what")
    sender.run()
    assert set(sender.failed) == {b"0", b"1"}
    assert {str(one) for one in sender.failed.values()} == {"what"}
    assert sender.log == [b"2"]


def test_a_record_gets_its_own_message_and_where_it_has_one_its_own_code() -> None:
    sender = Sender()
    sender.add(b"0", b"1", b"2")
    batch = sender.next()
    assert batch is not None
    named = [
        BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="late", error_code=32),
        BatchIndexAndErrorMessage(batch_index=0),
    ]
    sender.answer(batch, 32, record_errors=named, error_message="one or more records")
    assert [(type(e).__name__, str(e)) for e in sender.failed.values()] == [
        ("InvalidRecordError", "one or more records"),
        ("InvalidTimestampError", "late"),
    ]


def test_a_retriable_error_sends_the_same_again_whatever_it_names() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 2, record_errors=[BatchIndexAndErrorMessage(batch_index=0)])
    assert sender.next() is None
    sender.run()
    assert sender.log == [b"0", b"1"]
    assert not sender.failed


def test_without_dropping_a_batch_fails_whole() -> None:
    sender = Sender()
    sender.drops_invalid_records = False
    sender.add(b"0", b"!1")
    sender.add(b"2")
    sender.run()
    assert set(sender.failed) == {b"0", b"!1"}
    assert sender.log == [b"2"]


def test_a_refused_record_of_a_transaction_has_its_own_error_and_those_beside_it_are_aborted() -> (
    None
):
    sender = Sender("transactional")
    sender.drops_invalid_records = False
    sender.add(b"0", b"!1", b"2")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch)
    assert {value: type(error) for value, error in sender.failed.items()} == {
        b"0": TransactionAbortedError,
        b"!1": InvalidRecordError,
        b"2": TransactionAbortedError,
    }
    assert sender.abortable == [sender.failed[b"!1"]]


def test_records_that_are_dropped_from_a_transaction_leave_it_open() -> None:
    sender = Sender("transactional")
    sender.add(b"0", b"!1", b"2")
    sender.run()
    assert sender.log == [b"0", b"2"]
    assert not sender.abortable
    assert sender.counts == {"record-drop": 1, "batch-culprit-retry": 1}


def test_a_transaction_whose_batch_is_refused_at_a_doubtful_place_has_nothing_left_to_send() -> (
    None
):
    sender = Sender("transactional")
    sender.introduce()
    sender.add(b"0", b"!1")
    sender.add(b"2")
    first, second = sender.next(), sender.next()
    assert first is not None
    assert second is not None
    sender.disconnect(first)
    sender.disconnect(second)
    sender.run()
    assert sender.log == [b"introduced"]
    assert set(sender.failed) == {b"0", b"!1", b"2"}
    assert sender.must_bump


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_is_too_large_is_split_until_a_record_alone_is(kind: str) -> None:
    sender = Sender(kind)
    sender.add(b"0", b"1", b"2", b"3", b"4")
    for _ in range(100):
        batch = sender.next()
        if batch is None:
            break
        if batch.count > 2 or b"3" in [row.value for row in batch.records.rows]:
            sender.answer(batch, 10)
        else:
            sender.answer(batch)
    assert sender.log == [b"0", b"1", b"2", b"4"]
    assert [type(one) for one in sender.failed.values()] == [RecordTooLargeError]


def test_repetitions_leave_alone_and_the_oldest_first() -> None:
    sender = Sender()
    sender.introduce()
    for value in (b"0", b"1", b"2"):
        sender.add(value)
    first, second = sender.next(), sender.next()
    assert first is not None
    assert second is not None
    sender.answer(first, 6)
    sender.answer(second)
    assert sender.refreshed == 1
    assert sender.next() is None
    sender.now_ms += 1_000
    assert sender.next() is first
    assert sender.next() is None
    sender.answer(first)
    assert sender.next() is second
    sender.answer(second)
    sender.run()
    assert sender.log == [b"introduced", b"0", b"1", b"2"]
    assert sender.identity == Identity(7, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_sent_again_as_often_as_is_allowed_and_then_fails_by_what_it_failed_with(
    kind: str,
) -> None:
    sender = Sender(kind)
    sender.retries = 1
    sender.add(b"0")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 19)
    sender.now_ms += 1_000
    assert sender.next() is batch
    sender.answer(batch, 19)
    assert [type(one).__name__ for one in sender.failed.values()] == ["NotEnoughReplicasError"]
    sender.add(b"1")
    sender.run()
    assert sender.log == [b"1"]


def test_an_answer_that_was_lost_is_given_again() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    batch = sender.next()
    assert batch is not None
    sender.append(sender.bytes_of(batch))
    sender.disconnect(batch)
    sender.run()
    assert sender.log == [b"0", b"1"]
    assert sender.delivered == {b"0": 0, b"1": 1}


def test_a_producer_that_the_leader_forgot_with_its_records_goes_on() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    sender.run()
    sender.leader = Leader(next_offset=2, log_start_offset=2)
    sender.add(b"2")
    sender.run()
    assert sender.log == [b"0", b"1", b"2"]
    assert sender.identity == Identity(7, 1)
    assert not sender.lost


def test_a_producer_that_the_leader_forgot_though_its_records_should_be_there_ends() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    sender.run()
    sender.leader = Leader(next_offset=1, log_start_offset=0)
    sender.add(b"2")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch)
    (error,) = sender.fatal
    assert isinstance(error, UnknownProducerIdError)
    assert "offset 1 was acknowledged and its log begins at 0" in str(error)
    assert sender.failed[b"2"] is error
    assert sender.lost == [("prices", 0, 1, 0)]
    assert sender.warned == [(UnknownProducerIdError, 1)]


def test_lost_records_are_told_where_the_producer_is_to_go_on_all_the_same() -> None:
    sender = Sender()
    sender.recovers_unknown_producer = True
    sender.add(b"0", b"1")
    sender.run()
    sender.leader = Leader(next_offset=1, log_start_offset=0)
    sender.add(b"2")
    sender.run()
    assert sender.lost == [("prices", 0, 1, 0)]
    assert sender.log == [b"0", b"1", b"2"]


def test_a_partition_that_moved_is_asked_again() -> None:
    sender = Sender()
    sender.add(b"0")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 59, log_start_offset=-1)
    sender.run()
    assert sender.log == [b"0"]
    assert sender.identity == Identity(7, 0)


def test_a_gap_before_the_next_batch_is_told_as_loss_and_the_rest_goes_on() -> None:
    sender = Sender()
    sender.add(b"0")
    sender.run()
    sender.add(b"1")
    sender.add(b"2")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 45, log_start_offset=0)
    sender.run()
    assert [type(one) for one in sender.failed.values()] == [OutOfOrderSequenceError]
    assert sender.lost == [("prices", 0, 0, 0)]
    assert sender.warned == [(OutOfOrderSequenceError, 1)]
    assert sender.log == [b"0", b"2"]


@pytest.mark.parametrize("kind", ["idempotent", "transactional"])
def test_a_gap_ends_a_producer_that_is_to_end_there_and_a_transaction_in_any_case(
    kind: str,
) -> None:
    sender = Sender(kind)
    sender.is_fatal_out_of_order = True
    sender.add(b"0")
    sender.run()
    sender.add(b"1")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 45, log_start_offset=0)
    (error,) = sender.fatal if kind == "idempotent" else sender.abortable
    assert isinstance(error, OutOfOrderSequenceError)
    assert "its record at offset 0 was acknowledged: records may be lost" in str(error)
    assert sender.lost == [("prices", 0, 0, 0)]


@pytest.mark.parametrize("is_written", [False, True])
def test_what_expired_behind_a_lost_answer_is_told_and_leaves_no_doubt_in_the_log(
    is_written: bool,
) -> None:
    sender = Sender()
    sender.add(b"0")
    batch = sender.next()
    assert batch is not None
    if is_written:
        sender.append(sender.bytes_of(batch))
    sender.disconnect(batch)
    sender.add(b"1")
    sender.now_ms += TIMEOUT_MS
    sender.queue.expire(sender.now_ms)
    assert {type(one) for one in sender.failed.values()} == {KafkaTimeoutError}
    sender.add(b"2")
    sender.run()
    assert sender.log == ([b"0", b"2"] if is_written else [b"2"])


@pytest.mark.parametrize(
    ("code", "is_fatal"), [(53, True), (90, True), (29, True), (18, False), (87, False)]
)
def test_what_fails_a_record_of_a_transaction_fails_the_transaction(
    code: int, is_fatal: bool
) -> None:
    sender = Sender("transactional")
    sender.drops_invalid_records = False
    sender.add(b"0")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, code)
    (error,) = sender.failed.values()
    assert sender.fatal == ([error] if is_fatal else [])
    assert sender.abortable == ([] if is_fatal else [error])


def test_sequences_begin_again_behind_the_last() -> None:
    sender = Sender()
    sender.introduce()
    sender.queue.next_sequence = 2**31 - 2
    sender.queue.last_sequence = 2**31 - 3
    sender.add(b"0", b"1", b"2")
    sender.add(b"3")
    batches = [sender.next(), sender.next()]
    assert [b.base_sequence for b in batches if b] == [2**31 - 2, 1]
    assert sequence_after(0, -1) == 2**31 - 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(20))
def test_what_arrives_is_what_was_sent_without_what_was_refused(kind: str, block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        _deliver(kind, seed)


def _deliver(kind: str, seed: int) -> None:
    """Sends records through a network that loses, a leader that moves, with batches in flight."""
    random = Random(seed)
    sender = Sender(kind, unknown_producer=random.choice(["auto", "accept"]))
    max_in_flight = random.choice([1, 2, 5])
    under_way: list[Batch] = []
    sent: list[bytes] = []
    losses = random.choice([0.0, 0.1, 0.4])
    for _ in range(400):
        if random.random() < 0.3 and len(sent) < 60:
            values = [
                (b"!" if random.random() < 0.2 else b"") + str(len(sent) + i).encode()
                for i in range(random.randrange(1, 5))
            ]
            sent += values
            sender.add(*values)
        batch = sender.next(max_in_flight)
        if batch is not None:
            under_way.append(batch)
        if under_way and random.random() < 0.5:
            # A connection has one order; when it breaks, all that is under way is lost.
            fate = random.random()
            if fate < losses / 2:
                for one in under_way[: random.randrange(len(under_way) + 1)]:
                    sender.append(sender.bytes_of(one))
                for one in under_way:
                    sender.disconnect(one)
                under_way.clear()
            elif fate < losses:
                sender.answer(under_way.pop(0), random.choice([6, 7, 19, 56]))
            else:
                sender.answer(under_way.pop(0))
        sender.now_ms += random.choice([0, 50, 500])
    for one in under_way:
        sender.answer(one)
    sender.run()
    sound = [value for value in sent if not value.startswith(b"!")]
    assert not sender.fatal
    assert not sender.lost
    assert set(sender.failed) == {value for value in sent if value.startswith(b"!")}
    assert set(sender.delivered) == set(sound)
    if kind == "none":
        assert set(sender.log) == set(sound)
        return
    assert sender.log == sound
    assert sender.delivered == {value: offset for offset, value in enumerate(sound)}


def test_a_batch_behind_one_that_expired_unwritten_is_sent_in_a_new_epoch() -> None:
    sender = Sender()
    sender.introduce()
    sender.add(b"0")
    first = sender.next()
    sender.now_ms += 1_000
    sender.add(b"1")
    second = sender.next()
    assert first is not None
    assert second is not None
    sender.answer(first, 6)
    sender.answer(second)
    sender.now_ms += TIMEOUT_MS - 1_000
    sender.queue.expire(sender.now_ms)
    sender.now_ms += 500
    sender.run()
    assert set(sender.failed) == {b"0"}
    assert sender.log == [b"introduced", b"1"]
    assert sender.identity == Identity(7, 1)


def test_a_transaction_begins_anew_behind_one_in_which_a_batch_expired() -> None:
    sender = Sender("transactional")
    sender.add(b"0")
    first = sender.next()
    assert first is not None
    sender.queue.disconnected(first, NetworkError("the connection broke"), sender.now_ms)
    sender.now_ms += TIMEOUT_MS
    sender.queue.expire(sender.now_ms)
    assert len(sender.abortable) == 1
    sender.abortable.clear()
    sender.identity = Identity(7, 1)
    sender.add(b"1")
    sender.run()
    assert sender.log == [b"1"]
    assert not sender.abortable


def test_a_batch_that_failed_for_no_known_reason_leaves_its_sequences_to_no_other() -> None:
    sender = Sender()
    sender.add(b"0")
    sender.add(b"1")
    batch = sender.next()
    assert batch is not None
    sender.append(sender.bytes_of(batch))
    sender.answer(batch, -1)
    sender.run()
    assert sender.log == [b"0", b"1"]
    assert sender.delivered == {b"1": 1}


def test_answers_that_come_crosswise_leave_the_sequence_of_the_later() -> None:
    sender = Sender()
    sender.introduce()
    for value in (b"0", b"1", b"!2"):
        sender.add(value, b"k" + value)
    first, second = sender.next(), sender.next()
    assert first is not None
    assert second is not None
    answers = [sender.append(sender.bytes_of(one)) for one in (first, second)]
    sender.queue.answered(second, answers[1], sender.now_ms)
    sender.queue.answered(first, answers[0], sender.now_ms)
    assert sender.queue.last_sequence == 4
    sender.run()
    assert sender.identity == Identity(7, 0)
    assert set(sender.failed) == {b"!2"}


def test_no_more_batches_overtake_one_without_an_answer_than_a_leader_knows_again() -> None:
    sender = Sender()
    sender.introduce()
    for value in range(12):
        sender.add(b"%d" % value)
    first = sender.next()
    assert first is not None
    answer_that_is_lost = sender.append(sender.bytes_of(first))
    assert answer_that_is_lost.error_code == 0
    overtaking = 0
    while (batch := sender.next()) is not None:
        sender.answer(batch)
        overtaking += 1
    assert overtaking == 4
    sender.answer(first, 7)
    sender.run()
    assert sender.log == [b"introduced", *(b"%d" % value for value in range(12))]
    assert sender.identity == Identity(7, 0)


@pytest.mark.parametrize("kind", ["idempotent", "transactional"])
def test_no_batch_overtakes_the_first_that_a_leader_is_to_know_a_producer_by(kind: str) -> None:
    # Kafka takes in a producer that it does not know with any sequence, and refuses those before
    # it for ever. A leader that is not ready for the first batch may be for the second.
    sender = Sender(kind, unknown_producer="accept")
    sender.add(b"0")
    sender.add(b"1")
    first = sender.next()
    assert first is not None
    assert sender.next() is None
    sender.answer(first, 6)
    sender.run()
    assert sender.log == [b"0", b"1"]
    assert sender.identity == Identity(7, 0)


def test_a_leader_that_forgot_a_producer_is_to_know_it_by_its_next_batch() -> None:
    sender = Sender("transactional")
    sender.introduce()
    sender.add(b"0")
    sender.add(b"1")
    first = sender.next()
    assert first is not None
    sender.answer(first, 59, log_start_offset=1)
    sender.now_ms += 1_000
    assert sender.next() is first
    assert sender.next() is None


@pytest.mark.parametrize(("code", "fields"), [(47, {}), (59, {"log_start_offset": 5})])
def test_a_leader_that_refuses_each_epoch_is_not_asked_at_once_again(
    code: int, fields: dict[str, int]
) -> None:
    sender = Sender()
    sender.add(b"0")
    for _ in range(3):
        batch = sender.next()
        assert batch is not None
        sender.answer(batch, code, **fields)
        assert sender.next() is None
        sender.now_ms += 1_000


def test_the_halves_of_a_batch_that_may_be_written_may_be_so_too() -> None:
    sender = Sender()
    sender.add(b"0", b"1")
    batch = sender.next()
    assert batch is not None
    sender.queue.disconnected(batch, NetworkError("the connection broke"), sender.now_ms)
    sender.now_ms += 1_000
    assert sender.next() is batch
    sender.answer(batch, 10)
    assert [one.may_be_written for one in sender.queue.open] == [True, True]


def test_records_that_are_not_delivered_in_time_say_what_the_last_attempt_came_to() -> None:
    sender = Sender()
    sender.add(b"0")
    sender.add(b"1")
    batch = sender.next()
    assert batch is not None
    sender.answer(batch, 2, error_message="the checksum is wrong")
    sender.now_ms += TIMEOUT_MS
    sender.queue.expire(sender.now_ms)
    texts = {value: str(error) for value, error in sender.failed.items()}
    assert texts[b"0"].endswith("(120000); attempts: 1, the last: the checksum is wrong")
    assert texts[b"1"].endswith("(120000); attempts: 0")


def lose_answers(sender: Sender, *values: bytes) -> list[Batch]:
    """Sends batches of one record each that are written, though no answer comes."""
    sender.introduce()
    for value in values:
        sender.add(value)
    batches = [sender.next() for _ in values]
    for batch in batches:
        assert batch is not None
        sender.append(sender.bytes_of(batch))
    for batch in batches:
        assert batch is not None
        sender.disconnect(batch)
    return [batch for batch in batches if batch is not None]


def test_a_leader_that_knows_the_last_batch_alone_is_asked_for_it_before_others_are_lost() -> None:
    sender = Sender()
    first, second, third = lose_answers(sender, b"0", b"1", b"2")
    for batch in (first, second):
        sender.now_ms += 1_000
        assert sender.next() is batch
        sender.answer(batch, 45, log_start_offset=0)
    sender.now_ms += 1_000
    assert sender.next() is third
    sender.answer(third)
    assert sender.delivered == {b"introduced": 0, b"0": -1, b"1": -1, b"2": 3}
    sender.add(b"3")
    sender.run()
    assert sender.log == [b"introduced", b"0", b"1", b"2", b"3"]
    assert sender.identity == Identity(7, 0)
    assert not sender.lost
    assert not sender.failed
    assert sender.ended_bytes == sender.added_bytes


def test_a_batch_that_the_leader_may_have_forgotten_is_not_written_again_in_a_new_epoch() -> None:
    sender = Sender()
    first, second = lose_answers(sender, b"0", b"1")
    sender.queue.must_bump = True
    sender.now_ms += 1_000
    assert sender.next() is first
    sender.answer(first, 45, log_start_offset=0)
    sender.now_ms += 1_000
    assert sender.next() is second
    sender.answer(second)
    sender.add(b"2")
    sender.run()
    assert sender.log == [b"introduced", b"0", b"1", b"2"]
    assert sender.delivered == {b"introduced": 0, b"0": -1, b"1": 2, b"2": 3}
    assert not sender.lost
    assert not sender.failed


def test_where_none_of_several_batches_is_in_the_log_the_first_is_told_as_lost() -> None:
    sender = Sender()
    sender.introduce()
    sender.add(b"0")
    sender.add(b"1")
    batches = [sender.next(), sender.next()]
    for batch in batches:
        assert batch is not None
        sender.disconnect(batch)
    for batch in batches:
        sender.now_ms += 1_000
        assert sender.next() is batch
        assert batch is not None
        sender.answer(batch, 45, log_start_offset=0)
    sender.now_ms += 1_000
    head = sender.next()
    assert head is batches[0]
    assert head is not None
    sender.answer(head, 45, log_start_offset=0)
    sender.run()
    assert [type(one) for one in sender.failed.values()] == [OutOfOrderSequenceError]
    assert sender.log == [b"introduced", b"1"]


def test_a_batch_behind_which_another_was_acknowledged_is_in_the_log_though_it_is_forgotten() -> (
    None
):
    sender = Sender()
    sender.introduce()
    sender.add(b"0")
    sender.add(b"1")
    first, second = sender.next(), sender.next()
    assert first is not None
    assert second is not None
    sender.append(sender.bytes_of(first))
    sender.answer(second)
    sender.disconnect(first)
    sender.now_ms += 1_000
    assert sender.next() is first
    sender.answer(first, 45, log_start_offset=0)
    assert sender.delivered == {b"introduced": 0, b"0": -1, b"1": 2}
    assert sender.queue.is_empty
