"""Both consumers against Ottla's broker, over sockets."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ottla.client import (
    Admin,
    AsyncConsumer,
    Consumer,
    IllegalStateError,
    InvalidConfigurationError,
    KafkaTimeoutError,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from ottla.client.consumer.errors import (
    InvalidPartitionEpochError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    WakeupError,
)
from ottla.client.consumer.listener import RebalanceListener
from ottla.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.records import FetchedColumns

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1, "events": 4}) as broker:
        yield broker


def consumer_of(broker: Broker, **options: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=broker.bootstrap_servers,
        **{"auto_offset_reset": "earliest", **options},
    )


def fill(broker: Broker, count: int = 10) -> list[bytes]:
    values = [b"%d" % number for number in range(count)]
    for value in values:
        broker.produce("orders", value, key=b"k")
    return values


def read(consumer: Consumer, count: int, within_ms: int = 10_000) -> list[Any]:
    """Polls until so many records came."""
    found: list[Any] = []
    end = time.monotonic() + within_ms / 1000
    while len(found) < count and time.monotonic() < end:
        found += consumer.poll(200)
    return found


# Records.


def test_a_poll_returns_records_with_all_that_is_known_of_them(broker: Broker) -> None:
    broker.produce("orders", b"v", key=b"k", headers=[("trace", b"7")], timestamp=1234)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        (record,) = read(consumer, 1)
    assert (record.topic, record.partition, record.offset) == ("orders", 0, 0)
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("trace", b"7"),))
    assert (record.timestamp_ms, record.timestamp_type, record.leader_epoch) == (
        1234,
        "create_time",
        0,
    )


def test_a_poll_without_records_comes_back_after_its_time(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        assert consumer.poll(50) == []
        assert consumer.poll(0) == []


def test_records_come_one_by_one_and_the_position_follows_them(broker: Broker) -> None:
    values = fill(broker)
    with consumer_of(broker, max_poll_records=4) as consumer:
        consumer.assign([ORDERS])
        found = []
        for record in consumer:
            found.append(record.value)
            assert consumer.position(ORDERS) == record.offset + 1
            if len(found) == len(values):
                break
    assert found == values


def test_a_task_reads_records_one_by_one(broker: Broker) -> None:
    values = fill(broker)

    async def main() -> list[bytes]:
        found = []
        async with AsyncConsumer(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([ORDERS])
            async for record in consumer:
                found.append(record.value)
                if len(found) == len(values):
                    break
            assert await consumer.position(ORDERS) == len(values)
        return found

    assert asyncio.run(main()) == values


def test_records_come_as_columns_of_numpy_and_of_arrow(broker: Broker) -> None:
    for number in range(8):
        broker.produce("events", None if number == 5 else b"%d" % number, partition=number % 4)
    with consumer_of(broker) as consumer:
        consumer.assign([("events", number) for number in range(4)])
        rows: list[FetchedColumns] = []
        while sum(len(one) for one in rows) < 8:
            rows.append(consumer.poll_columns(5000))
        assert consumer.position(("events", 3)) == 2
        columns = rows[0]
        assert columns.topics == ("events",)
        assert columns.offset.dtype == np.int64
        offsets, data, *validity = columns.value
        assert len(offsets) == len(columns) + 1
        assert set(data.tobytes()) <= set(b"01234567")
        assert not validity or not validity[0].all()
        assert len(consumer.poll_columns(0)) == 0
    arrow = pytest.importorskip("pyarrow")
    tables = [arrow.table(one) for one in rows]
    found = sorted(
        (one["partition"], one["offset"], one["value"])
        for table in tables
        for one in table.to_pylist()
    )
    assert found == [
        (number % 4, number // 4, None if number == 5 else b"%d" % number)
        for number in sorted(range(8), key=lambda number: (number % 4, number))
    ]


def test_columns_and_records_can_be_read_in_turn(broker: Broker) -> None:
    values = fill(broker)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        found = [one.value for one in consumer.poll(5000, max_records=3)]
        columns = consumer.poll_columns(5000, max_records=4)
        assert columns.offset.tolist() == [3, 4, 5, 6]
        found += [values[offset] for offset in columns.offset]
        found += [one.value for one in consumer.poll(5000)]
    assert found == values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_each_codec_are_read(broker: Broker, codec: Any) -> None:
    values = [b"%d" % number * 50 for number in range(100)]
    with Producer(
        bootstrap_servers=broker.bootstrap_servers, compression_type=codec, linger_ms=50
    ) as producer:
        for value in values:
            producer.send("orders", value)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        assert [one.value for one in read(consumer, 100)] == values


def test_deserializers_make_keys_and_values(broker: Broker) -> None:
    fill(broker, 3)
    with consumer_of(broker, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        consumer.assign([ORDERS])
        assert [(one.key, one.value) for one in read(consumer, 3)] == [("k", 0), ("k", 1), ("k", 2)]


def test_a_record_that_cannot_be_made_is_named_and_the_position_stays_before_it(
    broker: Broker,
) -> None:
    broker.produce("orders", b"0")
    broker.produce("orders", b"no number")
    broker.produce("orders", b"2")
    with consumer_of(broker, value_deserializer=int) as consumer:
        consumer.assign([ORDERS])
        assert [one.value for one in read(consumer, 1)] == [0]
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match="offset 1 of orders-0") as caught:
                consumer.poll(5000)
            assert isinstance(caught.value.root, ValueError)
            assert consumer.position(ORDERS) == 1
        consumer.seek(ORDERS, caught.value.offset + 1)
        assert [one.value for one in read(consumer, 1)] == [2]


def test_a_partition_that_is_paused_waits_and_goes_on_where_it_was(broker: Broker) -> None:
    values = fill(broker)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.poll(5000, max_records=3)
        consumer.pause(ORDERS)
        assert consumer.paused() == {ORDERS}
        assert consumer.poll(50) == []
        consumer.resume(ORDERS)
        assert [one.value for one in read(consumer, 7)] == values[3:]


# Positions.


def test_seeks_go_to_offsets_times_and_both_ends(broker: Broker) -> None:
    for number in range(10):
        broker.produce("orders", b"%d" % number, timestamp=1000 * (1 + number))
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 7)
        assert consumer.poll(5000)[0].value == b"7"
        consumer.seek_to_times({ORDERS: 4500})
        assert consumer.poll(5000)[0].value == b"4"
        consumer.seek_to_beginning()
        assert consumer.poll(5000)[0].value == b"0"
        consumer.seek_to_end(ORDERS)
        assert consumer.position(ORDERS) == 10
        found = consumer.offsets_for_times({ORDERS: 4500})[ORDERS]
        assert found is not None
        assert found.offset == 4
        assert consumer.beginning_offsets(ORDERS) == {ORDERS: 0}
        assert consumer.end_offsets(ORDERS) == {ORDERS: 10}


def test_a_position_is_kept_outside_of_kafka_and_taken_up_again(broker: Broker) -> None:
    values = fill(broker)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.poll(5000, max_records=4)
        kept = consumer.position_and_offset_epoch(ORDERS)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, kept.offset, kept.offset_epoch)
        assert [one.value for one in read(consumer, 6)] == values[4:]


def test_a_poll_without_anything_to_read_says_what_to_call(broker: Broker) -> None:
    with consumer_of(broker) as consumer, pytest.raises(IllegalStateError, match="subscribe"):
        consumer.poll(0)


def test_topics_and_partitions_are_mutually_exclusive(broker: Broker) -> None:
    with consumer_of(broker, group_id="g") as consumer:
        consumer.assign([ORDERS])
        with pytest.raises(IllegalStateError, match="unsubscribe"):
            consumer.subscribe(["orders"])
        consumer.unsubscribe()
        consumer.subscribe(["orders"])
        assert consumer.subscription() == {"orders"}


def test_topics_and_their_partitions_are_listed(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        assert consumer.topics() == {"orders", "events"}
        assert consumer.partitions_for("events") == {0, 1, 2, 3}


# Transactions.


def test_read_committed_leaves_out_what_is_aborted_or_open(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    with (
        Producer(bootstrap_servers=servers, transactional_id="a") as first,
        Producer(bootstrap_servers=servers, transactional_id="b") as second,
    ):
        first.init_transactions()
        second.init_transactions()
        expected = []
        for turn in range(6):
            first.begin_transaction()
            second.begin_transaction()
            for number in range(3):
                first.send("orders", b"a%d.%d" % (turn, number)).result(10_000)
                second.send("orders", b"b%d.%d" % (turn, number)).result(10_000)
                if turn % 2:
                    expected.append(b"a%d.%d" % (turn, number))
                if turn % 3:
                    expected.append(b"b%d.%d" % (turn, number))
            (first.commit_transaction if turn % 2 else first.abort_transaction)()
            (second.commit_transaction if turn % 3 else second.abort_transaction)()
        first.begin_transaction()
        first.send("orders", b"open").result(10_000)
        with consumer_of(broker, isolation_level="read_committed") as consumer:
            consumer.assign([ORDERS])
            assert [one.value for one in read(consumer, len(expected))] == expected
            assert consumer.poll(50) == []
            assert consumer.lag(ORDERS) == 0
        with consumer_of(broker) as consumer:
            consumer.assign([ORDERS])
            assert len(read(consumer, 37)) == 37
        first.abort_transaction()


# Logs that are not what they were.


def test_a_compacted_log_is_read_with_its_gaps_and_passed_at_its_end() -> None:
    with Broker() as broker:
        broker.create_topic("orders", cleanup_policy="compact")
        for number in range(200):
            broker.produce("orders", b"%d" % number, key=b"%d" % (number % 7))
        broker.compact("orders")
        expected = [(one.offset, one.value) for one in broker.records("orders")]
        assert len(expected) < 200
        with consumer_of(broker) as consumer:
            consumer.assign([ORDERS])
            found = read(consumer, len(expected))
            assert [(one.offset, one.value) for one in found] == expected
            assert consumer.position(ORDERS) == 200


def test_a_topic_that_is_created_again_is_not_read_from_the_position_in_the_old(
    broker: Broker,
) -> None:
    fill(broker)
    with consumer_of(broker, metadata_max_age_ms=100) as consumer:
        consumer.assign([ORDERS])
        assert len(read(consumer, 5)) >= 5
        broker.delete_topic("orders")
        broker.create_topic("orders")
        fill(broker, 30)
        end = time.monotonic() + 20
        with pytest.raises(InvalidPartitionEpochError):  # noqa: PT012 - until it is known
            while time.monotonic() < end:
                consumer.poll(100)
        consumer.seek_to_beginning(ORDERS)
        assert len(read(consumer, 30)) == 30


def test_records_that_are_deleted_under_the_position_are_told_without_a_policy(
    broker: Broker,
) -> None:
    fill(broker)
    with (
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
        consumer_of(broker, auto_offset_reset="none") as consumer,
    ):
        admin.delete_records({ORDERS: 6})
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 2)
        with pytest.raises(OffsetOutOfRangeError, match="position 2"):
            read(consumer, 1)
        consumer.seek_to_beginning()
        assert [one.offset for one in read(consumer, 4)] == [6, 7, 8, 9]


# Groups.


def test_a_group_goes_on_where_it_committed(broker: Broker) -> None:
    values = fill(broker)
    with consumer_of(broker, group_id="g", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        assert len(consumer.poll(10_000, max_records=4)) == 4
        consumer.commit()
        consumer.poll(5000, max_records=3)
        assert consumer.committed(ORDERS)[ORDERS].offset == 4
    with consumer_of(broker, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        assert [one.value for one in read(consumer, 6)] == values[4:]


def test_offsets_are_committed_with_metadata_of_the_applications_own(broker: Broker) -> None:
    with consumer_of(broker, group_id="g") as consumer:
        consumer.assign([ORDERS])
        consumer.commit({ORDERS: OffsetAndMetadata(3, "by hand")})
        found = consumer.committed(ORDERS, ("events", 1))
        assert found == {ORDERS: OffsetAndMetadata(3, "by hand")}
        done: list[BaseException | None] = []
        consumer.commit_soon({ORDERS: 5}, done.append)
        consumer.commit({("events", 1): 7})
        assert done == [None]
        found = consumer.committed(ORDERS, ("events", 1))
        assert {one: each.offset for one, each in found.items()} == {ORDERS: 5, ("events", 1): 7}


def test_what_is_delivered_is_committed_when_the_consumer_closes(broker: Broker) -> None:
    fill(broker)
    for subscribed in (True, False):
        group = f"g{subscribed}"
        with consumer_of(broker, group_id=group) as consumer:
            if subscribed:
                consumer.subscribe(["orders"])
            else:
                consumer.assign([ORDERS])
            assert len(consumer.poll(10_000, max_records=4)) == 4
        with consumer_of(broker, group_id=group) as consumer:
            assert consumer.committed(ORDERS)[ORDERS].offset == 4


def test_what_is_delivered_but_not_done_is_not_committed_by_a_poll(broker: Broker) -> None:
    fill(broker)
    with consumer_of(broker, group_id="g", auto_commit_interval_ms=0) as consumer:
        consumer.assign([ORDERS])
        assert len(consumer.poll(5000, max_records=4)) == 4
        consumer.commit({("events", 0): 0})
        consumer.poll(5000, max_records=3)
        consumer.commit({("events", 0): 1})
        assert consumer.committed(ORDERS)[ORDERS].offset == 4


def test_without_a_group_there_are_no_commits(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        for call in (
            consumer.commit,
            lambda: consumer.committed(ORDERS),
            consumer.group_metadata,
        ):
            with pytest.raises(IllegalStateError, match="group_id"):
                call()
        with pytest.raises(IllegalStateError):
            consumer.subscribe(["orders"])


class _Diary(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.entries.append(("revoked", sorted(one.partition for one in partitions)))

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.entries.append(("assigned", sorted(one.partition for one in partitions)))


PROTOCOLS: list[dict[str, Any]] = [
    {"partition_assignment_strategy": ["range"], "heartbeat_interval_ms": 50},
    {"partition_assignment_strategy": ["cooperative-sticky"], "heartbeat_interval_ms": 50},
    {"group_protocol": "consumer"},
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "kip-848"])
def test_two_consumers_share_a_topic_and_one_takes_over_when_the_other_leaves(
    protocol: dict[str, Any],
) -> None:
    config = {"group.consumer.heartbeat.interval.ms": 100} if len(protocol) == 1 else {}
    with Broker(topics={"events": 4}, config=config) as broker:
        options: dict[str, Any] = {"group_id": "g", **protocol}
        diary = _Diary()
        with consumer_of(broker, **options) as first:
            first.subscribe(["events"], listener=diary)
            _poll_until(lambda: len(first.assignment()) == 4, first)
            with consumer_of(broker, **options) as second:
                second.subscribe(["events"])
                _poll_until(
                    lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second
                )
                assert not first.assignment() & second.assignment()
            _poll_until(lambda: len(first.assignment()) == 4, first)
            broker.produce("events", b"1", partition=3)
            assert [one.value for one in read(first, 1)] == [b"1"]
        if protocol.get("partition_assignment_strategy") != ["range"]:
            revoked = [each for kind, each in diary.entries[:-1] if kind == "revoked"]
            assert all(len(each) == 2 for each in revoked)
        assert diary.entries[0] == ("assigned", [0, 1, 2, 3])
        assert diary.entries[-1] == ("revoked", [0, 1, 2, 3])


def _poll_until(done: Any, *consumers: Consumer) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, [sorted(one.assignment()) for one in consumers]
        for consumer in consumers:
            consumer.poll(20)


def test_a_static_member_that_comes_back_has_its_partitions_again(broker: Broker) -> None:
    options = {"group_id": "g", "group_instance_id": "one"}
    with consumer_of(broker, **options) as consumer:
        consumer.subscribe(["events"])
        _poll_until(consumer.assignment, consumer)
        generation = consumer.group_metadata().generation_id
    with consumer_of(broker, **options) as consumer:
        consumer.subscribe(["events"])
        _poll_until(consumer.assignment, consumer)
        assert consumer.group_metadata().generation_id == generation


def test_a_pattern_reads_the_topics_that_match_also_those_that_come(broker: Broker) -> None:
    options = {"group_id": "g", "metadata_max_age_ms": 100, "heartbeat_interval_ms": 50}
    with consumer_of(broker, **options) as consumer:
        consumer.subscribe(pattern="ord.*")
        _poll_until(lambda: consumer.subscription() == {"orders"}, consumer)
        broker.create_topic("ordinals")
        _poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        assert consumer.subscription() == {"orders", "ordinals"}


def test_a_listener_seeks_and_commits_with_coroutines(broker: Broker) -> None:
    fill(broker)

    async def main() -> int:
        class Late(RebalanceListener):
            async def on_partitions_assigned(self, _partitions: Any) -> None:
                await consumer.commit({ORDERS: 2})
                consumer.seek(ORDERS, 8)

        async with AsyncConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="g"
        ) as consumer:
            consumer.subscribe(["orders"], listener=Late())
            return (await anext(consumer)).offset

    assert asyncio.run(main()) == 8


def test_no_offset_and_no_policy_is_an_error_that_names_the_partition(broker: Broker) -> None:
    with consumer_of(broker, group_id="g", auto_offset_reset="none") as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
            consumer.poll(10_000)
        consumer.commit({ORDERS: 0})
        fill(broker)
        consumer.reset_to_last_committed_positions()
        assert len(read(consumer, 10)) == 10


# What goes wrong.


def test_wakeup_ends_a_poll_of_another_thread(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        timer = threading.Timer(0.05, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(30_000)
        timer.join()
        assert consumer.poll(0) == []


def test_a_second_thread_must_not_poll(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        started = threading.Event()

        def poll() -> None:
            started.set()
            with pytest.raises(WakeupError):
                consumer.poll(30_000)

        thread = threading.Thread(target=poll)
        thread.start()
        started.wait()
        with pytest.raises(IllegalStateError, match="thread"):  # noqa: PT012 - until it polls
            while True:
                consumer.poll(0)
        consumer.wakeup()
        thread.join()


def test_a_second_task_must_not_poll(broker: Broker) -> None:
    async def main() -> None:
        async with AsyncConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([ORDERS])
            first = asyncio.create_task(consumer.poll(200))
            await asyncio.sleep(0)
            with pytest.raises(IllegalStateError, match="one task"):
                await consumer.poll(0)
            await first

    asyncio.run(main())


def test_who_reads_without_pause_leaves_the_loop_to_others(broker: Broker) -> None:
    values = fill(broker, 300)

    async def main() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with AsyncConsumer(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([ORDERS])
            while not await consumer.poll(5000, max_records=1):
                pass
            task = asyncio.create_task(other())
            for _ in range(len(values) - 1):
                time.sleep(0.001)  # noqa: ASYNC251 - what an application does with a record
                await consumer.poll(5000, max_records=1)
            task.cancel()
        return turns

    assert asyncio.run(main()) > 1


def test_a_poll_that_is_cancelled_leaves_the_consumer_as_it_was(broker: Broker) -> None:
    async def main() -> int:
        async with AsyncConsumer(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([ORDERS])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.poll(30_000), 0.05)
            fill(broker)
            found = 0
            while found < 10:
                found += len(await consumer.poll(10_000))
            return found

    assert asyncio.run(main()) == 10


def test_a_topic_that_does_not_exist_is_waited_for_and_read_once_it_is_there(
    broker: Broker,
) -> None:
    with consumer_of(broker, allow_auto_create_topics=False) as consumer:
        consumer.assign([("later", 0)])
        assert consumer.poll(50) == []
        with pytest.raises(KafkaTimeoutError, match="position"):
            consumer.position(("later", 0), timeout_ms=50)
        broker.create_topic("later")
        broker.produce("later", b"1")
        assert [one.value for one in read(consumer, 1)] == [b"1"]


def test_a_closed_consumer_says_so(broker: Broker) -> None:
    consumer = consumer_of(broker)
    consumer.assign([ORDERS])
    consumer.close()
    consumer.close()
    for call in (consumer.poll, lambda: consumer.seek(ORDERS, 1)):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


def test_a_consumer_that_nobody_closes_leaves_a_warning_and_no_thread(broker: Broker) -> None:
    consumer = consumer_of(broker)
    consumer.assign([ORDERS])
    consumer.poll(0)
    with pytest.warns(ResourceWarning, match="was not closed"):  # noqa: PT031 - both
        del consumer
        gc.collect()
    end = time.monotonic() + 10
    while any(one.name == "ottla-consumer" for one in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_broker_is_told_when_the_time_is_over() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        with pytest.raises(KafkaTimeoutError):
            consumer.topics(timeout_ms=100)
        consumer.assign([ORDERS])
        assert consumer.poll(50) == []


@pytest.mark.parametrize("is_subscribed", [True, False])
def test_a_consumer_closes_in_its_time_though_the_broker_is_gone(
    is_subscribed: bool,
) -> None:
    with Broker(topics=["orders"]) as broker:
        consumer = consumer_of(broker, group_id="g")
        if is_subscribed:
            consumer.subscribe(["orders"])
        else:
            consumer.assign([ORDERS])
        fill(broker)
        assert read(consumer, 1)
    begun = time.monotonic()
    consumer.close(timeout_ms=100)
    assert time.monotonic() - begun < consumer.settings.default_api_timeout_ms / 1000
    assert not [one for one in threading.enumerate() if one.name == "ottla-consumer"]


def test_an_option_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidConfigurationError, match="auto_offset_reset"):
        Consumer(bootstrap_servers="kafka:9092", auto_ofset_reset="latest")


def test_metrics_have_kafkas_names(broker: Broker) -> None:
    fill(broker)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        read(consumer, 10)
        consumer.poll(0)
        metrics = consumer.metrics()
    assert metrics["records-consumed-total"] == 10
    assert metrics["records-lag-max"] == 0
    assert metrics["assigned-partitions"] == 1
    assert metrics["bytes-consumed-total"] > 0
    assert metrics["fetch-total"] >= 1


def test_commits_are_counted_once_they_are_made(broker: Broker) -> None:
    with consumer_of(broker, group_id="g") as consumer:
        consumer.commit({ORDERS: 1})
        consumer.commit({ORDERS: 2})
        assert consumer.committed(ORDERS)[ORDERS].offset == 2
        assert consumer.metrics()["commit-total"] == 2
