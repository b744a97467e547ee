"""Model clients: what real ones do to keep their promises, and nothing more.

Each writes down in the history what it did and what it was told. It asks again where an answer is
lost, as its protocol allows, and gives up where the broker says so for good.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import ottla
from ottla.broker.broker import Broker
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.simulation.history import (
    Commit,
    History,
    Moment,
    Reading,
    Sent,
    Start,
    Transaction,
)
from support.simulation.world import REQUEST_TIMEOUT_MS, Ask, Client, Sleep

TOPIC, PARTITIONS = "orders", 2
TRANSACTION_TIMEOUT_MS = 60_000
KEYS = 3
"""Of each producer, in topics that have keys."""
GROUP, TRANSACTIONAL_ID = 0, 1

# The coordinator is elsewhere, loads, or is busy with the end before: ask again.
AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
# Another producer has taken over, or the coordinator has ended the transaction.
TAKEN_OVER = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTION_ABORTABLE,
}
# A write that came late, between two transactions, has its sequence remembered as the lowest.
LATE = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
# A power cut has taken what a producer wrote before.
LOST = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}
_PAUSE_MS = 50

Steps = Generator[Ask | Sleep, Any, Any]


@dataclass
class Model:
    """What the clients of one world share.

    Attributes:
        is_new: whether transactions are those of KIP-890's second part.
    """

    random: Random
    history: History
    is_new: bool
    clock: Callable[[], int]
    topic_id: Callable[[], bytes]
    values: int = 0

    def moment(self) -> Moment:
        """Now."""
        return self.clock(), self.history.step()

    def new_values(self, name: str) -> list[bytes]:
        """Values that nobody else writes."""
        count = self.random.randrange(1, 4)
        self.values += count
        return [b"%s-%d" % (name.encode(), self.values - number) for number in range(count)]

    def new_sent(self, name: str, topic: str = TOPIC) -> Sent:
        """A batch for one of the partitions; topics but the first have one, and keys."""
        partitions = PARTITIONS if topic == TOPIC else 1
        sent = Sent(name, topic, self.random.randrange(partitions), self.new_values(name))
        if topic != TOPIC:
            sent.records = [
                (
                    b"%s-key-%d" % (name.encode(), self.random.randrange(KEYS)),
                    value if self.random.random() < 0.8 else None,
                )
                for value in sent.values
            ]
        self.history.sent.append(sent)
        return sent


def until(
    request: Any, version: int, error_of: Any, asked: list[None] | None = None, **options: Any
) -> Steps:
    """Ask until there is an answer that is not to be asked for again; return its error and it."""
    while True:
        if asked is not None:
            asked.append(None)
        answer = yield Ask(request, version, **options)
        error = None if answer is None else error_of(answer)
        if error is not None and error not in AGAIN:
            return error, answer
        yield Sleep(_PAUSE_MS)


def _produce_request(
    model: Model,
    sent: Sent,
    ids: tuple[int, int],
    sequence: int,
    transactional_id: str | None = None,
) -> ProduceRequest:
    now_ms = model.clock()
    batch = ottla.build_batch(
        [
            ottla.NewRecord(key, value, timestamp=now_ms)
            for key, value in sent.records or [(None, value) for value in sent.values]
        ],
        producer_id=ids[0],
        producer_epoch=ids[1],
        base_sequence=sequence,
        is_transactional=transactional_id is not None,
    )
    data = PartitionProduceData(index=sent.partition, records=batch)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=sent.topic, partition_data=[data])],
    )


def _error_of_produce(answer: Any) -> int:
    error: int = answer.responses[0].partition_responses[0].error_code
    return error


def _produce(sent: Sent, request: ProduceRequest, version: int) -> Steps:
    """Send a batch until something is known of it; return the error."""
    error, answer = yield from until(request, version, _error_of_produce, may_be_late=True)
    if error == ErrorCode.NONE:
        sent.outcome = "done"
        sent.base_offset = answer.responses[0].partition_responses[0].base_offset
    return error


def idempotent_producer(
    model: Model,
    name: str,
    batches: int,
    *,
    topic: str = TOPIC,
    most_pause_ms: int = 200,
    then: Callable[[Model, Sent], Steps] | None = None,
) -> Client:
    """Writes batches, each once, in order; begins anew where a power cut has taken some.

    A start knows no producer of records that were all deleted, so that it begins anew then, too.
    """
    ids, sequences = (-1, -1), [0] * PARTITIONS
    for _ in range(batches):
        if ids[0] < 0:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            _, answer = yield from until(request, 5, lambda answer: answer.error_code)
            ids, sequences = (answer.producer_id, answer.producer_epoch), [0] * PARTITIONS
        sent = model.new_sent(name, topic)
        frame = _produce_request(model, sent, ids, sequences[sent.partition])
        error = yield from _produce(sent, frame, 9)
        sequences[sent.partition] += len(sent.values)
        if error in LOST and (model.history.has_lost or topic != TOPIC):
            sent.outcome = "refused"
            ids = -1, -1
        elif error != ErrorCode.NONE:
            model.history.faults.append(f"{name}: error {error} for {sent}")
            return
        elif then is not None:
            yield from then(model, sent)
        yield Sleep(model.random.randrange(most_pause_ms))


@dataclass
class Session:
    """A transactional producer between two starts."""

    model: Model
    name: str
    number: int = 0
    ids: tuple[int, int] = (-1, -1)
    sequences: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    @property
    def identity(self) -> dict[str, Any]:
        """Who it says it is."""
        return {
            "transactional_id": self.name,
            "producer_id": self.ids[0],
            "producer_epoch": self.ids[1],
        }

    def begin(self) -> Steps:
        """Find the coordinator, and start."""
        find = FindCoordinatorRequest(key_type=TRANSACTIONAL_ID, coordinator_keys=[self.name])
        yield from until(find, 4, lambda answer: answer.coordinators[0].error_code)
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        history = self.model.history
        sent_at = history.step()
        _, answer = yield from until(request, 5, lambda answer: answer.error_code)
        history.starts.append(Start(self.name, self.number, sent_at, history.step()))
        self.ids = answer.producer_id, answer.producer_epoch
        self.sequences = [0] * PARTITIONS

    def write(self, transaction: Transaction) -> Steps:
        """Write a batch; return the error."""
        sent = self.model.new_sent(self.name)
        transaction.sent.append(sent)
        if not self.model.is_new:
            error = yield from self.join(sent)
            if error != ErrorCode.NONE:
                sent.outcome = "refused"
                return error
        frame = _produce_request(
            self.model, sent, self.ids, self.sequences[sent.partition], self.name
        )
        error = yield from _produce(sent, frame, 12 if self.model.is_new else 9)
        if error == ErrorCode.NONE:
            self.sequences[sent.partition] += len(sent.values)
        return error

    def join(self, sent: Sent) -> Steps:
        """Add a partition to the transaction, as producers before version 2 do."""
        topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=[sent.partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_topics=[topic],
            **{f"v3_and_below_{key}": value for key, value in self.identity.items()},
        )
        error, _ = yield from until(
            request,
            3,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )
        return error

    def commit_offsets(self, transaction: Transaction, group: str, offset: int) -> Steps:
        """Commit an offset for a group within the transaction; return the error."""
        if not self.model.is_new:
            add = AddOffsetsToTxnRequest(group_id=group, **self.identity)
            error, _ = yield from until(add, 3, lambda answer: answer.error_code)
            if error != ErrorCode.NONE:
                return error
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            group_id=group,
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            **self.identity,
        )
        error, _ = yield from until(
            request,
            5 if self.model.is_new else 3,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
        if error == ErrorCode.NONE:
            transaction.offsets[0] = offset
        return error

    def end(self, transaction: Transaction) -> Steps:
        """Commit or abort; return the error."""
        request = EndTxnRequest(committed=transaction.wants_commit, **self.identity)
        version = 5 if self.model.is_new else 3
        transaction.outcome = "unknown" if transaction.wants_commit else "aborted"
        sent_at = self.model.history.step()
        error, answer = yield from until(request, version, lambda answer: answer.error_code)
        if error == ErrorCode.NONE:
            transaction.outcome = "committed" if transaction.wants_commit else "aborted"
            self.model.history.ends.append((self.name, self.number, sent_at))
            if self.model.is_new:
                self.ids = answer.producer_id, answer.producer_epoch
                self.sequences = [0] * PARTITIONS
        return error


def transactional_producer(
    model: Model, name: str, transactions: int, *, is_alone: bool = False
) -> Client:
    """Writes transactions, commits most of them, and stalls now and then until it is timed out.

    Whoever is alone and does not stall is never taken over.
    """
    session, random = Session(model, name, model.history.step()), model.random
    yield from session.begin()
    for number in range(transactions):
        transaction = Transaction(name, wants_commit=random.random() < 0.7)
        model.history.transactions.append(transaction)
        error, stalls = ErrorCode.NONE, random.random() < 0.15
        count = random.randrange(1, 4)
        stalls_at = random.randrange(count) if stalls else -1
        for position in range(count):
            error = yield from session.write(transaction)
            if error != ErrorCode.NONE:
                break
            is_long = position == stalls_at
            yield Sleep(2 * TRANSACTION_TIMEOUT_MS if is_long else random.randrange(100))
        if error == ErrorCode.NONE and random.random() < 0.4:
            error = yield from session.commit_offsets(transaction, f"of-{name}", number)
        if error == ErrorCode.NONE:
            error = yield from session.end(transaction)
        if error != ErrorCode.NONE:
            is_expected = (error in TAKEN_OVER and (stalls or not is_alone)) or (
                (model.history.has_lost and error in TAKEN_OVER | LOST)
                or (error in TAKEN_OVER and model.history.has_jumped)
            )
            if not is_expected and error not in LATE:
                model.history.faults.append(f"{name}: error {error} in {transaction}")
                return
            yield from session.begin()


def vanishing_producer(model: Model, name: str) -> Client:
    """Leaves a transaction open, and is never seen again."""
    session, transaction = Session(model, name), Transaction(name)
    model.history.transactions.append(transaction)
    yield from session.begin()
    yield from session.write(transaction)


def hasty_producer(model: Model, name: str) -> Client:
    """Waits for no answer: it writes, aborts and is gone before what it wrote has arrived."""
    session, transaction = Session(model, name), Transaction(name)
    model.history.transactions.append(transaction)
    yield from session.begin()
    sent = model.new_sent(name)
    transaction.sent.append(sent)
    if not model.is_new:
        yield from session.join(sent)
    frame = _produce_request(model, sent, session.ids, 0, name)
    yield Ask(frame, 12 if model.is_new else 9, may_be_late=True)
    yield from session.end(transaction)


def reader(model: Model, partition: int, rounds: int, *, is_committed: bool) -> Client:
    """Reads a partition from its beginning on, and waits long for what is to come."""
    reading, random = Reading(TOPIC, partition, is_committed), model.random
    model.history.readings.append(reading)
    for _ in range(rounds):
        offset = reading.next_offset
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        max_wait_ms = random.choice((50, random.randrange(5_000, 30_000)))
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=random.choice((1, 1, 300)),
            max_bytes=1 << 20,
            isolation_level=int(is_committed),
            topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
        )
        answer = yield Ask(
            request,
            11,
            may_be_late=True,
            timeout_ms=max_wait_ms + REQUEST_TIMEOUT_MS,
            may_wait=_may_fetch_wait(request),
            most_wait_ms=max_wait_ms,
        )
        # Behind a power cut it may go on before what it has asked for.
        if answer is None or answer.error_code in AGAIN or reading.next_offset != offset:
            continue
        [got] = answer.responses[0].partitions
        if got.error_code in AGAIN:
            continue
        if got.error_code != ErrorCode.NONE:
            model.history.faults.append(f"a reader of {partition}: error {got.error_code}")
            return
        _take(reading, got)
        yield Sleep(random.randrange(100))


def _may_fetch_wait(request: FetchRequest) -> Callable[[Broker], bool]:
    """A fetch waits as long as there are fewer bytes that its reader may have."""
    [wanted] = request.topics[0].partitions

    def may_wait(broker: Broker) -> bool:
        partition = broker.image.partition(TOPIC, wanted.partition)
        assert partition is not None
        _, stable, high_watermark, end_offset = broker.plane.offsets(partition.handle)
        limit = stable if request.isolation_level else high_watermark
        if wanted.fetch_offset > end_offset:
            return False
        if wanted.fetch_offset >= limit or request.min_bytes == 1:
            return wanted.fetch_offset >= limit
        data = bytes(broker.plane.read(partition.handle, wanted.fetch_offset, 1 << 20))
        sizes = (each.size for each in ottla.read_batches(data) if each.last_offset < limit)
        return sum(sizes) < request.min_bytes

    return may_wait


def _take(reading: Reading, got: Any) -> None:
    """Take what a consumer would give its user."""
    aborted = [(each.first_offset, each.producer_id) for each in got.aborted_transactions or ()]
    ended: set[int] = set()
    for batch in ottla.read_batches(got.records or b""):
        ended |= {producer for first, producer in aborted if first <= batch.last_offset}
        aborted = [each for each in aborted if each[0] > batch.last_offset]
        if batch.is_control:
            ended.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in ended):
            reading.records += [
                (record.offset, bytes(record.value or b""))
                for record in batch.records()
                if record.offset >= reading.next_offset
            ]
        reading.next_offset = max(reading.next_offset, batch.last_offset + 1)


def committer(model: Model, group: str, commits: int) -> Client:
    """Commits offsets that increase, and asks for them: all that a group without members does."""
    find = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
    yield from until(find, 4, lambda answer: answer.coordinators[0].error_code)
    history = model.history
    for offset in range(commits):
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        commit = OffsetCommitRequest(
            group_id=group,
            member_id="",
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        entry = Commit("commit", 0, offset, history.step(), -1)
        history.commits.append(entry)
        asked_for: list[None] = []
        error, _ = yield from until(
            commit, 7, lambda answer: answer.topics[0].partitions[0].error_code, asked_for
        )
        entry.answered_at = history.step()
        entry.is_repeated = len(asked_for) > 1
        if error != ErrorCode.NONE:
            history.faults.append(f"{group}: error {error} for offset {offset}")
            return
        asked = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])])
        sent_at = history.step()
        _, answer = yield from until(fetch, 8, lambda answer: answer.groups[0].error_code)
        told = answer.groups[0].topics[0].partitions[0].committed_offset
        history.commits.append(Commit("fetch", 0, told, sent_at, history.step()))
        yield Sleep(model.random.randrange(300))
