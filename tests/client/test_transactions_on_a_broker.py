"""A producer's transactions on a broker that decides as Kafka does, by each era of the protocol."""

import pytest
from ottla.client.errors import ProducerFencedError
from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition
from ottla.client.transactions.manager import TransactionManager
from ottla.client.transactions.requests import (
    FindCoordinator,
)
from ottla.client.transactions.states import State
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from support.coordinator import NoBatches
from support.wire_client import NOW_MS, WireClient, new_broker

OLD = {
    "FindCoordinator": 1,
    "InitProducerId": 1,
    "AddPartitionsToTxn": 0,
    "AddOffsetsToTxn": 0,
    "TxnOffsetCommit": 2,
    "EndTxn": 0,
}
ONE = {
    "FindCoordinator": 4,
    "InitProducerId": 4,
    "AddPartitionsToTxn": 3,
    "AddOffsetsToTxn": 3,
    "TxnOffsetCommit": 3,
    "EndTxn": 3,
}
TWO = {**ONE, "InitProducerId": 5, "AddOffsetsToTxn": 4, "TxnOffsetCommit": 5, "EndTxn": 5}
ERAS = {"0.11": OLD, "transaction version 1": ONE, "transaction version 2": TWO}


class Producer:
    """A manager with a connection to a broker."""

    def __init__(self, client: WireClient, versions: dict[str, int]) -> None:
        self.client = client
        self.versions = versions
        self.manager = TransactionManager("tx", 60_000, NoBatches(), backoff_ms=lambda _: 10)
        self.manager.can_bump = versions["InitProducerId"] >= 3
        self.manager.is_implicit = versions["EndTxn"] >= 5

    def run(self) -> None:
        for _ in range(200):
            request = self.manager.next_request(self.client.now_ms)
            if request is None:
                deadline_ms = self.manager.next_deadline_ms()
                if deadline_ms is None or deadline_ms <= self.client.now_ms:
                    return
                self.client.advance(deadline_ms - self.client.now_ms)
                continue
            version = self.versions[request.api]
            message = request.message(self.manager, version)
            self.manager.answered(request, self.client.ask(message, version), self.client.now_ms)
        raise AssertionError("no end of requests")

    def init(self) -> None:
        pending = self.manager.init()
        self.run()
        assert pending.is_done
        if pending.error is not None:
            raise pending.error


@pytest.fixture
def client() -> WireClient:
    broker = new_broker({"offsets.topic.num.partitions": "1"})
    broker.topics.create("orders", 2, {}, NOW_MS)
    return WireClient(broker, looks_for_coordinators=False)


def states_of(client: WireClient) -> list[str]:
    answer = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0)
    return [one.transaction_state for one in answer.transaction_states]


@pytest.mark.parametrize("versions", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize(
    ("call", "state"), [("commit", "CompleteCommit"), ("abort", "CompleteAbort")]
)
def test_a_transaction_ends_as_its_producer_asks(
    client: WireClient, versions: dict[str, int], call: str, state: str
) -> None:
    producer = Producer(client, versions)
    producer.init()
    for _ in range(3):
        producer.manager.begin()
        group = GroupMetadata("g")
        offsets = producer.manager.send_offsets(
            {TopicPartition("orders", 0): OffsetAndMetadata(5)}, group
        )
        producer.run()
        assert offsets.is_done
        assert offsets.error is None
        pending = getattr(producer.manager, call)()
        producer.run()
        assert pending.is_done
        assert pending.error is None
        assert states_of(client) == [state]
    fetched = client.ask(OffsetFetchRequest(group_id="g", topics=None), 5)
    expected = [[5]] if call == "commit" else []
    assert [
        [one.committed_offset for one in topic.partitions] for topic in fetched.topics
    ] == expected


@pytest.mark.parametrize("versions", ERAS.values(), ids=ERAS)
def test_a_second_producer_of_an_id_fences_the_first(
    client: WireClient, versions: dict[str, int]
) -> None:
    first, second = Producer(client, versions), Producer(client, versions)
    first.init()
    first.manager.begin()
    offsets = {TopicPartition("orders", 0): OffsetAndMetadata(5)}
    first.manager.send_offsets(offsets, GroupMetadata("g"))
    first.run()
    second.init()
    second.manager.begin()
    first.manager.commit()
    first.run()
    assert first.manager.state is State.FATAL_ERROR
    with pytest.raises(ProducerFencedError):
        first.manager.abort()
    assert second.manager.state is State.IN_TRANSACTION


@pytest.mark.parametrize("versions", [ONE, TWO], ids=["1", "2"])
def test_a_living_producer_begins_anew_what_it_left_open(
    client: WireClient, versions: dict[str, int]
) -> None:
    producer = Producer(client, versions)
    producer.init()
    offsets = {TopicPartition("orders", 0): OffsetAndMetadata(5)}
    for _ in range(2):
        producer.manager.begin()
        producer.manager.send_offsets(offsets, GroupMetadata("g"))
        producer.run()
        assert states_of(client) == ["Ongoing"]
        producer.init()
        assert states_of(client) != ["Ongoing"]
    producer.manager.begin()


def test_a_coordinator_is_asked_for_by_whoever_needs_it(client: WireClient) -> None:
    producer = Producer(client, ONE)
    producer.manager.init()
    request = producer.manager.next_request(client.now_ms)
    assert isinstance(request, FindCoordinator)
    assert request.group is None
