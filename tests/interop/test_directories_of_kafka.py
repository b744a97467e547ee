"""One directory, served by Ottla and by Apache Kafka in turn. Needs Java and Maven."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from ottla.broker.data.cluster_records import values_of
from ottla.broker.data.cluster_state import ClusterState
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.uuids import uuid_of
from ottla.logs.metadata import parse_meta_properties
from ottla.protocol.messages.cluster_metadata import NoOpRecord
from ottla.protocol.metadata_record import record_bytes
from ottla.testing import Broker
from support.kafka_interop import RELEASES, WITHIN_S, findings, kafka_on
from support.logs import TIMESTAMP

pytestmark = pytest.mark.slow

GROUP = "g"
_CONFIG = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


@contextlib.contextmanager
def ottla_on(home: Path, release: str) -> Iterator[str]:
    lines: list[str] = []
    with Broker(
        data=home / "logs", config=_CONFIG, kafka_version=release, log=lines.append
    ) as broker:
        yield broker.bootstrap_servers
    assert [line for line in lines if "offline" in line or "not left" in line] == []


def create(servers: str) -> None:
    topic = NewTopic("orders", 2, config={"retention.ms": "-1", "max.message.bytes": "54321"})
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.create_topics([topic]).values()
    done.result(WITHIN_S)


def use(servers: str, known: list[bytes]) -> None:
    """Reads all that is known, adds to it by each kind of producer, and commits an offset."""
    for partition in (0, 1):
        expected = [value for value in known if value.endswith(b"%d" % partition)]
        assert read(servers, partition, len(expected)) == expected
    assert committed(servers) == len([value for value in known if value.endswith(b"0")])
    added = [b"%d of %d: %d" % (number, len(known), number % 2) for number in range(20)]
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for value in added:
        producer.produce("orders", value, partition=int(value[-1:]))
    assert producer.flush(WITHIN_S) == 0
    transactional = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    transactional.init_transactions(WITHIN_S)
    for number, is_kept in enumerate((True, False, True)):
        value = b"transaction %d of %d: 0" % (number, len(known))
        transactional.begin_transaction()
        transactional.produce("orders", value, partition=0)
        transactional.flush(WITHIN_S)
        if is_kept:
            transactional.commit_transaction(WITHIN_S)
            added.append(value)
        else:
            transactional.abort_transaction(WITHIN_S)
    known += added
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    at = TopicPartition("orders", 0, len([value for value in known if value.endswith(b"0")]))
    consumer.commit(offsets=[at], asynchronous=False)
    consumer.close()


def read(servers: str, partition: int, count: int) -> list[bytes | None]:
    """The committed records of a partition, which has so many of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("orders", partition, 0)])
    found: list[bytes | None] = []
    while True:
        (message,) = consumer.consume(1, timeout=WITHIN_S)
        if message.error() is not None:
            break
        found.append(message.value())
    consumer.close()
    assert len(found) == count
    return found


def committed(servers: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    (found,) = consumer.committed([TopicPartition("orders", 0)], timeout=WITHIN_S)
    consumer.close()
    offset: int = found.offset
    return max(offset, 0)


def settings(servers: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.describe_configs([resource]).values()
    found = done.result(WITHIN_S)
    return {name: found[name].value for name in ("retention.ms", "max.message.bytes")}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("first", ["ottla", "kafka"])
def test_a_directory_goes_from_one_to_the_other_and_back(
    tmp_path: Path, release: str, first: str
) -> None:
    known: list[bytes] = []
    for turn in range(4):
        is_ours = (first == "ottla") is (turn % 2 == 0)
        serving = (
            ottla_on(tmp_path, release)
            if is_ours
            else kafka_on(tmp_path, release, is_formatted=turn > 0)
        )
        with serving as servers:
            if turn == 0:
                create(servers)
            use(servers, known)
            assert settings(servers) == {"retention.ms": "-1", "max.message.bytes": "54321"}
        assert findings(tmp_path) == [], turn


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_that_one_has_summed_up_the_other_starts_on(tmp_path: Path, release: str) -> None:
    known: list[bytes] = []
    metadata = tmp_path / "logs" / METADATA_DIRECTORY
    with ottla_on(tmp_path, release) as servers:
        create(servers)
        use(servers, known)
    sum_up(metadata)
    assert not (metadata / f"{0:020}.log").exists()
    ours = snapshots(metadata)
    assert len(ours) == 1
    with kafka_on(
        tmp_path, release, metadata_log_max_record_bytes_between_snapshots="1"
    ) as servers:
        use(servers, known)
        create_another(servers)
    assert snapshots(metadata) > ours
    assert findings(tmp_path) == []
    with ottla_on(tmp_path, release) as servers:
        use(servers, known)
        assert settings(servers) == {"retention.ms": "-1", "max.message.bytes": "54321"}
    assert findings(tmp_path) == []


def snapshots(metadata: Path) -> set[str]:
    return {path.name for path in metadata.glob("*.checkpoint")}


def create_another(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.create_topics([NewTopic("b")]).values()
    done.result(WITHIN_S)


def sum_up(metadata: Path) -> None:
    """Leaves of a log a snapshot, and a segment behind it."""
    lines: list[str] = []
    log = MetadataLog(str(metadata), 1, lines.append, segment_bytes=1)
    state = ClusterState()
    state.replay_all(log.load())
    properties = (metadata.parent / "meta.properties").read_bytes()
    directory_id = uuid_of(parse_meta_properties(properties)["directory.id"])
    log.begin_term(TIMESTAMP)
    log.write_snapshot(values_of(state, directory_id), TIMESTAMP)
    log.append([record_bytes(NoOpRecord())], TIMESTAMP)
    log.write_snapshot(values_of(state, directory_id), TIMESTAMP)
    log.append([record_bytes(NoOpRecord())], TIMESTAMP)
    log.delete_old(1)
    log.close()
    assert lines == []
