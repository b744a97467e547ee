"""aiokafka: a client that asks for old versions, and does not say what it is."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from ottla.testing import Broker

PATIENCE_S = 60


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_it_sends_it_receives(codec: str | None) -> None:
    async def work() -> None:
        async with (
            Broker(topics={"orders": 2}) as broker,
            aiokafka.AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, compression_type=codec
            ) as producer,
            aiokafka.AIOKafkaConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="team",
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            for n in range(10):
                sent = await producer.send_and_wait("orders", b"v%d" % n * 50, partition=0)
                assert sent.offset == n
            values = [(await consumer.getone()).value for _ in range(10)]
            assert values == [b"v%d" % n * 50 for n in range(10)]
            assert {entry.software_name for entry in broker.requests} == {"unknown"}

    run(work())


def test_a_transaction_is_committed_or_not_there() -> None:
    async def work() -> None:
        async with (
            Broker(topics=["orders"]) as broker,
            aiokafka.AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, transactional_id="t"
            ) as producer,
            aiokafka.AIOKafkaConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            ) as consumer,
        ):
            async with producer.transaction():
                await producer.send_and_wait("orders", b"kept")
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"dropped")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait("orders", b"kept, too")
            values = [(await consumer.getone()).value for _ in range(2)]
            assert values == [b"kept", b"kept, too"]

    run(work())


def test_an_idempotent_producer_that_is_cut_off_stores_each_record_once() -> None:
    async def work() -> None:
        async with (
            Broker(topics=["orders"]) as broker,
            aiokafka.AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True
            ) as producer,
        ):
            await producer.send_and_wait("orders", b"0")
            broker.fail("Produce", disconnect=True, after=True, times=1)
            sent = await producer.send_and_wait("orders", b"1")
            assert sent.offset == 1
            assert [record.value for record in broker.records("orders")] == [b"0", b"1"]

    run(work())


def test_keys_headers_and_times_arrive_and_offsets_are_found_by_them() -> None:
    async def work() -> None:
        async with (
            Broker(topics={"orders": 2}) as broker,
            aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
            aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer,
        ):
            for n in range(5):
                await producer.send_and_wait(
                    "orders",
                    b"v",
                    key=b"k%d" % n,
                    headers=[("h", b"1")],
                    timestamp_ms=1_700_000_000_000 + n,
                    partition=1,
                )
            partition = aiokafka.TopicPartition("orders", 1)
            found = await consumer.offsets_for_times({partition: 1_700_000_000_003})
            assert found[partition].offset == 3
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 5}
            consumer.assign([partition])
            consumer.seek(partition, 3)
            record = await consumer.getone()
            assert (record.key, record.headers) == (b"k3", (("h", b"1"),))
            assert record.timestamp == 1_700_000_000_003

    run(work())


def test_members_of_a_group_share_the_partitions_and_go_on_behind_each_other() -> None:
    async def work() -> None:
        async with (
            Broker(topics={"orders": 2}) as broker,
            aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
        ):
            options: dict[str, Any] = {
                "bootstrap_servers": broker.bootstrap_servers,
                "group_id": "team",
                "auto_offset_reset": "earliest",
                "enable_auto_commit": False,
            }
            for partition in (0, 1):
                await producer.send_and_wait("orders", b"%d" % partition, partition=partition)
            async with (
                aiokafka.AIOKafkaConsumer("orders", **options) as first,
                aiokafka.AIOKafkaConsumer("orders", **options) as second,
            ):
                await broker.wait_for_async(
                    group="team", state="Stable", members=2, timeout_s=PATIENCE_S
                )
                records = await asyncio.gather(first.getone(), second.getone())
                assert {record.value for record in records} == {b"0", b"1"}
                await first.commit()
                await second.commit()
            await producer.send_and_wait("orders", b"later", partition=1)
            async with aiokafka.AIOKafkaConsumer("orders", **options) as third:
                assert (await third.getone()).value == b"later"

    run(work())


def test_admin_calls_create_grow_describe_and_delete() -> None:
    async def work() -> None:
        async with Broker(topics={"orders": 1}) as broker:
            admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
            await admin.start()
            await admin.create_topics([NewTopic("new", 2, 1)])
            await admin.create_partitions({"new": NewPartitions(4)})
            assert broker.topics == {"orders": 1, "new": 4}
            assert set(await admin.list_topics()) >= {"new", "orders"}
            (described,) = await admin.describe_topics(["new"])
            assert len(described["partitions"]) == 4
            await admin.delete_topics(["new"])
            assert broker.topics == {"orders": 1}
            await admin.close()

    run(work())
