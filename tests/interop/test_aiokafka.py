"""aiokafka: a client that asks for old versions, and does not say what it is."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import aiokafka
import pytest
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
