"""Valid requests that no client sends: an answer of the protocol, and no fault."""

import math
import time
from collections.abc import Callable

import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
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
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.wire import Message
from support.wire_client import WireClient, new_broker


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 2, {}, client.now_ms)
    return client


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "odd",
    [MetadataRequestTopic(name=None), MetadataRequestTopic(name="orders", topic_id=b"\1" * 16)],
)
def test_topics_without_a_name_or_by_id_are_refused_before_version_12_of_metadata(
    client: WireClient, version: int, odd: MetadataRequestTopic
) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders"), odd])
    answer = client.ask(request, version)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("orders", ErrorCode.INVALID_REQUEST),
        (odd.name or "", ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize("version", range(6))
def test_a_commit_in_a_transaction_with_an_impossible_epoch_is_fenced(
    client: WireClient, version: int
) -> None:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=7,
        producer_epoch=-128,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    (topic,) = client.ask(request, version).topics
    assert [p.error_code for p in topic.partitions] == [ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_commit_that_is_to_be_kept_longer_than_time_lasts_is_kept(
    client: WireClient, version: int
) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id="g",
        retention_time_ms=2**63 - 1,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    (topic,) = client.ask(request, version).topics
    assert [p.error_code for p in topic.partitions] == [ErrorCode.NONE]


def offsets_of(count: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=index) for index in range(count)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=partitions)])


def invalid_topics(count: int) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=f"?{number}", num_partitions=1) for number in range(count)]
    return CreateTopicsRequest(topics=topics)


def grown_topics(count: int) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=f"t{number}", count=2) for number in range(count)]
    return CreatePartitionsRequest(topics=topics)


def unknown_settings(count: int) -> IncrementalAlterConfigsRequest:
    settings = [
        AlterableConfig(name=f"setting.{number}", value="", config_operation=0)
        for number in range(count)
    ]
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=settings)
    return IncrementalAlterConfigsRequest(resources=[resource])


def moved_replicas(count: int) -> AlterPartitionReassignmentsRequest:
    # The last two are the same.
    replicas = [*range(2, count + 1), count]
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="orders", partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[topic])


@pytest.mark.measures
@pytest.mark.parametrize(
    ("request_of", "version"),
    [
        (offsets_of, 7),
        (invalid_topics, 5),
        (grown_topics, 2),
        (unknown_settings, 1),
        (moved_replicas, 0),
    ],
)
def test_a_request_of_very_many_names_takes_about_as_long_as_many_of_few(
    client: WireClient, request_of: Callable[[int], Message], version: int
) -> None:
    few, many = request_of(100), request_of(20_000)
    apart_s = together_s = math.inf
    # The least of several: one alone may hold a collection of the garbage of a thousand tests.
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(200):
            client.ask(few, version)
        between = time.perf_counter()
        client.ask(many, version)
        apart_s = min(apart_s, between - began)
        together_s = min(together_s, time.perf_counter() - between)
    # To compare each name with each takes two hundred times as many steps.
    assert together_s < 20 * apart_s
