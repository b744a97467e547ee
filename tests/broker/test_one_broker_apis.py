"""APIs about several brokers, directories and features, as a cluster of one broker answers them."""

from typing import Any

import ottla
import pytest
from ottla.broker.broker import error_codes
from ottla.broker.faults import Fault, Names
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.protocol.wire import Message
from support.coordinator_calls import Said, call
from support.wire_client import WireClient, new_broker


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 2, {}, client.now_ms)
    return client


def metadata_quorum() -> DescribeQuorumRequest:
    partition = PartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    )


def reassigned(replicas: list[int] | None, topic: str = "orders", index: int = 0) -> Message:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )


def moved(path: str, *partitions: tuple[str, int]) -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=[at]) for name, at in partitions]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


def elected(*partitions: tuple[str, int], **fields: Any) -> ElectLeadersRequest:
    asked = [TopicPartitions(topic=name, partitions=[index]) for name, index in partitions]
    return ElectLeadersRequest(topic_partitions=asked, **fields)


NEEDS = [
    (DescribeLogDirsRequest(topics=None), range(3, 6)),
    (moved("memory", ("orders", 0)), range(1, 3)),
    (elected(("orders", 0)), range(3)),
    (reassigned([1]), range(2)),
    (ListPartitionReassignmentsRequest(), range(1)),
    (metadata_quorum(), range(3)),
    (UpdateFeaturesRequest(), range(3)),
    (ListConfigResourcesRequest(), range(2)),
]


@pytest.mark.parametrize(("request_", "versions"), NEEDS, ids=lambda each: type(each).__name__)
def test_whoever_may_do_nothing_to_the_cluster_is_refused(
    request_: Message, versions: range
) -> None:
    config = {
        "authorizer.class.name": "StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
    }
    client = WireClient(new_broker(config))
    for version in versions:
        answer = client.ask(request_, version)
        assert error_codes(answer) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED,), version


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs_have_the_sizes_of_their_logs(client: WireClient, version: int) -> None:
    partition = client.broker.image.partition("orders", 0)
    assert partition is not None
    batch = ottla.build_batch([ottla.NewRecord(value=b"v" * 1000)])
    client.broker.plane.append(partition.handle, batch, now_ms=client.now_ms)
    [everything] = client.ask(DescribeLogDirsRequest(topics=None), version).results
    assert everything.log_dir == "memory"
    sizes = {
        (topic.name, each.partition_index): each.partition_size
        for topic in everything.topics
        for each in topic.partitions
    }
    assert sizes.keys() == {("orders", 0), ("orders", 1)}
    assert sizes["orders", 0] == client.broker.plane.stored_bytes > 1000
    assert sizes["orders", 1] == 0
    asked = [
        DescribableLogDirTopic(topic="orders", partitions=[1, 1, 7]),
        DescribableLogDirTopic(topic="nowhere", partitions=[0]),
    ]
    [some] = client.ask(DescribeLogDirsRequest(topics=asked), version).results
    assert [(each.name, len(each.partitions)) for each in some.topics] == [("orders", 1)]


@pytest.mark.parametrize("version", [1, 2])
def test_logs_stay_in_their_directory(client: WireClient, version: int) -> None:
    def errors(path: str) -> list[int]:
        request = moved(path, ("orders", 0), ("orders", 7), ("nowhere", 0))
        answer = client.ask(request, version)
        return [each.error_code for topic in answer.results for each in topic.partitions]

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors("memory") == [0, unknown, unknown]
    assert errors("/elsewhere") == [ErrorCode.LOG_DIR_NOT_FOUND] * 3


