"""Transactions by requests: what producers of both protocols send, and what they are told."""

from typing import Any

import ottla
import pytest
from ottla.broker.faults import Fault, Names
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
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
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.wire_client import WireClient, new_broker

MINUTE_MS = 60_000
Producer = tuple[int, int]


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 2, {}, client.now_ms)
    return client


def start(
    client: WireClient, version: int = 5, name: str | None = "t", producer: Producer = (-1, -1)
) -> tuple[int, Producer]:
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=MINUTE_MS,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    answer = client.ask(request, version)
    return answer.error_code, (answer.producer_id, answer.producer_epoch)


def add(client: WireClient, producer: Producer, version: int = 3, **topics: list[int]) -> list[int]:
    asked = [
        AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
    ]
    answer = client.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=asked,
        ),
        version,
    )
    return [
        result.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]


def end(
    client: WireClient, producer: Producer, version: int = 5, *, commit: bool = True
) -> tuple[int, Producer]:
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    answer = client.ask(request, version)
    return answer.error_code, (answer.producer_id, answer.producer_epoch)


def produce(client: WireClient, producer: Producer, sequence: int = 0, version: int = 12) -> int:
    batch = ottla.build_batch(
        [ottla.NewRecord(b"k", b"v")],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        is_transactional=True,
    )
    data = TopicProduceData(
        name="orders", partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=[data])
    answer = client.ask(request, version)
    found: int = answer.responses[0].partition_responses[0].error_code
    return found


def stable(client: WireClient, index: int = 0) -> tuple[int, int]:
    """The last stable offset and the log end offset of a partition."""
    partition = client.broker.image.partition("orders", index)
    assert partition is not None
    _, last_stable_offset, _, log_end_offset = client.broker.plane.offsets(partition.handle)
    return last_stable_offset, log_end_offset


def set_fault(client: WireClient, error: int, names: Names) -> None:
    client.broker.faults.add(Fault(None, error=error, names=names))


def test_a_producer_of_version_one_names_its_partitions_and_commits(client: WireClient) -> None:
    _, producer = start(client, 0)
    assert add(client, producer, 0, orders=[0]) == [ErrorCode.NONE]
    assert produce(client, producer, version=7) == ErrorCode.NONE
    assert stable(client) == (0, 1)
    assert end(client, producer, 0)[0] == ErrorCode.NONE
    assert stable(client) == (2, 2)


def test_a_producer_of_version_one_writes_nowhere_else(client: WireClient) -> None:
    _, producer = start(client, 3)
    assert produce(client, producer, version=10) == ErrorCode.INVALID_TXN_STATE
    assert produce(client, producer, version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert stable(client) == (0, 0)


def test_a_producer_of_version_two_writes_where_it_likes_and_gets_a_new_epoch(
    client: WireClient,
) -> None:
    _, producer = start(client)
    assert produce(client, producer) == ErrorCode.NONE
    error, following = end(client, producer)
    assert (error, following) == (ErrorCode.NONE, (producer[0], producer[1] + 1))
    assert stable(client) == (2, 2)
    assert produce(client, producer) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert produce(client, following) == ErrorCode.NONE


def test_a_transaction_that_takes_too_long_is_aborted(client: WireClient) -> None:
    _, producer = start(client)
    produce(client, producer)
    client.advance(MINUTE_MS - 1)
    assert stable(client) == (0, 1)
    client.advance(1)
    assert stable(client) == (2, 2)
    assert produce(client, producer, 1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_successor_aborts_what_its_predecessor_left_open(client: WireClient) -> None:
    _, producer = start(client)
    produce(client, producer)
    assert start(client)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert stable(client) == (2, 2)
    assert start(client)[0] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
def test_init_producer_id_tells_of_fencing_by_version(
    client: WireClient, version: int, error: int
) -> None:
    _, old = start(client)
    start(client)
    assert start(client, version, producer=old)[0] == error


@pytest.mark.parametrize(
    ("version", "error"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_the_other_requests_tell_of_fencing_by_version(
    client: WireClient, version: int, error: int
) -> None:
    _, old = start(client)
    start(client)
    assert add(client, old, version, orders=[0]) == [error]
    assert end(client, old, version)[0] == error
    request = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=old[0], producer_epoch=old[1], group_id="g"
    )
    assert client.ask(request, version).error_code == error


def test_beside_an_unknown_partition_nothing_is_added(client: WireClient) -> None:
    _, producer = start(client)
    assert add(client, producer, orders=[0, 2, 1]) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    ]
    assert described(client).transaction_state == "Empty"


def described(client: WireClient, name: str = "t") -> Any:
    answer = client.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0)
    return answer.transaction_states[0]


@pytest.mark.parametrize(
    ("version", "missing"),
    [(4, ErrorCode.INVALID_TXN_STATE), (5, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_brokers_add_and_verify_for_many_transactions_at_once(
    client: WireClient, version: int, missing: int
) -> None:
    _, producer = start(client)

    def transaction(index: int, *, verify_only: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id="t",
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="orders", partitions=[index])],
        )

    asked = [
        transaction(0, verify_only=False),
        transaction(0, verify_only=True),
        transaction(1, verify_only=True),
    ]
    answer = client.ask(AddPartitionsToTxnRequest(transactions=asked), version)
    assert answer.error_code == ErrorCode.NONE
    assert [
        result.topic_results[0].results_by_partition[0].partition_error_code
        for result in answer.results_by_transaction
    ] == [ErrorCode.NONE, ErrorCode.NONE, missing]


def test_the_offsets_of_a_group_join_by_the_partition_of_the_group(client: WireClient) -> None:
    _, producer = start(client)
    request = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], group_id="a"
    )
    assert client.ask(request, 3).error_code == ErrorCode.NONE
    [topic] = described(client).topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [47])
    assert end(client, producer, commit=False)[0] == ErrorCode.NONE


