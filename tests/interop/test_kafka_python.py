"""kafka-python: a client in pure Python that negotiates every version by itself."""

import socket
from typing import Any

import kafka
import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import InvalidRecordError, KafkaError
from ottla.testing import Broker

PATIENCE_S = 30


def consumer(broker: Broker, *topics: str, **options: Any) -> Any:
    return kafka.KafkaConsumer(
        *topics,
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
        **options,
    )


def collect(client: Any, count: int) -> list[Any]:
    found = []
    for record in client:
        found.append(record)
        if len(found) == count:
            break
    assert len(found) == count
    return found


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_it_sends_it_receives(broker: Broker, codec: str | None) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, compression_type=codec
    )
    sent = [
        producer.send("orders", b"v%d" % n, key=b"k", headers=[("h", b"1")], partition=1)
        for n in range(20)
    ]
    assert [future.get(PATIENCE_S).offset for future in sent] == list(range(20))
    producer.close()
    reader = consumer(broker)
    reader.assign([kafka.TopicPartition("orders", 1)])
    records = collect(reader, 20)
    assert [record.value for record in records] == [b"v%d" % n for n in range(20)]
    assert records[0].headers == (("h", b"1"),) or records[0].headers == [("h", b"1")]
    reader.close()


def test_a_refused_record_is_told_with_its_own_message_and_its_siblings_apart(
    broker: Broker,
) -> None:
    """KIP-467 as far as a client takes it."""
    broker.create_topic("compacted", cleanup_policy="compact")
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, linger_ms=500, retries=0
    )
    keys = [b"a", None, b"c"]
    sent = [producer.send("compacted", b"v", key=key) for key in keys]
    told = []
    for future in sent:
        with pytest.raises(KafkaError) as raised:
            future.get(PATIENCE_S)
        told.append(raised.value)
    producer.close()
    assert isinstance(told[1], InvalidRecordError)
    assert "key" in str(told[1])
    assert str(told[0]) != str(told[1])
    assert broker.records("compacted") == []


def test_a_group_commits_and_goes_on(broker: Broker) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for n in range(6):
        producer.send("orders", b"%d" % n, partition=0).get(PATIENCE_S)
    first = consumer(broker, "orders", group_id="team", enable_auto_commit=False)
    assert [record.value for record in collect(first, 6)] == [b"%d" % n for n in range(6)]
    first.commit()
    first.close()
    producer.send("orders", b"later", partition=0).get(PATIENCE_S)
    second = consumer(broker, "orders", group_id="team", enable_auto_commit=False)
    assert [record.value for record in collect(second, 1)] == [b"later"]
    second.close()
    producer.close()


def test_admin_calls_create_list_and_delete_topics(broker: Broker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic("new", 2, 1)])
    assert broker.topics["new"] == 2
    assert set(admin.list_topics()) >= {"new", "orders"}
    admin.delete_topics(["new"])
    assert "new" not in broker.topics
    admin.close()


def test_an_administrator_changes_what_a_running_broker_can_change(broker: Broker) -> None:
    of_broker = ConfigResource(ConfigResourceType.BROKER, "1")
    of_loggers = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)

    def value(resource: Any, name: str) -> str | None:
        asked = admin.describe_configs([resource], config_filter="all")
        ((_, by_name),) = asked[resource.resource_type.name.lower()].items()
        found: str | None = by_name[name]["value"]
        return found

    def alter(kind: ConfigResourceType, name: str, text: str, **options: Any) -> Any:
        changed = admin.alter_configs([ConfigResource(kind, "1", configs={name: text})], **options)
        return changed[kind.name.lower()]["1"]

    assert value(of_loggers, "root") == "INFO"
    assert alter(ConfigResourceType.BROKER_LOGGER, "root", "ERROR") == "OK"
    assert value(of_loggers, "root") == "ERROR"
    # It finds by itself which settings cannot change.
    with pytest.raises(ValueError, match=r"Unrecognized configs: .*num\.partitions"):
        alter(ConfigResourceType.BROKER, "num.partitions", "7")
    refusal = alter(ConfigResourceType.BROKER, "num.partitions", "7", raise_on_unknown=False)
    assert "Cannot update these configs dynamically: [num.partitions]" in refusal
    assert value(of_broker, "num.partitions") == "1"
    assert alter(ConfigResourceType.BROKER, "max.connections", "1") == "OK"
    assert value(of_broker, "max.connections") == "1"
    host, port = broker.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as refused:
        assert refused.recv(1) == b""
    admin.close()


def test_an_idempotent_producer_that_is_cut_off_stores_each_record_once(broker: Broker) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True
    )
    producer.send("orders", b"0", partition=0).get(PATIENCE_S)
    cut = broker.fail("Produce", disconnect=True, after=True, times=1)
    assert producer.send("orders", b"1", partition=0).get(PATIENCE_S).offset == 1
    assert cut.hits == 1
    assert [record.value for record in broker.records("orders", 0)] == [b"0", b"1"]
    producer.close()


def test_committed_readers_get_what_was_committed_and_the_others_all(broker: Broker) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t")
    producer.init_transactions()
    for value in (b"a", b"b", b"c"):
        producer.begin_transaction()
        producer.send("orders", value, partition=0).get(PATIENCE_S)
        if value == b"b":
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    for isolation, expected in (
        ("read_committed", [b"a", b"c"]),
        ("read_uncommitted", [b"a", b"b", b"c"]),
    ):
        reader = consumer(broker, isolation_level=isolation)
        reader.assign([kafka.TopicPartition("orders", 0)])
        assert [record.value for record in collect(reader, len(expected))] == expected
        reader.close()


def test_offsets_are_found_by_time_and_at_both_ends(broker: Broker) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for n in range(5):
        sent = producer.send("orders", b"v", partition=0, timestamp_ms=1_700_000_000_000 + n)
        sent.get(PATIENCE_S)
    producer.close()
    reader, partition = consumer(broker), kafka.TopicPartition("orders", 0)
    assert reader.offsets_for_times({partition: 1_700_000_000_003})[partition].offset == 3
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 5}
    reader.close()
