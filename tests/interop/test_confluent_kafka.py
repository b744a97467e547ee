"""librdkafka by confluent-kafka: what it sends is stored, and what is stored it receives."""

import time
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from ottla.testing import Broker

PATIENCE_S = 30.0


def producer(broker: Broker, **options: object) -> Any:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            **{key.replace("_", "."): value for key, value in options.items()},
        }
    )


def consumer(broker: Broker, group: str = "readers", **options: object) -> Any:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in options.items()},
        }
    )


def collect(client: Any, count: int) -> list[Any]:
    """So many messages, in the order of their arrival."""
    found: list[Any] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < end:
        message = client.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    assert len(found) == count
    return found


def sent(client: Any, topic: str, values: list[bytes], **more: Any) -> list[Any]:
    """Errors and messages of deliveries, once all are told."""
    told: list[Any] = []
    for value in values:
        client.produce(
            topic, value, on_delivery=lambda error, message: told.append((error, message)), **more
        )
    assert client.flush(PATIENCE_S) == 0
    return told


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_arrive_with_keys_headers_and_timestamps(
    broker: Broker, codec: str
) -> None:
    values = [b"value %d " % number * 20 for number in range(100)]
    client = producer(broker, compression_type=codec, linger_ms=50)
    told = sent(
        client, "orders", values, key=b"key", headers={"h": b"1"}, timestamp=1_700_000_000_000
    )
    assert [error for error, _ in told] == [None] * 100
    stored = broker.records("orders")
    assert [record.value for record in stored] == values
    assert {record.key for record in stored} == {b"key"}
    assert {record.timestamp for record in stored} == {1_700_000_000_000}
    partition = told[0][1].partition()
    reader = consumer(broker)
    reader.assign([confluent_kafka.TopicPartition("orders", partition, 0)])
    received = collect(reader, 100)
    assert [message.value() for message in received] == values
    assert received[0].headers() == [("h", b"1")]
    assert received[0].timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    reader.close()


def test_an_idempotent_producer_that_is_cut_off_behind_an_append_stores_each_record_once(
    broker: Broker,
) -> None:
    client = producer(broker, enable_idempotence=True)
    sent(client, "orders", [b"0"], partition=0)
    cut = broker.fail("Produce", disconnect=True, after=True, times=1)
    told = sent(client, "orders", [b"1"], partition=0)
    assert cut.hits == 1
    assert [(error, message.offset()) for error, message in told] == [(None, 1)]
    assert [record.value for record in broker.records("orders", 0)] == [b"0", b"1"]


def test_a_record_that_a_compacted_topic_refuses_is_told_in_the_brokers_words(
    broker: Broker,
) -> None:
    broker.create_topic("compacted", cleanup_policy="compact")
    ((error, _),) = sent(producer(broker), "compacted", [b"no key"], partition=0)
    assert error.code() == confluent_kafka.KafkaError.INVALID_RECORD
    assert broker.records("compacted") == []
    (entry,) = [request for request in broker.requests if request.api == "Produce"]
    assert entry.errors == (87,)
    assert entry.software_name == "confluent-kafka-python"


def test_offsets_are_found_by_time_and_at_both_ends(broker: Broker) -> None:
    client = producer(broker)
    for number in range(5):
        sent(client, "orders", [b"%d" % number], partition=0, timestamp=1_700_000_000_000 + number)
    reader = consumer(broker)
    partition = confluent_kafka.TopicPartition("orders", 0, 1_700_000_000_003)
    (found,) = reader.offsets_for_times([partition], timeout=PATIENCE_S)
    assert found.offset == 3
    assert reader.get_watermark_offsets(partition, timeout=PATIENCE_S) == (0, 5)
    reader.close()


def done(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(PATIENCE_S) for future in futures.values()]


def test_admin_calls_create_grow_configure_describe_and_delete(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    done(admin.create_topics([NewTopic("new", 2, 1, config={"retention.ms": "1000"})]))
    done(admin.create_partitions([NewPartitions("new", 4)]))
    assert broker.topics["new"] == 4
    resource = ConfigResource(
        ResourceType.TOPIC,
        "new",
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
        ],
    )
    done(admin.incremental_alter_configs([resource]))
    (described,) = done(admin.describe_configs([ConfigResource(ResourceType.TOPIC, "new")]))
    assert described["cleanup.policy"].value == "delete,compact"
    assert described["retention.ms"].value == "1000"
    partition = confluent_kafka.TopicPartition("new", 3)
    (latest,) = done(admin.list_offsets({partition: OffsetSpec.latest()}))
    assert latest.offset == 0
    assert {broker_.id for broker_ in admin.list_topics(timeout=PATIENCE_S).brokers.values()} == {1}
    done(admin.delete_topics(["new"]))
    assert "new" not in broker.topics
    with pytest.raises(confluent_kafka.KafkaException, match="already exists"):
        done(admin.create_topics([NewTopic("orders", 1, 1)]))