def test_a_transaction_is_described_while_it_is_open(client: WireClient) -> None:
    _, producer = start(client)
    add(client, producer, orders=[1, 0])
    found = described(client)
    assert found.error_code == ErrorCode.NONE
    assert found.transaction_state == "Ongoing"
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_timeout_ms == MINUTE_MS
    assert found.transaction_start_time_ms == client.now_ms
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("orders", [0, 1])]
    error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert described(client, "other").error_code == error
    assert described(client, "").error_code == ErrorCode.INVALID_REQUEST


def test_transactions_are_listed_by_state_producer_and_duration(client: WireClient) -> None:
    _, producer = start(client)
    start(client, name="idle")
    add(client, producer, orders=[0])
    client.advance(1000)

    def listed(version: int = 1, **filters: Any) -> list[str]:
        answer = client.ask(ListTransactionsRequest(**filters), version)
        return [known.transactional_id for known in answer.transaction_states]

    assert listed(0) == ["idle", "t"]
    assert listed(state_filters=["Ongoing"]) == ["t"]
    assert listed(state_filters=["Ongoing", "Empty"]) == ["idle", "t"]
    assert listed(producer_id_filters=[producer[0]]) == ["t"]
    assert listed(duration_filter=999) == ["t"]
    assert listed(duration_filter=1000) == []
    answer = client.ask(ListTransactionsRequest(state_filters=["Asleep", "Empty"]), 0)
    assert answer.unknown_state_filters == ["Asleep"]


def test_producers_of_a_partition_are_described(client: WireClient) -> None:
    _, producer = start(client)
    produce(client, producer)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name="orders", partition_indexes=[0, 9])]
    )
    found, missing = client.ask(request, 0).topics[0].partitions
    [known] = found.active_producers
    assert (known.producer_id, known.producer_epoch) == producer
    assert (known.last_sequence, known.current_txn_start_offset) == (0, 0)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    end(client, producer)
    [known] = client.ask(request, 0).topics[0].partitions[0].active_producers
    assert known.current_txn_start_offset == -1


