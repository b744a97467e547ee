"""Leader epochs, wherever clients are told of them or tell of them (KIP-101, KIP-320, KIP-232)."""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from ottla.broker.api import APIS
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
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
from support.wire_client import WireClient, new_broker

EPOCH = 3
LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, LEADER_EPOCH, TXN_COMMIT = 2, 3, 8, 9, 23, 28
COMMITTED_BY_ID = 10
GROUPS_SINCE = 8


def versions(key: int, first: int = 0) -> range:
    return range(max(first, APIS[key].min_version), APIS[key].max_version + 1)


@pytest.fixture
def client() -> WireClient:
    """A client of a broker that leads a partition of one record in its fourth epoch."""
    client = WireClient(new_broker())
    broker = client.broker
    topic = broker.topics.create("t", 1, {}, client.now_ms)
    (partition,) = topic.partitions
    broker.plane.configure(partition.handle, leader_epoch=EPOCH)
    led = topic._replace(partitions=(partition._replace(leader_epoch=EPOCH),))
    broker.image = broker.image.with_topics([led])
    data = PartitionProduceData(
        index=0, records=ottla.build_batch([ottla.NewRecord(timestamp=client.now_ms)])
    )
    request = ProduceRequest(
        acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0
    return client


@pytest.mark.parametrize("version", versions(METADATA))
def test_metadata_tell_the_leader_epoch_from_version_7_on(client: WireClient, version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = client.ask(request, version).topics
    assert topic.partitions[0].leader_epoch == (EPOCH if version >= 7 else -1)


@pytest.mark.parametrize("version", versions(LIST_OFFSETS))
def test_an_offset_that_is_listed_has_the_epoch_of_its_record_from_version_4_on(
    client: WireClient, version: int
) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=client.now_ms)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[asked])])
    (found,) = client.ask(request, version).topics[0].partitions
    assert (found.error_code, found.offset) == (0, 0)
    assert found.leader_epoch == (EPOCH if version >= 4 else -1)


@pytest.mark.parametrize("version", versions(LEADER_EPOCH))
def test_an_epoch_ends_where_the_log_does(client: WireClient, version: int) -> None:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=EPOCH)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])]
    )
    (found,) = client.ask(request, version).topics[0].partitions
    assert (found.leader_epoch, found.end_offset) == (EPOCH, 1)


def commit(client: WireClient, version: int, **fields: Any) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="m", **fields
    )
    topic = OffsetCommitRequestTopic(
        name="t", topic_id=client.broker.image.topics["t"].topic_id, partitions=[partition]
    )
    answer = client.ask(OffsetCommitRequest(group_id="g", topics=[topic]), version)
    assert answer.topics[0].partitions[0].error_code == 0


def fetched(client: WireClient, version: int) -> Any:
    """The committed offset of the partition."""
    if version < GROUPS_SINCE:
        plain = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        answer = client.ask(OffsetFetchRequest(group_id="g", topics=[plain]), version)
        return answer.topics[0].partitions[0]
    topic = OffsetFetchRequestTopics(
        name="t", topic_id=client.broker.image.topics["t"].topic_id, partition_indexes=[0]
    )
    group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    answer = client.ask(OffsetFetchRequest(groups=[group]), version)
    return answer.groups[0].topics[0].partitions[0]


@pytest.mark.parametrize("version", versions(OFFSET_COMMIT, 6))
def test_a_leader_epoch_that_is_committed_is_fetched_again(
    client: WireClient, version: int
) -> None:
    commit(client, version, committed_leader_epoch=2)
    for each in versions(OFFSET_FETCH):
        found = fetched(client, each)
        assert (found.committed_offset, found.metadata) == (1, "m")
        assert found.committed_leader_epoch == (2 if each >= 5 else -1)


def test_an_offset_committed_without_a_leader_epoch_has_none(client: WireClient) -> None:
    for version in (2, 5, 9):
        commit(client, version)
        assert fetched(client, 9).committed_leader_epoch == -1


@pytest.mark.parametrize("version", versions(TXN_COMMIT))
def test_an_offset_of_a_transaction_keeps_its_leader_epoch_from_version_2_on(
    client: WireClient, version: int
) -> None:
    started = client.ask(
        InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4
    )
    producer: dict[str, Any] = {
        "transactional_id": "x",
        "producer_id": started.producer_id,
        "producer_epoch": started.producer_epoch,
    }
    assert client.ask(AddOffsetsToTxnRequest(group_id="g", **producer), 3).error_code == 0
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=2, committed_metadata="m"
    )
    topic = TxnOffsetCommitRequestTopic(
        name="t", topic_id=client.broker.image.topics["t"].topic_id, partitions=[partition]
    )
    request = TxnOffsetCommitRequest(group_id="g", topics=[topic], **producer)
    assert client.ask(request, version).topics[0].partitions[0].error_code == 0
    assert client.ask(EndTxnRequest(committed=True, **producer), 3).error_code == 0
    assert fetched(client, 9).committed_leader_epoch == (2 if version >= 2 else -1)


def test_a_request_sees_the_cluster_as_of_one_moment(client: WireClient) -> None:
    """Who changes the cluster makes another image of it: the one before stays as it was."""
    before = client.broker.image
    client.broker.topics.create("later", 1, {}, client.now_ms)
    client.broker.topics.delete(["t"])
    assert list(before.topics) == ["t"]
    assert [topic.name for topic in before.topics_by_id.values()] == ["t"]
    assert list(client.broker.image.topics) == ["later"]
