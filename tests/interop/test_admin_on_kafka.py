"""The admin client asks Apache Kafka itself. Needs Java and Maven."""

import asyncio
import time
from pathlib import Path

import pytest
from ottla.client import (
    Admin,
    AsyncAdmin,
    AsyncProducer,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from ottla.client.admin.transactions import ProducerState
from support.kafka_interop import RELEASES, kafka_on

pytestmark = pytest.mark.slow

ORDERS = TopicPartition("orders", 0)
WITHIN_S = 30


def wait_until_gone(admin: Admin, topic: str) -> None:
    """The controller deletes a topic, and the brokers that describe it hear of that later."""
    deadline = time.monotonic() + WITHIN_S
    while not isinstance(
        error := admin.describe_topics([topic])[topic].error, UnknownTopicOrPartitionError
    ):
        assert time.monotonic() < deadline, error
        time.sleep(0.05)


def wait_until_set(admin: Admin, resource: ConfigResource, name: str, value: str) -> None:
    """The controller takes a configuration, and brokers that describe it hear of that later."""
    deadline = time.monotonic() + WITHIN_S
    while (
        found := admin.describe_configs([resource]).check()[resource].entries[name].value
    ) != value:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def look_after_topics(admin: Admin) -> None:
    created = admin.create_topics([NewTopic("orders", 2), NewTopic("gone", 1)]).check()
    assert created["orders"].partition_count in {2, -1}
    assert set(admin.create_topics(["orders"]).errors) == {"orders"}
    admin.create_partitions({"orders": 3}).check()
    admin.delete_topics(["gone"]).check()
    wait_until_gone(admin, "gone")
    assert len(admin.describe_topics(["orders"]).check()["orders"].partitions) == 3
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    admin.alter_configs({resource: {"retention.ms": "86400000"}}).check()
    wait_until_set(admin, resource, "retention.ms", "86400000")
    broker = ConfigResource(ResourceType.BROKER, "1")
    assert admin.describe_configs([broker]).check()[broker].entries


def look_after_offsets(admin: Admin) -> None:
    admin.alter_group_offsets("billing", {ORDERS: 1, ("orders", 1): 0}).check()
    committed = admin.list_group_offsets("billing").check()
    assert {
        one.partition: one.committed and one.committed.offset for one in committed.values()
    } == {
        ORDERS: 1,
        TopicPartition("orders", 1): 0,
    }
    assert "billing" in {one.group_id for one in admin.list_groups()}
    assert admin.describe_groups(["billing"]).check()["billing"].state == "Empty"
    admin.delete_group_offsets("billing", [("orders", 1)]).check()
    admin.delete_groups(["billing"]).check()
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST}).check()[ORDERS].offset > 0
    assert admin.delete_records({ORDERS: 1}).check()[ORDERS].low_watermark == 1
    assert admin.list_offsets({ORDERS: OffsetSpec.EARLIEST}).check()[ORDERS].offset == 1
    cluster = admin.describe_cluster()
    assert [node.node_id for node in cluster.nodes] == [1]


async def state_of(admin: AsyncAdmin, producer_id: int) -> ProducerState:
    producers = (await admin.describe_producers([ORDERS])).check()[ORDERS].producers
    (state,) = [one for one in producers if one.producer_id == producer_id]
    return state


async def look_after_transactions(servers: str) -> None:
    async with (
        AsyncProducer(bootstrap_servers=servers, transactional_id="hangs") as producer,
        AsyncAdmin(bootstrap_servers=servers) as admin,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        written = await (await producer.send("orders", b"1", partition=0))
        listed = await admin.list_transactions(states=["Ongoing"])
        assert [one.transactional_id for one in listed] == ["hangs"]
        described = (await admin.describe_transactions(["hangs"])).check()["hangs"]
        assert described.partitions == (ORDERS,)
        state = await state_of(admin, described.producer_id)
        assert state.current_txn_start_offset == written.offset
        await admin.abort_transaction(ORDERS, state)
        state = await state_of(admin, described.producer_id)
        assert state.current_txn_start_offset == -1
        assert (await admin.fence_producers(["hangs"])).errors == {}
        features = (await admin.describe_features()).features
        assert "metadata.version" in features


async def write(servers: str) -> None:
    async with AsyncProducer(bootstrap_servers=servers) as producer:
        for value in (b"1", b"2"):
            await (await producer.send("orders", value, partition=0))


@pytest.mark.parametrize("version", RELEASES)
def test_every_call_of_the_admin_client_does_what_it_says_on_kafka(
    version: str, tmp_path: Path
) -> None:
    with kafka_on(tmp_path, version, is_formatted=False) as servers:
        with Admin(bootstrap_servers=servers) as admin:
            look_after_topics(admin)
            asyncio.run(write(servers))
            look_after_offsets(admin)
        asyncio.run(look_after_transactions(servers))
