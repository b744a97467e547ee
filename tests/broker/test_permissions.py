"""What each API asks of a client: one permission is missing, one is there."""

from collections.abc import Callable
from typing import Any

import ottla
import pytest
from ottla.broker.authorizer import (
    NOT_ASKED,
    AccessRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.broker.broker import error_codes
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
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
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
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
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.wire import Message
from support.wire_client import NOW_MS, WireClient, new_broker

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TOPIC, BROKER = 2, 4


@pytest.fixture
def client() -> WireClient:
    """A client who may do nothing."""
    client = WireClient(new_broker({"authorizer.class.name": "StandardAuthorizer"}))
    client.broker.topics.create("orders", 1, {}, NOW_MS)
    return client


def allow(
    client: WireClient,
    operation: int,
    resource_type: int = ResourceType.TOPIC,
    name: str = "*",
    *,
    permission: int = Permission.ALLOW,
) -> None:
    rule = AccessRule(
        resource_type,
        name,
        PatternType.LITERAL,
        client.connection.principal,
        "*",
        operation,
        permission,
    )
    assert client.broker.authorizer.add(rule) == ErrorCode.NONE


def produce() -> ProduceRequest:
    records = ottla.build_batch([ottla.NewRecord(b"k", b"v", timestamp=NOW_MS)])
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="orders", partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])


def list_offsets() -> ListOffsetsRequest:
    topic = ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(timestamp=-1)])
    return ListOffsetsRequest(replica_id=-1, topics=[topic])


def epochs() -> OffsetForLeaderEpochRequest:
    topic = OffsetForLeaderTopic(topic="orders", partitions=[OffsetForLeaderPartition()])
    return OffsetForLeaderEpochRequest(topics=[topic])


def delete_records() -> DeleteRecordsRequest:
    topic = DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition()])
    return DeleteRecordsRequest(topics=[topic])


def metadata() -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name="orders")])


def create() -> CreateTopicsRequest:
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def grow() -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name="orders", count=2, assignments=None)
    return CreatePartitionsRequest(topics=[topic])


def delete() -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")])


def describe_configs() -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="orders", configuration_keys=None
    )
    return DescribeConfigsRequest(resources=[resource])


def alter_configs() -> AlterConfigsRequest:
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders")
    return AlterConfigsRequest(resources=[resource])


def incremental() -> IncrementalAlterConfigsRequest:
    resource = IncrementalResource(resource_type=TOPIC, resource_name="orders")
    return IncrementalAlterConfigsRequest(resources=[resource])


def pages() -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name="orders")])


CASES = [
    (produce, 9, Operation.WRITE),
    (fetch, 11, Operation.READ),
    (list_offsets, 7, Operation.DESCRIBE),
    (epochs, 4, Operation.DESCRIBE),
    (delete_records, 2, Operation.DELETE),
    (metadata, 12, Operation.DESCRIBE),
    (create, 7, Operation.CREATE),
    (grow, 3, Operation.ALTER),
    (delete, 6, Operation.DELETE),
    (describe_configs, 4, Operation.DESCRIBE_CONFIGS),
    (alter_configs, 2, Operation.ALTER_CONFIGS),
    (incremental, 1, Operation.ALTER_CONFIGS),
    (pages, 0, Operation.DESCRIBE),
]


IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


@pytest.mark.parametrize(
    ("ask", "version", "operation"), CASES, ids=[ask.__name__ for ask, _, _ in CASES]
)
def test_each_api_needs_its_permission_on_the_topic_and_no_other(
    client: WireClient, ask: Callable[[], Message], version: int, operation: int
) -> None:
    others = {other for _, _, other in CASES} - {operation} - IMPLYING.get(operation, set())
    for other in others:
        allow(client, other)
    assert error_codes(client.ask(ask(), version)) == (DENIED,)
    allow(client, operation)
    assert error_codes(client.ask(ask(), version)) == ()


def test_a_list_of_all_topics_has_those_that_may_be_described(client: WireClient) -> None:
    client.broker.topics.create("payments", 1, {}, NOW_MS)
    allow(client, Operation.READ, name="payments")
    every = client.ask(MetadataRequest(topics=None), 12)
    assert [topic.name for topic in every.topics] == ["payments"]
    paged = client.ask(DescribeTopicPartitionsRequest(response_partition_limit=10), 0)
    assert [topic.name for topic in paged.topics] == ["payments"]


def test_a_topic_is_created_by_asking_for_it_if_that_is_allowed(client: WireClient) -> None:
    allow(client, Operation.DESCRIBE)
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True
    )
    assert error_codes(client.ask(asked, 12)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
    allow(client, Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
    assert error_codes(client.ask(asked, 12)) == ()


def test_whoever_may_not_describe_a_topic_does_not_learn_its_name(client: WireClient) -> None:
    topic_id = client.broker.image.topics["orders"].topic_id
    asked = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    [refused] = client.ask(asked, 6).responses
    assert (refused.error_code, refused.name) == (DENIED, None)
    allow(client, Operation.DESCRIBE)
    [refused] = client.ask(asked, 6).responses
    assert (refused.error_code, refused.name) == (DENIED, "orders")


def test_settings_of_the_broker_belong_to_the_cluster(client: WireClient) -> None:
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=None
    )
    asked = DescribeConfigsRequest(resources=[resource])
    allow(client, Operation.DESCRIBE_CONFIGS)
    denied = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED,)
    assert error_codes(client.ask(asked, 4)) == denied
    allow(client, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "kafka-cluster")
    assert error_codes(client.ask(asked, 4)) == ()