def test_a_fetch_that_waits_is_answered_by_a_record_and_not_by_its_time(broker: Broker) -> None:
    reader = consumer(broker, fetch_wait_max_ms=20_000)
    reader.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    assert reader.poll(0.5) is None
    begin = time.monotonic()
    sent(producer(broker), "orders", [b"now"], partition=0)
    (message,) = collect(reader, 1)
    assert message.value() == b"now"
    assert time.monotonic() - begin < 15
    reader.close()


def transactional(broker: Broker, transactional_id: str = "t") -> Any:
    client = producer(broker, transactional_id=transactional_id)
    client.init_transactions(PATIENCE_S)
    return client


def values_of(broker: Broker, isolation: str, count: int) -> list[bytes]:
    reader = consumer(broker, f"g-{isolation}", isolation_level=isolation)
    reader.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    found = [message.value() for message in collect(reader, count)]
    assert reader.poll(0.3) is None
    reader.close()
    return found


def test_committed_readers_get_what_was_committed_and_the_others_all(broker: Broker) -> None:
    client = transactional(broker)
    for value, is_committed in ((b"a", True), (b"b", False), (b"c", True)):
        client.begin_transaction()
        client.produce("orders", value, partition=0)
        client.flush(PATIENCE_S)
        if is_committed:
            client.commit_transaction(PATIENCE_S)
        else:
            client.abort_transaction(PATIENCE_S)
    assert values_of(broker, "read_committed", 2) == [b"a", b"c"]
    assert values_of(broker, "read_uncommitted", 3) == [b"a", b"b", b"c"]


def test_a_second_producer_of_a_transactional_id_fences_the_first(broker: Broker) -> None:
    first = transactional(broker)
    first.begin_transaction()
    first.produce("orders", b"never", partition=0)
    first.flush(PATIENCE_S)
    second = transactional(broker)
    second.begin_transaction()
    second.produce("orders", b"ever", partition=0)
    second.commit_transaction(PATIENCE_S)
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        first.commit_transaction(PATIENCE_S)
    assert raised.value.args[0].fatal()
    assert values_of(broker, "read_committed", 1) == [b"ever"]


def test_offsets_are_committed_with_a_transaction_or_not_at_all(broker: Broker) -> None:
    sent(producer(broker), "orders", [b"0", b"1", b"2"], partition=0)
    client = transactional(broker)
    for offset, is_committed in ((2, True), (3, False)):
        reader = consumer(broker, "copiers", enable_auto_commit=False)
        reader.subscribe(["orders"])
        collect(reader, 3 if offset == 2 else 1)
        client.begin_transaction()
        position = confluent_kafka.TopicPartition("orders", 0, offset)
        client.send_offsets_to_transaction([position], reader.consumer_group_metadata(), PATIENCE_S)
        if is_committed:
            client.commit_transaction(PATIENCE_S)
        else:
            client.abort_transaction(PATIENCE_S)
        (committed,) = reader.committed(
            [confluent_kafka.TopicPartition("orders", 0)], timeout=PATIENCE_S
        )
        assert committed.offset == 2
        reader.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_a_group_share_the_partitions_and_go_on_behind_each_other(
    broker: Broker, protocol: str
) -> None:
    options: dict[str, object] = {"group_protocol": protocol, "enable_auto_commit": False}
    sink = producer(broker)
    for partition in range(3):
        sent(sink, "orders", [b"%d-%d" % (partition, n) for n in range(4)], partition=partition)
    first, second = consumer(broker, "team", **options), consumer(broker, "team", **options)
    for member in (first, second):
        member.subscribe(["orders"])
    held = joined(first, second)
    assert sorted(held[0] + held[1]) == [0, 1, 2]
    assert held[0]
    assert held[1]
    received = first.consume(100, 2.0) + second.consume(100, 2.0)
    end = time.monotonic() + PATIENCE_S
    while len(received) < 12 and time.monotonic() < end:
        received += first.consume(100, 0.2) + second.consume(100, 0.2)
    assert {message.value() for message in received} == {
        b"%d-%d" % (partition, n) for partition in range(3) for n in range(4)
    }
    for member in (first, second):
        member.commit(asynchronous=False)
        member.close()
    sent(sink, "orders", [b"later"], partition=1)
    third = consumer(broker, "team", **options)
    third.subscribe(["orders"])
    (message,) = collect(third, 1)
    assert message.value() == b"later"
    third.close()


