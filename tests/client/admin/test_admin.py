"""The admin clients against a broker, with and without an event loop."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.client.admin.configs import (
    ConfigChange,
    ConfigChangeKind,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import (
    IllegalStateError,
    InvalidConfigurationError,
    KafkaTimeoutError,
)
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.net.client.admin import Admin, AsyncAdmin
from ottla.net.client.async_producer import AsyncProducer
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as one:
        yield one


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    admin.create_topics([NewTopic(name, 2, configs={"retention.ms": "5000"})]).check()
    return name


def test_topics_are_created_described_grown_and_deleted(admin: Admin) -> None:
    created = admin.create_topics([NewTopic("made", 2), "made-by-name"]).check()
    assert created["made"].partition_count == 2
    assert created["made"].topic_id in {one.topic_id for one in admin.list_topics().values()}
    assert admin.create_partitions({"made": 4}).errors == {}
    described = admin.describe_topics(["made"])["made"]
    assert [one.partition for one in described.partitions] == [0, 1, 2, 3]
    assert described.partitions[0].in_sync_replicas == (1,)
    assert admin.delete_topics(["made", "made-by-name", "nope"]).errors.keys() == {"nope"}
    assert "made" not in admin.list_topics()


def test_what_is_validated_alone_is_not_done(admin: Admin, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert admin.create_topics(["validated"], validate_only=True).errors == {}
    assert admin.create_partitions({topic: 5}, validate_only=True).errors == {}
    assert admin.alter_configs({resource: {"retention.ms": "7"}}, validate_only=True).errors == {}
    assert "validated" not in admin.list_topics()
    assert len(admin.describe_topics([topic])[topic].partitions) == 2
    entries = admin.describe_configs([resource])[resource].entries
    assert entries["retention.ms"].value == "5000"


def test_configurations_are_changed_option_by_option(admin: Admin, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    changes = [
        ConfigChange("cleanup.policy", "compact", ConfigChangeKind.APPEND),
        ConfigChange("retention.ms"),
    ]
    admin.alter_configs({resource: changes}).check()
    described = admin.describe_configs([resource], include_documentation=True).check()[resource]
    assert described.entries["cleanup.policy"].value == "delete,compact"
    assert described.entries["cleanup.policy"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert described.entries["retention.ms"].source is ConfigSource.DEFAULT_CONFIG
    assert described.entries["retention.ms"].documentation


def test_a_broker_tells_its_own_configuration(admin: Admin) -> None:
    here, gone = (ConfigResource(ResourceType.BROKER, number) for number in ("1", "77"))
    described = admin.describe_configs([here, gone], timeout_ms=20_000)
    assert described[here].entries["broker.id"].is_read_only
    assert "the cluster has no broker 77" in str(described[gone].error)


def test_offsets_of_a_group_are_set_listed_and_deleted(admin: Admin, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    given = OffsetAndMetadata(7, "by hand")
    admin.alter_group_offsets(topic, {first: 5, second: given}).check()
    assert topic in {one.group_id for one in admin.list_groups(states=["Empty"])}
    assert admin.describe_groups([topic])[topic].state == "Empty"
    offsets = admin.list_group_offsets(topic)
    assert [offsets[one].committed for one in (first, second)] == [OffsetAndMetadata(5), given]
    admin.delete_group_offsets(topic, [first]).check()
    assert admin.list_group_offsets(topic, [first])[first].committed is None
    admin.delete_groups([topic]).check()
    assert topic not in {one.group_id for one in admin.list_groups()}


def test_offsets_of_a_log_are_listed_and_its_records_deleted(
    admin: Admin, broker: Broker, topic: str
) -> None:
    for value in (b"1", b"2", b"3"):
        broker.produce(topic, value, partition=0)
    partition = TopicPartition(topic, 0)
    assert admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset == 3
    assert admin.delete_records({partition: 2})[partition].low_watermark == 2
    assert admin.list_offsets({partition: OffsetSpec.EARLIEST})[partition].offset == 2
    assert admin.list_offsets({partition: 0}, read_committed=True)[partition].timestamp > 0


def test_a_transaction_that_hangs_is_found_and_aborted() -> None:
    async def main(broker: Broker) -> None:
        servers = broker.bootstrap_servers
        partition = TopicPartition("orders", 0)
        async with (
            AsyncProducer(bootstrap_servers=servers, transactional_id="hangs") as producer,
            AsyncAdmin(bootstrap_servers=servers) as admin,
        ):
            await producer.init_transactions()
            await producer.begin_transaction()
            await (await producer.send("orders", b"1"))
            (listed,) = await admin.list_transactions(states=["Ongoing"])
            described = (await admin.describe_transactions(["hangs"])).check()["hangs"]
            assert described.partitions == (partition,)
            producers = (await admin.describe_producers([partition])).check()[partition].producers
            assert [one.current_txn_start_offset for one in producers] == [0]
            assert producers[0].producer_id == listed.producer_id
            await admin.abort_transaction(partition, producers[0])
            producers = (await admin.describe_producers([partition]))[partition].producers
            assert [one.current_txn_start_offset for one in producers] == [-1]
            fenced = (await admin.fence_producers(["hangs"])).check()["hangs"]
            assert fenced.producer_epoch > described.producer_epoch

    with Broker(topics={"orders": 1}) as broker:
        asyncio.run(main(broker))


def test_the_cluster_tells_its_brokers_and_features(admin: Admin) -> None:
    cluster = admin.describe_cluster()
    assert [node.node_id for node in cluster.nodes] == [1]
    assert cluster.controller_id == 1
    assert admin.describe_features().features["transaction.version"].level == 2


def test_every_call_is_there_on_asyncio_too() -> None:
    calls = {name for name in vars(Admin) if not name.startswith("_")}
    assert {name for name in vars(AsyncAdmin) if not name.startswith("_")} == calls


def test_calls_of_asyncio_run_beside_each_other(broker: Broker) -> None:
    async def main() -> Any:
        config = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "beside"}
        async with AsyncAdmin.from_config(config) as admin:
            return await asyncio.gather(
                admin.create_topics([NewTopic("beside-1")]),
                admin.describe_cluster(),
                admin.list_groups(),
                admin.list_transactions(),
                admin.describe_features(),
            )

    created, cluster, *_ = asyncio.run(main())
    assert created.errors == {}
    assert cluster.nodes


def test_a_call_after_the_end_is_a_fault_of_the_program(broker: Broker) -> None:
    admin = Admin(bootstrap_servers=broker.bootstrap_servers)
    admin.close()
    admin.close()
    with pytest.raises(IllegalStateError, match="closed"):
        admin.list_topics()


def test_without_a_broker_a_call_ends_in_time_and_says_why() -> None:
    with (
        Admin(bootstrap_servers="127.0.0.1:1") as admin,
        pytest.raises(
            KafkaTimeoutError, match=r"list_topics took longer than 300 ms: .*127.0.0.1:1"
        ),
    ):
        admin.list_topics(timeout_ms=300)


def test_an_option_of_another_client_is_refused() -> None:
    with pytest.raises(InvalidConfigurationError, match="linger_ms is no option of this client"):
        Admin(bootstrap_servers="a:1", linger_ms=5)