@pytest.mark.parametrize("version", range(3))
def test_no_election_is_needed(client: WireClient, version: int) -> None:
    request = elected(("orders", 0), ("orders", 7), ("nowhere", 0))
    results = client.ask(request, version).replica_election_results
    assert [(each.topic, each.partition_result[0].error_code) for each in results] == [
        ("orders", ErrorCode.ELECTION_NOT_NEEDED),
        ("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    of_all = client.ask(ElectLeadersRequest(topic_partitions=None), version)
    assert (error_codes(of_all), of_all.replica_election_results) == ((), [])


def test_an_election_is_of_a_known_kind(client: WireClient) -> None:
    unclean = client.ask(elected(("orders", 0), election_type=1), 1)
    assert error_codes(unclean) == (ErrorCode.ELECTION_NOT_NEEDED,)
    unknown = client.ask(elected(("orders", 0), election_type=2), 1)
    assert unknown.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
def test_replicas_can_be_on_the_one_broker_alone(client: WireClient, version: int) -> None:
    def outcome(request: Message) -> tuple[int, str | None]:
        answer = client.ask(request, version)
        assert answer.error_code == 0
        [partition] = answer.responses[0].partitions
        return partition.error_code, partition.error_message

    assert outcome(reassigned([1])) == (0, None)
    assert outcome(reassigned(None))[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert outcome(reassigned([1], "nowhere"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(reassigned([1], index=7))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    includes = "The manual partition assignment includes"
    assert outcome(reassigned([])) == (invalid, f"{includes} an empty replica list.")
    assert outcome(reassigned([1, 1])) == (invalid, f"{includes} the broker 1 more than once.")
    assert outcome(reassigned([1, 2])) == (
        invalid,
        f"{includes} broker 2, but no such broker is registered.",
    )


def test_no_reassignment_is_under_way(client: WireClient) -> None:
    client.ask(reassigned([1]), 1)
    named = [ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0])]
    for topics in (None, named):
        answer = client.ask(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (answer.error_code, answer.topics) == (0, [])


@pytest.mark.parametrize("version", range(3))
def test_the_broker_is_the_one_voter(client: WireClient, version: int) -> None:
    answer = client.ask(metadata_quorum(), version)
    [partition] = answer.topics[0].partitions
    assert (answer.error_code, partition.error_code, partition.leader_id) == (0, 0, 1)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert partition.observers == []
    if version >= 2:
        [node] = answer.nodes
        [listener] = node.listeners
        assert (node.node_id, listener.host, listener.port) == (1, "127.0.0.1", 9092)


def test_there_is_a_quorum_of_the_metadata_alone(client: WireClient) -> None:
    partition = PartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[TopicData(topic_name="orders", partitions=[partition])])
    answer = client.ask(request, 2)
    assert answer.error_code == 0
    assert error_codes(answer) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)


def update(feature: str, level: int, **fields: Any) -> UpdateFeaturesRequest:
    key = FeatureUpdateKey(feature=feature, max_version_level=level, **fields)
    return UpdateFeaturesRequest(feature_updates=[key])


def levels(client: WireClient) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    answer = client.ask(request, 4)
    return {each.name: each.max_version_level for each in answer.finalized_features}


def test_levels_of_features_are_lowered_and_raised(client: WireClient) -> None:
    assert levels(client) == {"group.version": 1, "transaction.version": 2}
    assert client.ask(update("group.version", 0, upgrade_type=2), 1).error_code == 0
    assert levels(client) == {"transaction.version": 2}
    me = Said(client.broker.image.topics["orders"].topic_id)
    for name in ("consumer_group_heartbeat", "consumer_group_describe"):
        assert call(client, name, 1, me) == ErrorCode.UNSUPPORTED_VERSION
    answer = client.ask(update("group.version", 1), 1)
    assert [(each.feature, each.error_code) for each in answer.results] == [("group.version", 0)]
    assert call(client, "consumer_group_heartbeat", 1, me) == 0
    assert client.ask(update("transaction.version", 0, allow_downgrade=True), 0).error_code == 0
    assert levels(client) == {"group.version": 1}
    assert client.broker.transactions.settings.transaction_version == 0


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (update("group.version", 0), "Can't downgrade the version of this feature"),
        (update("group.version", 2), "only supports versions 0-1"),
        (update("group.version", -1), "cannot be less than 0"),
        (update("group.version", 1, upgrade_type=7), "does not support the given upgrade type"),
        (update("share.version", 1), "does not support this feature"),
    ],
)
def test_a_feature_keeps_its_level(
    client: WireClient, request_: UpdateFeaturesRequest, why: str
) -> None:
    before = levels(client)
    lowered = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    request_ = UpdateFeaturesRequest(feature_updates=[lowered, *request_.feature_updates])
    answer = client.ask(request_, 2)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert why in (answer.error_message or "")
    assert levels(client) == before


def test_a_change_of_features_can_be_tried(client: WireClient) -> None:
    request = update("group.version", 0, upgrade_type=2)
    request.validate_only = True
    assert client.ask(request, 1).error_code == 0
    assert levels(client)["group.version"] == 1


def listed(client: WireClient, version: int, *types: int) -> list[tuple[int, str]]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=[*types]), version)
    assert answer.error_code == 0
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_resources_with_settings_are_listed(client: WireClient) -> None:
    assert sorted(listed(client, 1)) == [(2, "orders"), (4, "1"), (8, "1")]
    assert listed(client, 1, 2) == [(2, "orders")]
    assert listed(client, 1, 16) == []
    # Version 0 asks for subscriptions to metrics.
    assert client.ask(ListConfigResourcesRequest(), 0).config_resources == []
    unknown = client.ask(ListConfigResourcesRequest(resource_types=[2, 3]), 1)
    assert (unknown.error_code, unknown.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_transactions_are_listed_by_a_pattern(client: WireClient) -> None:
    names = ["pay-1", "pay-22", "orders/1", "zahlung-ü"]
    for name in names:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
        assert client.ask(request, 4).error_code == 0

    def found(pattern: str | None) -> list[str]:
        answer = client.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert answer.error_code == 0
        return [each.transactional_id for each in answer.transaction_states]

    assert found(None) == found("") == found(".*") == names
    assert found("pay-.") == ["pay-1"]
    assert found("pay.*") == ["pay-1", "pay-22"]
    assert found("[^/]*") == ["pay-1", "pay-22", "zahlung-ü"]
    assert found(r"\w+/\d|.*ü") == ["orders/1", "zahlung-ü"]
    assert found("1") == []
    answer = client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (moved("memory", ("orders", 0), ("orders", 1)), 2),
        (elected(("orders", 0), ("orders", 1)), 2),
        (reassigned([1], index=1), 1),
        (DescribeLogDirsRequest(topics=None), 4),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_fault_of_a_partition_is_its_error(
    client: WireClient, request_: Message, version: int
) -> None:
    error = ErrorCode.KAFKA_STORAGE_ERROR
    fault = client.broker.faults.add(Fault(None, error=error, names=Names("orders", 1)))
    assert error in error_codes(client.ask(request_, version))
    assert fault.hits == 1