@pytest.mark.parametrize("version", [1, 2])
def test_a_hanging_transaction_is_ended_by_hand(client: WireClient, version: int) -> None:
    _, producer = start(client)
    produce(client, producer)
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1] + 1,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 9])],
        transaction_version=2 if version == 2 else 0,
    )
    answer = client.ask(WriteTxnMarkersRequest(markers=[marker]), version)
    [result] = answer.markers
    assert result.producer_id == producer[0]
    assert [each.error_code for each in result.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert stable(client) == (2, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_of_no_producer_is_an_error_of_its_partitions_alone(
    client: WireClient, version: int
) -> None:
    topics = [WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 7])]
    markers = [
        WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=topics)
        for producer_id, epoch in [(-1, 0), (5, -1), (-1, -1), (5, 0)]
    ]
    answer = client.ask(WriteTxnMarkersRequest(markers=markers), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [
        [each.error_code for each in found.topics[0].partitions] for found in answer.markers
    ] == [
        *[[ErrorCode.UNKNOWN_SERVER_ERROR, unknown]] * 3,
        [ErrorCode.NONE, unknown],
    ]


def test_a_fault_of_a_transactional_id_is_its_error(client: WireClient) -> None:
    _, producer = start(client)
    set_fault(client, ErrorCode.NOT_COORDINATOR, Names(transactional_id="t"))
    assert start(client)[0] == ErrorCode.NOT_COORDINATOR
    assert start(client, name="other")[0] == ErrorCode.NONE
    assert add(client, producer, orders=[0, 1]) == [ErrorCode.NOT_COORDINATOR] * 2
    assert end(client, producer)[0] == ErrorCode.NOT_COORDINATOR
    assert described(client).error_code == ErrorCode.NOT_COORDINATOR
    client.broker.faults.clear()
    assert end(client, producer, commit=False)[0] == ErrorCode.NONE


def test_a_fault_of_a_partition_keeps_it_out_of_the_transaction(client: WireClient) -> None:
    _, producer = start(client)
    set_fault(client, ErrorCode.NOT_LEADER_OR_FOLLOWER, Names("orders", 1))
    assert add(client, producer, orders=[0, 1]) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]


def test_another_broker_on_the_same_log_goes_on_where_this_one_was(client: WireClient) -> None:
    _, producer = start(client)
    produce(client, producer)
    coordinator = client.broker.transactions
    before = list(coordinator.transactions())
    coordinator.resign()
    assert end(client, producer)[0] == ErrorCode.NOT_COORDINATOR
    coordinator.ensure_log(client.now_ms)
    assert described(client).transaction_state == "Ongoing"
    assert list(coordinator.transactions()) == before
    assert end(client, producer)[0] == ErrorCode.NONE


def commit_offset(client: WireClient, producer: Producer, offset: int, version: int = 5) -> int:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    answer = client.ask(request, version)
    found: int = answer.topics[0].partitions[0].error_code
    return found


def committed_offset(client: WireClient) -> tuple[int, int]:
    """The error and the offset of a reader that waits for transactions."""
    topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    request = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=True)
    [partition] = client.ask(request, 7).topics[0].partitions
    return partition.error_code, partition.committed_offset


@pytest.mark.parametrize(("commit", "offset"), [(True, 7), (False, -1)])
def test_offsets_count_once_their_transaction_commits(
    client: WireClient, offset: int, *, commit: bool
) -> None:
    _, producer = start(client)
    assert commit_offset(client, producer, 7) == ErrorCode.NONE
    assert committed_offset(client) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert end(client, producer, commit=commit)[0] == ErrorCode.NONE
    assert committed_offset(client) == (ErrorCode.NONE, offset)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_producer_of_version_one_commits_no_offsets_of_a_group_that_it_has_not_named(
    client: WireClient, version: int, error: int
) -> None:
    _, producer = start(client)
    assert commit_offset(client, producer, 7, version) == error
    request = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert client.ask(request, 3).error_code == ErrorCode.NONE
    assert commit_offset(client, producer, 7, version) == ErrorCode.NONE
    assert end(client, producer, 3)[0] == ErrorCode.NONE
    assert committed_offset(client) == (ErrorCode.NONE, 7)


def test_a_fenced_producer_commits_no_offsets(client: WireClient) -> None:
    _, old = start(client)
    start(client)
    assert commit_offset(client, old, 7) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed_offset(client) == (ErrorCode.NONE, -1)


def test_whoever_looks_for_a_coordinator_finds_one_that_knows_its_log(client: WireClient) -> None:
    _, producer = start(client)
    client.broker.transactions.resign()
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
    [found] = client.ask(find, 4).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert add(client, producer, orders=[0]) == [ErrorCode.NONE]
