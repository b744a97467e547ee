"""Reading, processing and writing on a broker: each record counts once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ottla.client import (
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    Producer,
    ProducerFencedError,
    TopicPartition,
    run_transaction,
    run_transaction_async,
)
from ottla.testing import Broker

VALUES = [b"%d" % number for number in range(6)]
GROUP: dict[str, Any] = {
    "group_id": "workers",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "isolation_level": "read_committed",
}


class _RefusedError(Exception):
    """The processing fails once."""


def committed(broker: Broker) -> list[bytes]:
    """What a reader of committed records gets of what was made."""
    with Consumer(bootstrap_servers=broker.bootstrap_servers, **GROUP) as reader:
        reader.assign([("made", 0)])
        reader.seek_to_beginning()
        found: list[bytes] = []
        while len(found) < len(VALUES) and (records := reader.poll(2_000)):
            found += [one.value for one in records]
        return found


def test_records_and_positions_commit_together_though_the_processing_fails_amid() -> None:
    with Broker(topics=["read", "made"]) as broker:
        servers = broker.bootstrap_servers
        for value in VALUES:
            broker.produce("read", value)
        with (
            Producer(bootstrap_servers=servers, transactional_id="worker") as producer,
            Consumer(bootstrap_servers=servers, max_poll_records=2, **GROUP) as consumer,
        ):
            producer.init_transactions()
            consumer.subscribe(["read"])
            done = failed = 0
            while done < len(VALUES):
                records = consumer.poll(5_000)

                def body(records: Any = records, fails: bool = done == 2 and not failed) -> None:
                    for record in records:
                        producer.send("made", record.value)
                    if fails:
                        raise _RefusedError

                try:
                    assert run_transaction(producer, consumer, body)
                    done += len(records)
                except _RefusedError:
                    failed += 1
            assert consumer.committed(("read", 0))[TopicPartition("read", 0)].offset == len(VALUES)
        assert failed == 1
        assert committed(broker) == VALUES


def test_they_do_so_on_asyncio() -> None:
    async def main(servers: str) -> None:
        async with (
            AsyncProducer(bootstrap_servers=servers, transactional_id="worker") as producer,
            AsyncConsumer(bootstrap_servers=servers, **GROUP) as consumer,
        ):
            await producer.init_transactions()
            consumer.subscribe(["read"])
            done = 0
            while done < len(VALUES):
                records = await consumer.poll(5_000)

                async def body(records: Any = records) -> None:
                    for record in records:
                        await producer.send("made", record.value)

                assert await run_transaction_async(producer, consumer, body)
                done += len(records)

    with Broker(topics=["read", "made"]) as broker:
        for value in VALUES:
            broker.produce("read", value)
        asyncio.run(main(broker.bootstrap_servers))
        assert committed(broker) == VALUES


def test_a_worker_that_was_replaced_changes_nothing_more() -> None:
    with Broker(topics=["made"]) as broker:
        servers = broker.bootstrap_servers
        with (
            Producer(bootstrap_servers=servers, transactional_id="worker") as old,
            Producer(bootstrap_servers=servers, transactional_id="worker") as new,
        ):
            old.init_transactions()
            old.begin_transaction()
            old.send("made", b"of the old one")
            old.flush()
            new.init_transactions()
            with pytest.raises(ProducerFencedError):
                old.commit_transaction()
            assert run_transaction(new, None, lambda: [new.send("made", one) for one in VALUES])
        assert committed(broker) == VALUES
