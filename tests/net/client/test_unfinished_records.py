"""Records and commits whose client ends otherwise than by `close`, and callbacks that go wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import AsyncConsumer, AsyncProducer, Consumer, Producer
from ottla.client.errors import IllegalStateError, KafkaError
from ottla.testing import Broker
from support.ctrl_c import ctrl_c_once_waiting
from support.forking import forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHIN_S = 20


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


def is_running() -> bool:
    return any(thread.name == "ottla-producer" for thread in threading.enumerate())


@pytest.mark.filterwarnings("ignore:Producer was not closed:ResourceWarning")
def test_records_of_a_producer_that_nobody_closed_are_told_of(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
    sent = [producer.send("orders", b"v") for _ in range(2)]
    del producer
    gc.collect()
    assert "call close(); 2 records sent with it may not be written" in caplog.text
    with pytest.raises(IllegalStateError, match="was not closed"):
        sent[1].result(WITHIN_S)


@pytest.mark.filterwarnings("ignore:AsyncProducer was not closed:ResourceWarning")
def test_awaiting_a_record_of_a_producer_that_is_gone_ends(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        producer = AsyncProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
        sent = await producer.send("orders", b"v")
        del producer
        gc.collect()
        with pytest.raises(IllegalStateError, match="was not closed"):
            await asyncio.wait_for(sent, WITHIN_S)

    asyncio.run(main())
    assert "1 record sent with it may not be written" in caplog.text


PROGRAM = """
import sys
from ottla.client import Producer

producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
producer.send("orders", b"v")
"""


def test_a_program_that_ends_without_close_says_so_and_nothing_else(broker: Broker) -> None:
    command = [sys.executable, "-c", PROGRAM, broker.bootstrap_servers]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == (
        "Producer was not closed: use it in a `with` block, or call close(); "
        "1 record sent with it may not be written\n"
    )


@pytest.mark.parametrize("call", ["result", "close", "flush", "produce_many"])
def test_a_callback_that_would_wait_for_its_own_producer_is_refused(
    producer: Producer, call: str
) -> None:
    told: list[BaseException] = []
    done = threading.Event()

    def on_delivery(*_: Any) -> None:
        calls: dict[str, Callable[[], object]] = {
            "result": lambda: producer.send("orders", b"another").result(),
            "close": producer.close,
            "flush": producer.flush,
            "produce_many": lambda: producer.produce_many("orders", [b"v"]),
        }
        try:
            calls[call]()
        except IllegalStateError as error:
            told.append(error)
        done.set()

    producer.send("orders", b"v", on_delivery=on_delivery)
    assert done.wait(WITHIN_S)
    assert "would wait for ever: call it from a thread of yours" in str(told[0])


def break_core(producer: Any) -> None:
    producer._core.network.tick = None


def test_a_fault_of_the_producer_ends_what_waits_for_records(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
    sent = producer.send("orders", b"v")
    break_core(producer)
    producer.send("orders", b"v")
    producer._thread.run(lambda: None)
    with pytest.raises(IllegalStateError, match="fault of its own") as caught:
        sent.result(WITHIN_S)
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(IllegalStateError, match="fault of its own"):
        producer.close()
    assert not is_running()


def test_a_fault_of_the_asyncio_producer_ends_what_waits_for_records(broker: Broker) -> None:
    async def main() -> None:
        producer = AsyncProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
        sent = await producer.send("orders", b"v")
        break_core(producer)
        with pytest.raises(IllegalStateError, match="fault of its own"):
            await asyncio.wait_for(producer.flush(), WITHIN_S)
        with pytest.raises(IllegalStateError, match="fault of its own"):
            await asyncio.wait_for(sent, WITHIN_S)
        with pytest.raises(IllegalStateError, match="fault of its own"):
            await asyncio.wait_for(producer.close(), WITHIN_S)

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process_that_waits_for_a_record_of_its_parent_is_told(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        sent = producer.send("orders", b"v")
        said, end = forked(sent.result)
        end()
        assert "a process that was forked off has to make a client of its own" in said


def test_ctrl_c_leaves_close_and_what_is_not_acknowledged_fails(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers)
    producer.partitions_for("orders")
    broker.fail("Produce", delay=60)
    sent = producer.send("orders", b"v")
    with ctrl_c_once_waiting(), pytest.raises(KeyboardInterrupt):
        producer.close()
    with pytest.raises(KafkaError, match="closed before the record was acknowledged"):
        sent.result(WITHIN_S)
    assert not is_running()


def test_a_callback_of_a_commit_that_raises_leaves_the_consumer_as_it_was(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", b"v")
    told: list[BaseException | None] = []
    called = threading.Event()

    def when_done(error: BaseException | None) -> None:
        told.append(error)
        called.set()
        raise ValueError("of the application's own")

    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["orders"])
        assert next(iter(consumer)).value == b"v"
        consumer.commit_soon(when_done=when_done)
        assert called.wait(WITHIN_S)
        broker.produce("orders", b"w")
        assert next(iter(consumer)).value == b"w"
    assert told == [None]
    assert "of the application's own" in caplog.text


def test_a_callback_of_a_commit_that_raises_on_asyncio_is_the_loops_to_report(
    broker: Broker,
) -> None:
    broker.produce("orders", b"v")

    async def main() -> None:
        reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: reported.set_result(str(context["exception"]))
        )

        def when_done(_: BaseException | None) -> None:
            raise ValueError("of the application's own")

        async with AsyncConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["orders"])
            assert (await anext(aiter(consumer))).value == b"v"
            consumer.commit_soon(when_done=when_done)
            assert await asyncio.wait_for(reported, WITHIN_S) == "of the application's own"
            assert await consumer.poll(1) == []

    asyncio.run(main())
