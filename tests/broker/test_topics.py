"""Topics over the wire: created, described, grown, configured and deleted as by Kafka."""

import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig as Change,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as ChangedResource,
)
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.records import NewRecord, build_batch
from support.wire_client import CLUSTER_ID, WireClient, new_broker

TOPIC, BROKER = 2, 4


@pytest.fixture
def client() -> WireClient:
    return WireClient(new_broker())


def create(client: WireClient, *topics: CreatableTopic, version: int = 7) -> dict[str, int]:
    answer = client.ask(CreateTopicsRequest(topics=list(topics)), version)
    return {topic.name: topic.error_code for topic in answer.topics}


def topic(name: str, partitions: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def asked(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_metadata_tells_of_it(client: WireClient, version: int) -> None:
    assert create(client, topic("orders", 3), version=version) == {"orders": 0}
    for metadata_version in range(14):
        answer = client.ask(MetadataRequest(topics=asked("orders")), metadata_version)
        (found,) = answer.topics
        assert [p.partition_index for p in found.partitions] == [0, 1, 2]
        assert {p.leader_id for p in found.partitions} == {1}
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", 9092)]
        assert answer.cluster_id == (CLUSTER_ID if metadata_version >= 2 else None)


def test_what_was_created_is_told_with_its_settings(client: WireClient) -> None:
    request = CreateTopicsRequest(topics=[topic("orders", -1, cleanup_policy="compact")])
    (made,) = client.ask(request, 7).topics
    assert (made.num_partitions, made.replication_factor) == (1, 1)
    assert made.topic_id == client.broker.image.topics["orders"].topic_id
    settings = {config.name: (config.value, config.config_source) for config in made.configs}
    assert settings["cleanup.policy"] == ("compact", 1)
    assert settings["retention.ms"] == ("604800000", 5)


@pytest.mark.parametrize(
    ("asked_for", "error"),
    [
        (topic("orders"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 249), ErrorCode.NONE),
        (topic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),  # a.b is there
        (topic("new", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("new", 10_001), ErrorCode.INVALID_PARTITIONS),
        (topic("new", cleanup_policy="shred"), ErrorCode.INVALID_CONFIG),
        (topic("new", no_such="1"), ErrorCode.INVALID_CONFIG),
        (topic("new", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (
            topic("new", min_compaction_lag_ms="2", max_compaction_lag_ms="1"),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            CreatableTopic(name="new", num_partitions=1, replication_factor=2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
        (
            CreatableTopic(name="new", num_partitions=1, replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
        (
            CreatableTopic(
                name="new",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[9])],
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            CreatableTopic(
                name="new",
                num_partitions=1,
                replication_factor=1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
            ),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_kafka_does_not_create_is_refused_with_its_code(
    client: WireClient, asked_for: CreatableTopic, error: int
) -> None:
    create(client, topic("orders"), topic("a.b"))
    before = set(client.broker.image.topics)
    assert create(client, asked_for) == {asked_for.name: error}
    after = set(client.broker.image.topics)
    assert after - before == ({asked_for.name} if error == ErrorCode.NONE else set())


def test_a_name_that_is_twice_in_a_request_is_created_not_at_all(client: WireClient) -> None:
    assert create(client, topic("a"), topic("b"), topic("a", 2)) == {
        "a": ErrorCode.INVALID_REQUEST,
        "b": 0,
    }
    assert set(client.broker.image.topics) == {"b"}


def test_a_request_adds_no_more_partitions_than_kafkas_controller_does_at_once(
    client: WireClient,
) -> None:
    topics = [topic("a", 6_000), topic("b", 4_001)]
    assert create(client, *topics) == dict.fromkeys("ab", ErrorCode.POLICY_VIOLATION)
    assert not client.broker.image.topics
    assert create(client, topic("a"), topic("b")) == {"a": 0, "b": 0}
    grown = [
        CreatePartitionsTopic(name="a", count=6_000),
        CreatePartitionsTopic(name="b", count=4_003),
    ]
    answer = client.ask(CreatePartitionsRequest(topics=grown, timeout_ms=1000), 3)
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert [len(each.partitions) for each in client.broker.image.topics.values()] == [1, 1]


def test_metadata_creates_as_many_topics_at_once_and_others_when_they_are_asked_for_again() -> None:
    client = WireClient(new_broker({"num.partitions": "4000"}))
    request = MetadataRequest(topics=asked("a", "b", "c"), allow_auto_topic_creation=True)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in client.ask(request, 9).topics] == [0, 0, missing]
    assert [each.error_code for each in client.ask(request, 9).topics] == [0, 0, 0]


def test_what_is_only_validated_is_not_created(client: WireClient) -> None:
    request = CreateTopicsRequest(topics=[topic("orders", 2)], validate_only=True)
    (made,) = client.ask(request, 7).topics
    assert (made.error_code, made.num_partitions) == (0, 2)
    assert not client.broker.image.topics


def test_metadata_creates_what_is_asked_for_only_where_client_and_broker_allow_it() -> None:
    client = WireClient(new_broker({"num.partitions": "2"}))
    request = MetadataRequest(topics=asked("a"), allow_auto_topic_creation=False)
    (found,) = client.ask(request, 9).topics
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # Before version 4 the client cannot say, which means yes.
    (found,) = client.ask(MetadataRequest(topics=asked("a")), 1).topics
    assert (found.error_code, len(found.partitions)) == (0, 2)
    strict = WireClient(new_broker({"auto.create.topics.enable": "false"}))
    (found,) = strict.ask(MetadataRequest(topics=asked("a")), 9).topics
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (found,) = client.ask(MetadataRequest(topics=asked("no good")), 9).topics
    assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_all_topics_are_null_and_in_version_0_an_empty_list(client: WireClient) -> None:
    create(client, topic("b"), topic("a"))
    for version, topics, expected in (
        (0, [], ["a", "b"]),
        (1, [], []),
        (1, None, ["a", "b"]),
        (13, None, ["a", "b"]),
    ):
        answer = client.ask(MetadataRequest(topics=topics), version)
        assert [found.name for found in answer.topics] == expected


def test_topics_are_found_and_deleted_by_id(client: WireClient) -> None:
    create(client, topic("orders"))
    topic_id = client.broker.image.topics["orders"].topic_id
    by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    assert client.ask(by_id, 12).topics[0].name == "orders"
    unknown = DeleteTopicState(name=None, topic_id=bytes(15) + b"\7")
    known = DeleteTopicState(name=None, topic_id=topic_id)
    answer = client.ask(DeleteTopicsRequest(topics=[unknown, known]), 6)
    assert [found.error_code for found in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_ID, 0]
    assert client.ask(by_id, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_deleted_topic_that_is_created_again_has_another_id(client: WireClient) -> None:
    create(client, topic("orders"))
    first = client.broker.image.topics["orders"].topic_id
    for version, expected in ((1, 0), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        answer = client.ask(DeleteTopicsRequest(topic_names=["orders"]), version)
        assert answer.responses[0].error_code == expected
    create(client, topic("orders"))
    assert client.broker.image.topics["orders"].topic_id != first


def test_topics_grow_and_never_shrink(client: WireClient) -> None:
    create(client, topic("orders", 2))
    for count, expected in (
        (1, ErrorCode.INVALID_PARTITIONS),
        (2, ErrorCode.INVALID_PARTITIONS),
        (5, 0),
    ):
        wanted = CreatePartitionsTopic(name="orders", count=count, assignments=None)
        answer = client.ask(CreatePartitionsRequest(topics=[wanted]), 3)
        assert answer.results[0].error_code == expected
    assert len(client.broker.image.topics["orders"].partitions) == 5


def described(client: WireClient, kind: int, name: str, version: int = 4) -> dict[str, object]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        ]
    )
    (result,) = client.ask(request, version).results
    return {each.name: (each.value, each.config_source) for each in result.configs}


def change(client: WireClient, name: str, *changes: tuple[str, int, str | None]) -> int:
    request = IncrementalAlterConfigsRequest(
        resources=[
            ChangedResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[
                    Change(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
        ]
    )
    return int(client.ask(request, 1).responses[0].error_code)


def test_settings_are_set_deleted_added_to_and_taken_from(client: WireClient) -> None:
    create(client, topic("orders", retention_ms="5000"))
    set_, delete, append, subtract = range(4)
    assert change(client, "orders", ("cleanup.policy", append, "compact")) == 0
    assert described(client, TOPIC, "orders")["cleanup.policy"] == ("delete,compact", 1)
    assert change(client, "orders", ("cleanup.policy", subtract, "delete")) == 0
    assert change(client, "orders", ("max.message.bytes", set_, "100")) == 0
    assert change(client, "orders", ("retention.ms", delete, None)) == 0
    settings = described(client, TOPIC, "orders")
    assert settings["cleanup.policy"] == ("compact", 1)
    assert settings["max.message.bytes"] == ("100", 1)
    assert settings["retention.ms"] == ("604800000", 5)
    assert change(client, "orders", ("retention.ms", append, "1")) == ErrorCode.INVALID_CONFIG
    assert change(client, "orders", ("no.such", set_, "1")) == ErrorCode.INVALID_CONFIG
    assert change(client, "orders", ("retention.ms", 7, "1")) == ErrorCode.INVALID_REQUEST
    assert change(client, "none", ("retention.ms", set_, "1")) == 3


def test_alter_configs_replaces_all_settings(client: WireClient) -> None:
    create(client, topic("orders", retention_ms="5000"))
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=TOPIC,
                resource_name="orders",
                configs=[AlterableConfig(name="segment.ms", value="9")],
            )
        ]
    )
    assert client.ask(request, 2).responses[0].error_code == 0
    assert client.broker.image.topics["orders"].configs == {"segment.ms": "9"}


def test_the_brokers_settings_are_the_defaults_of_topics(client: WireClient) -> None:
    create(client, topic("orders"))
    request = IncrementalAlterConfigsRequest(
        resources=[
            ChangedResource(
                resource_type=BROKER,
                resource_name="1",
                configs=[Change(name="log.retention.ms", config_operation=0, value="77")],
            )
        ]
    )
    assert client.ask(request, 1).responses[0].error_code == 0
    assert described(client, BROKER, "1")["log.retention.ms"] == ("77", 2)
    assert described(client, TOPIC, "orders")["retention.ms"] == ("77", 2)


def test_no_more_replicas_are_waited_for_than_there_are(client: WireClient) -> None:
    """What Kafka 3.9 and 4.4 do on one broker, with records, markers and coordinators alike."""
    create(client, topic("orders", min_insync_replicas="2"))
    assert described(client, TOPIC, "orders")["min.insync.replicas"] == ("2", 1)
    batch = build_batch([NewRecord(b"v", timestamp=client.now_ms)])
    data = PartitionProduceData(index=0, records=batch)
    topics = [TopicProduceData(name="orders", partition_data=[data])]
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_topics_are_described_page_by_page(client: WireClient) -> None:
    create(client, topic("a", 3), topic("b", 2), topic("c", 1))
    pages = []
    cursor = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in ("c", "a", "b")],
            response_partition_limit=2,
            cursor=cursor,
        )
        answer = client.ask(request, 0)
        pages.append([(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics])
        cursor = answer.next_cursor
        if cursor is None:
            break
        assert isinstance(cursor, Cursor)
    assert pages == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1]), ("c", [0])]]
