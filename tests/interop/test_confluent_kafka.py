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