def joined(*members: Any) -> list[list[int]]:
    """The partitions of each member, once all have some and all are given out."""
    end = time.monotonic() + PATIENCE_S
    seen: list[Any] = []
    while time.monotonic() < end:
        for member in members:
            # Records that come meanwhile are read again from the beginning.
            message = member.poll(0.05)
            if message is not None:
                assert message.error() is None
                seen.append(message)
        held = [[each.partition for each in member.assignment()] for member in members]
        if all(held) and sum(map(len, held)) == 3 and all(map(begins_anew, members, held)):
            return held
    raise AssertionError("the group has not come to rest")


def begins_anew(member: Any, partitions: list[int]) -> bool:
    """Whether a member reads its partitions from the beginning: not one that is about to begin."""
    try:
        for partition in partitions:
            member.seek(confluent_kafka.TopicPartition("orders", partition, 0))
    except confluent_kafka.KafkaException as error:
        if error.args[0].code() != confluent_kafka.KafkaError._STATE:
            raise
        return False
    return True


def test_groups_are_described_listed_and_deleted(broker: Broker) -> None:
    sent(producer(broker), "orders", [b"0"], partition=0)
    reader = consumer(broker, "team")
    reader.subscribe(["orders"])
    collect(reader, 1)
    reader.commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (described,) = done(admin.describe_consumer_groups(["team"]))
    assert described.state == confluent_kafka.ConsumerGroupState.STABLE
    assert len(described.members) == 1
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert [group.group_id for group in listed.valid] == ["team"]
    reader.close()
    done(admin.delete_consumer_groups(["team"]))
    assert admin.list_consumer_groups().result(PATIENCE_S).valid == []


def test_a_consumer_of_a_compacted_topic_gets_the_newest_value_of_each_key() -> None:
    with Broker() as broker:
        broker.create_topic("prices", cleanup_policy="compact", delete_retention_ms=60_000)
        client = producer(broker, enable_idempotence=True)
        for number in range(100):
            client.produce("prices", b"%d" % number, key=b"key-%d" % (number % 10))
            if number % 7 == 0:
                client.flush(PATIENCE_S)
        client.produce("prices", None, key=b"key-3")
        client.flush(PATIENCE_S)
        broker.compact("prices")

        reader = consumer(broker)
        reader.subscribe(["prices"])
        expected = {b"key-%d" % key: b"%d" % (90 + key) for key in range(10)} | {b"key-3": None}
        found = collect(reader, 10)
        assert {message.key(): message.value() for message in found} == expected
        assert [message.offset() for message in found] == [90, 91, 92, *range(94, 101)]
        reader.close()

        # From the middle of what is gone, the next record that is there.
        reader = consumer(broker, "others")
        reader.assign([confluent_kafka.TopicPartition("prices", 0, 50)])
        assert collect(reader, 1)[0].offset() == 90
        partition = confluent_kafka.TopicPartition("prices", 0)
        assert reader.get_watermark_offsets(partition) == (0, 101)
        first = confluent_kafka.TopicPartition("prices", 0, found[0].timestamp()[1])
        assert reader.offsets_for_times([first], timeout=PATIENCE_S)[0].offset == 90
        reader.close()

        # The producer goes on in sequence, and the tombstone goes with the clock.
        client.produce("prices", b"last", key=b"key-0")
        assert client.flush(PATIENCE_S) == 0
        broker.clock.advance(seconds=61)
        broker.compact("prices")
        left = {record.key: record.value for record in broker.records("prices")}
        del expected[b"key-3"]
        assert left == expected | {b"key-0": b"last"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_with_the_one_member_that_is_left(broker: Broker, protocol: str) -> None:
    options: dict[str, object] = {"group_protocol": protocol, "enable_auto_commit": False}
    first, second = consumer(broker, "team", **options), consumer(broker, "team", **options)
    for member in (first, second):
        member.subscribe(["orders"])
    joined(first, second)
    second.close()
    end = time.monotonic() + PATIENCE_S
    while len(first.assignment()) < 3 and time.monotonic() < end:
        first.poll(0.05)
    sink = producer(broker)
    for partition in range(3):
        sent(sink, "orders", [b"%d" % partition], partition=partition)
    assert {message.value() for message in collect(first, 3)} == {b"0", b"1", b"2"}
    first.close()
