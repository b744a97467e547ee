"""Both producers with our broker: what they return, raise and wait for."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ottla.client import AsyncProducer, GroupMetadata, OffsetAndMetadata, Producer, TopicPartition
from ottla.client.errors import (
    FailureType,
    IllegalArgumentError,
    IllegalStateError,
    InvalidConfigurationError,
    KafkaTimeoutError,
    ProduceFailedError,
    ProducerClosedError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from ottla.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1, "prices": 4}) as broker:
        yield broker


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


def values_of(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_a_record_has_key_value_time_and_headers(broker: Broker, producer: Producer) -> None:
    sent = producer.send("orders", b"v", b"k", 0, 1_700_000_000_000, [("h", b"1"), ("n", None)])
    written = sent.result(10)
    assert written == ("orders", 0, 0, 1_700_000_000_000)
    (record,) = broker.records("orders")
    assert (record.key, record.value, record.timestamp) == (b"k", b"v", 1_700_000_000_000)
    assert [*record.headers] == [("h", b"1"), ("n", None)]


def test_a_topic_with_the_leaders_times_has_those(broker: Broker, producer: Producer) -> None:
    broker.create_topic("stamped", message_timestamp_type="LogAppendTime")
    written = producer.send("stamped", b"v", timestamp_ms=5).result(10)
    (record,) = broker.records("stamped")
    assert written.timestamp_ms == record.timestamp
    assert written.timestamp_ms > 5


def test_records_of_a_key_go_to_javas_partition(producer: Producer) -> None:
    partitions = [producer.send("prices", b"v", key=b"%d" % i) for i in range(20)]
    rows = producer.produce_many("prices", [b"v"] * 20, keys=[b"%d" % i for i in range(20)])
    assert rows.partitions.tolist() == [one.result(10).partition for one in partitions]
    assert producer.send("prices", b"v", key=b"foobar").result(10).partition == 2


def test_records_without_a_key_fill_batches_of_one_partition_after_another(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, batch_size=1_000) as producer:
        sent = [producer.send("prices", bytes(100)) for _ in range(400)]
        producer.flush()
        counts = [0, 0, 0, 0]
        for one in sent:
            counts[one.result(10).partition] += 1
    assert min(counts) > 0


def test_partitions_are_taken_in_turn_or_as_a_function_says(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with Producer(bootstrap_servers=address, partitioner="round_robin") as producer:
        sent = [producer.send("prices", b"v").result(10).partition for _ in range(8)]
    assert sent == [0, 1, 2, 3] * 2
    asked: list[Any] = []

    def third(*what: Any) -> int:
        asked.append(what)
        return 3

    with Producer(bootstrap_servers=address, partitioner=third) as producer:
        assert producer.send("prices", b"v", key=b"k").result(10).partition == 3
        assert producer.produce_many("prices", [b"v"]).partitions.tolist() == [3]
    assert asked == [("prices", b"k", b"v", 4), ("prices", None, b"v", 4)]


def test_a_partitioner_that_returns_no_partition_is_an_error_of_the_call(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with (
        Producer(bootstrap_servers=address, partitioner=lambda *_: 4) as producer,
        pytest.raises(ValueError, match="the partitioner returned 4 for topic prices"),
    ):
        producer.send("prices", b"v")


def test_columns_are_taken_as_lists_arrays_and_offsets_with_data(
    broker: Broker, producer: Producer
) -> None:
    offsets = np.array([0, 1, 3], np.int32)
    data = np.frombuffer(b"abb", np.uint8)
    receipts = [
        producer.produce_many("orders", [b"1", None]),
        producer.produce_many("orders", (b"2", b"3")),
        producer.produce_many("orders", (offsets, data), timestamps_ms=np.array([5, 6])),
        producer.produce_many("orders", np.array([b"4", b"5"])),
        producer.produce_many("orders", keys=[b"k"], headers=[[("h", b"")]]),
    ]
    assert [offset for one in receipts for offset in one.offsets.tolist()] == [*range(9)]
    assert values_of(broker) == [b"1", None, b"2", b"3", b"a", b"bb", b"4", b"5", None]
    assert producer.produce_many("orders", []).is_done


def test_arrow_columns_are_taken_as_they_are(broker: Broker, producer: Producer) -> None:
    pa = pytest.importorskip("pyarrow")
    producer.produce_many("orders", pa.array([b"a", None]), keys=pa.chunked_array([[b"k", b"l"]]))
    assert values_of(broker) == [b"a", None]


def test_columns_of_different_lengths_are_refused(producer: Producer) -> None:
    with pytest.raises(IllegalArgumentError, match="values 2, keys 1"):
        producer.produce_many("orders", [b"a", b"b"], keys=[b"k"])


def test_a_row_that_is_too_large_fails_alone(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, max_request_size=1_000) as producer:
        receipt = producer.produce_many("orders", [b"a", bytes(2_000), b"b"])
        assert receipt.offsets.tolist() == [0, -1, 1]
        assert type(receipt.errors[1]) is RecordTooLargeError
        with pytest.raises(RecordTooLargeError):
            receipt.raise_first()


def test_more_rows_than_memory_holds_go_through_it(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with Producer(bootstrap_servers=address, buffer_memory=50_000) as producer:
        receipt = producer.produce_many("prices", [bytes(100)] * 10_000)
        assert not receipt.errors
        assert producer.metrics()["buffer-available-bytes"] == 50_000
    assert len(broker.records("prices")) == 10_000


def test_what_a_serializer_raises_comes_as_it_is_and_nothing_is_sent(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with Producer(bootstrap_servers=address, value_serializer=str.encode) as producer:
        producer.send("orders", "text").result(10)
        with pytest.raises(TypeError) as raised:
            producer.send("orders", 5)
        assert "value_serializer for a record of topic orders" in raised.value.__notes__[0]
        assert producer.metrics()["record-send-total"] == 1


def test_what_is_no_bytes_is_refused_by_name(producer: Producer) -> None:
    with pytest.raises(TypeError, match="value: expected a bytes-like object, found str"):
        producer.send("orders", "text")


def test_produce_tells_everything_by_its_future(producer: Producer) -> None:
    assert producer.produce("orders", b"v").result(10).offset == 0
    with pytest.raises(ProduceFailedError) as raised:
        producer.produce("orders", bytes(2_000_000)).result(10)
    assert raised.value.failure_type is FailureType.MESSAGE_REJECTED
    assert type(raised.value.root) is RecordTooLargeError


def test_callbacks_are_told_in_order_and_may_send(producer: Producer) -> None:
    told: list[Any] = []
    enough = threading.Event()

    def on_delivery(written: Any, error: Any) -> None:
        told.append((written.offset, error))
        if len(told) == 3:
            producer.send("orders", b"more", on_delivery=lambda *_: enough.set())

    for _ in range(3):
        producer.send("orders", b"v", on_delivery=on_delivery)
    assert enough.wait(10)
    assert told == [(0, None), (1, None), (2, None)]


def test_waiting_for_a_topic_ends_and_says_why() -> None:
    with Broker(config={"auto.create.topics.enable": False}) as strict:
        address = strict.bootstrap_servers
        with (
            Producer(bootstrap_servers=address, max_block_ms=300) as producer,
            pytest.raises(KafkaTimeoutError, match="does the topic exist"),
        ):
            producer.send("nothing", b"v")


def test_a_closed_producer_says_so(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers)
    sent = producer.send("orders", b"v")
    producer.close()
    producer.close()
    assert sent.result(0).offset == 0
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("orders", b"v")


def test_closing_in_no_time_fails_what_is_not_acknowledged(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers)
    producer.partitions_for("orders")
    broker.fail("Produce", delay=60)
    sent = producer.send("orders", b"v")
    producer.close(0)
    assert "closed before" in str(sent.exception(10))


def test_a_producer_that_is_not_closed_warns_and_leaves_no_thread(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"v").result(10)
    with pytest.warns(ResourceWarning, match="Producer was not closed"):  # noqa: PT031 - both
        del producer
        gc.collect()


def test_several_threads_send_with_one_producer(broker: Broker, producer: Producer) -> None:
    def send(name: bytes) -> None:
        for i in range(200):
            producer.send("orders", b"%s-%d" % (name, i))

    threads = [threading.Thread(target=send, args=(name,)) for name in (b"a", b"b", b"c")]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    producer.flush(10)
    found = values_of(broker)
    assert len(found) == 600
    for name in (b"a", b"b", b"c"):
        of_one = [value for value in found if value and value.startswith(name)]
        assert of_one == [b"%s-%d" % (name, i) for i in range(200)]


def test_a_transaction_has_records_and_offsets_or_nothing(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with Producer(bootstrap_servers=address, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        given_up = producer.send("orders", b"0")
        producer.abort_transaction()
        assert isinstance(given_up.exception(10), (TransactionAbortedError, type(None)))
        producer.begin_transaction()
        producer.send("orders", b"1")
        offsets = {TopicPartition("prices", 0): OffsetAndMetadata(7)}
        producer.send_offsets_to_transaction(offsets, GroupMetadata("readers"))
        producer.commit_transaction()
    assert b"1" in values_of(broker)
    assert broker.transactions["t"].state.lower().startswith("complete")


def test_a_second_producer_of_an_id_fences_the_first(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with (
        Producer(bootstrap_servers=address, transactional_id="t") as first,
        Producer(bootstrap_servers=address, transactional_id="t") as second,
    ):
        first.init_transactions()
        first.begin_transaction()
        first.send("orders", b"0")
        first.flush()
        second.init_transactions()
        with pytest.raises(ProducerFencedError):
            first.commit_transaction()
        with pytest.raises(ProducerFencedError):
            first.begin_transaction()


def test_an_option_that_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidConfigurationError, match="did you mean linger_ms"):
        Producer(bootstrap_servers="localhost:1", linger_mz=5)


# On asyncio.


def test_asyncio_futures_receipts_and_transactions(broker: Broker) -> None:
    async def use() -> None:
        address = broker.bootstrap_servers
        async with AsyncProducer(bootstrap_servers=address) as producer:
            futures = [await producer.send("orders", b"%d" % i) for i in range(1_000)]
            assert [one.offset for one in await asyncio.gather(*futures)] == [*range(1_000)]
            assert (await producer.send_and_wait("orders", b"v")).offset == 1_000
            receipt = await producer.produce_many("orders", [b"a", b"b"])
            assert receipt.offsets.tolist() == [1_001, 1_002]
            assert await producer.partitions_for("prices") == [0, 1, 2, 3]
            with pytest.raises(ProduceFailedError):
                await producer.produce("orders", 5)
        with pytest.raises(ProducerClosedError):
            producer._core.require_open("send")
        async with AsyncProducer(bootstrap_servers=address, transactional_id="t") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("orders", b"in a transaction")
            await producer.commit_transaction()

    asyncio.run(use())
    assert values_of(broker)[-1] == b"in a transaction"


def test_a_send_that_is_cancelled_while_it_waits_sends_nothing(broker: Broker) -> None:
    async def use() -> None:
        address = broker.bootstrap_servers
        options = {"buffer_memory": 20_000, "linger_ms": 0}
        async with AsyncProducer(bootstrap_servers=address, **options) as producer:
            await producer.send_and_wait("orders", b"first")
            fault = broker.fail("Produce", delay=0.2, times=1)
            held = await producer.send("orders", bytes(9_000))
            waiting = asyncio.create_task(producer.send("orders", b"never" + bytes(16_000)))
            while not producer._core.accumulator.waiting_count:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            fault.remove()
            await held
            await producer.send_and_wait("orders", b"last")

    asyncio.run(use())
    assert [(value or b"")[:5] for value in values_of(broker)] == [b"first", bytes(5), b"last"]


def test_a_caller_that_never_waits_lets_others_have_their_turn(broker: Broker) -> None:
    async def use() -> int:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with AsyncProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.partitions_for("orders")
            other = asyncio.create_task(tick())
            for _ in range(3_000):
                await producer.send("orders", bytes(100))
            other.cancel()
        return turns

    assert asyncio.run(use()) > 2