def test_a_transactional_write_needs_the_name_of_its_transaction(client: WireClient) -> None:
    allow(client, Operation.WRITE)
    request = produce()
    request.transactional_id = "t"
    assert error_codes(client.ask(request, 9)) == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,)


def operations(answer: Any) -> set[int]:
    bits = answer.cluster_authorized_operations
    return {operation for operation in range(32) if bits >> operation & 1}


def test_authorized_operations_are_told_to_those_who_ask(client: WireClient) -> None:
    allow(client, Operation.READ)
    request = metadata()
    [topic] = client.ask(request, 12).topics
    assert topic.topic_authorized_operations == NOT_ASKED
    request.include_topic_authorized_operations = True
    [topic] = client.ask(request, 12).topics
    assert topic.topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert operations(client.ask(cluster, 1)) == set()
    allow(client, Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
    both = {Operation.ALTER, Operation.DESCRIBE}
    assert operations(client.ask(cluster, 1)) == both
    request.include_topic_authorized_operations = False
    request.include_cluster_authorized_operations = True
    assert operations(client.ask(request, 10)) == both
    nothing = client.ask(DescribeClusterRequest(), 1)
    assert nothing.cluster_authorized_operations == NOT_ASKED


GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED

GROUP_CASES = [
    (JoinGroupRequest(group_id="g", session_timeout_ms=10_000), 5, Operation.READ),
    (SyncGroupRequest(group_id="g"), 3, Operation.READ),
    (HeartbeatRequest(group_id="g"), 3, Operation.READ),
    (LeaveGroupRequest(group_id="g"), 3, Operation.READ),
    (
        OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(name="orders", partitions=[OffsetCommitRequestPartition()])
            ],
        ),
        7,
        Operation.READ,
    ),
    (OffsetFetchRequest(group_id="g", topics=[]), 7, Operation.DESCRIBE),
    (DescribeGroupsRequest(groups=["g"]), 5, Operation.DESCRIBE),
    (DeleteGroupsRequest(groups_names=["g"]), 2, Operation.DELETE),
    (OffsetDeleteRequest(group_id="g"), 0, Operation.DELETE),
    (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), 1, Operation.READ),
    (ConsumerGroupDescribeRequest(group_ids=["g"]), 1, Operation.DESCRIBE),
    (FindCoordinatorRequest(key="g"), 3, Operation.DESCRIBE),
]


@pytest.mark.parametrize(
    ("request_", "version", "operation"),
    GROUP_CASES,
    ids=[type(request).__name__ for request, _, _ in GROUP_CASES],
)
def test_each_api_of_groups_needs_its_permission_on_the_group_and_no_other(
    client: WireClient, request_: Message, version: int, operation: int
) -> None:
    for other in {Operation.READ, Operation.DELETE, Operation.DESCRIBE} - {operation}:
        if operation != Operation.DESCRIBE:
            allow(client, other, ResourceType.GROUP, "g")
    allow(client, Operation.READ, ResourceType.TOPIC, "orders")
    assert GROUP in error_codes(client.ask(request_, version))
    allow(client, operation, ResourceType.GROUP, "g")
    answer = client.send(request_, version)
    assert not answer.is_answered or GROUP not in error_codes(answer.answer())


def test_an_offset_is_committed_for_topics_that_may_be_read_alone(client: WireClient) -> None:
    client.broker.topics.create("payments", 1, {}, NOW_MS)
    allow(client, Operation.READ, ResourceType.GROUP, "g")
    allow(client, Operation.READ, name="payments")
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition()])
        for name in ("orders", "payments")
    ]
    answer = client.ask(OffsetCommitRequest(group_id="g", topics=topics), 7)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [DENIED, ErrorCode.NONE]


def test_groups_are_listed_and_described_as_far_as_that_is_allowed(client: WireClient) -> None:
    allow(client, Operation.READ)
    for group in ("g", "h"):
        allow(client, Operation.READ, ResourceType.GROUP, group)
        topic = OffsetCommitRequestTopic(name="orders", partitions=[OffsetCommitRequestPartition()])
        client.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 7)
    deny = Permission.DENY
    allow(client, Operation.DESCRIBE, ResourceType.GROUP, "h", permission=deny)
    listed = client.ask(ListGroupsRequest(), 4)
    assert [group.group_id for group in listed.groups] == ["g"]
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    [described] = client.ask(request, 5).groups
    assert described.authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
