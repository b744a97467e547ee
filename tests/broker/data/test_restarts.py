"""What a broker knows again after it was stopped, or killed."""

import base64
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.broker.authorizer import (
    AccessRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    RuleFilter,
)
from ottla.broker.broker import Broker
from ottla.broker.configs import resources
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.sasl.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from ottla.errors import LogDirectoryError
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.kept_broker import kept_broker, opened_data
from support.wire_client import NOW_MS, WireClient

RULE = AccessRule(
    ResourceType.TOPIC,
    "orders",
    PatternType.PREFIXED,
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
ALL_RULES = RuleFilter(1, None, 1, None, None, 1, 1)
ENTITY = (("client-id", None), ("user", "alice"))
SALT = bytes(range(16))


class KilledError(Exception):
    """What ends a start where it is."""


killed_or_stopped = pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])


def produce(broker: Broker, topic: str, values: list[bytes], partition: int = 0) -> int:
    batch = ottla.build_batch([ottla.NewRecord(value=v, timestamp=NOW_MS) for v in values])
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer: Any = WireClient(broker).ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == 0
    offset: int = answer.base_offset
    return offset


def values_of(broker: Broker, topic: str, partition: int = 0) -> list[bytes | None]:
    handle = broker.image.topics[topic].partitions[partition].handle
    start = broker.plane.offsets(handle)[0]
    return [record.value for record in ottla.read(broker.plane.read(handle, start, 1 << 30))]


def producer_id(broker: Broker, transactional_id: str | None = None) -> tuple[int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    if transactional_id is not None:
        broker.transactions.ensure_log(NOW_MS)
    answer = WireClient(broker).ask(request, 4)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


@killed_or_stopped
def test_records_are_there_again_and_the_next_one_follows(tmp_path: Path, is_killed: bool) -> None:
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        broker.topics.create("orders", 2, {}, NOW_MS)
        produce(broker, "orders", [b"a", b"b"])
        produce(broker, "orders", [b"c"], partition=1)
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        assert values_of(broker, "orders") == [b"a", b"b"]
        assert values_of(broker, "orders", 1) == [b"c"]
        assert produce(broker, "orders", [b"d"]) == 2
    with kept_broker(tmp_path / "data") as broker:
        assert values_of(broker, "orders") == [b"a", b"b", b"d"]
    result = ottla.audit(tmp_path / "data")
    # The clock of these tests is ahead of the machine's.
    names = {finding["name"] for finding in result.findings}
    assert names <= {"timestamp-suspect"}


@killed_or_stopped
def test_topics_keep_ids_partitions_and_settings(tmp_path: Path, is_killed: bool) -> None:
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        topic = broker.topics.create("a.b", 1, {"retention.ms": "5", "segment.ms": "6"}, NOW_MS)
        broker.topics.create("gone", 1, {}, NOW_MS)
        topic = broker.topics.grow(topic, 3, NOW_MS)
        topic = broker.topics.configure(topic, {"retention.ms": "7", "flush.messages": "1"})
        broker.topics.delete(["gone"])
    with kept_broker(tmp_path / "data") as broker:
        assert [*broker.image.topics] == ["a.b"]
        again = broker.image.topics["a.b"]
        assert (again.topic_id, again.configs) == (topic.topic_id, topic.configs)
        assert [partition.leader_epoch for partition in again.partitions] == [1, 1, 1]
    names = {path.name for path in (tmp_path / "data").iterdir() if path.is_dir()}
    assert names == {"__cluster_metadata-0", "a.b-0", "a.b-1", "a.b-2"}


def quorum(broker: Broker) -> tuple[int, int, int, bytes]:
    """What DescribeQuorum tells: epoch, high watermark, end offset and directory of the voter."""
    asked = [TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
    answer = WireClient(broker).ask(DescribeQuorumRequest(topics=asked), 2)
    [partition] = answer.topics[0].partitions
    [voter] = partition.current_voters
    ends = (partition.high_watermark, voter.log_end_offset)
    return partition.leader_epoch, *ends, voter.replica_directory_id


def test_the_quorum_is_told_where_its_log_is(tmp_path: Path) -> None:
    with kept_broker(tmp_path / "data") as broker:
        epoch, *before, directory = quorum(broker)
        assert before[0] == before[1] > 0
        # A topic, and its two partitions.
        broker.topics.create("orders", 2, {}, NOW_MS)
        assert quorum(broker) == (epoch, before[0] + 3, before[0] + 3, directory)
        meta = (tmp_path / "data" / "meta.properties").read_text()
        told = base64.urlsafe_b64encode(directory).decode().rstrip("=")
        assert f"directory.id={told}" in meta.splitlines()
    with kept_broker(tmp_path / "data") as broker:
        again = quorum(broker)
        assert again[0] == epoch + 1
        # The term begins with a record, and leads both partitions.
        assert again[1] > before[0] + 3


@killed_or_stopped
def test_rules_credentials_quotas_and_settings_of_the_broker_are_kept(
    tmp_path: Path, is_killed: bool
) -> None:
    denied = RULE._replace(permission=Permission.DENY)
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        broker.authorizer.add(RULE)
        broker.authorizer.add(RULE)
        broker.authorizer.add(denied)
        broker.authorizer.remove(denied)
        broker.credentials.add_user("alice", "secret", random_bytes=SALT)
        broker.credentials.delete_scram("alice", SCRAM_SHA_512)
        kept = broker.credentials.scram("alice", SCRAM_SHA_256)
        changes = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
        broker.quotas.alter(ENTITY, changes, validate_only=False)
        broker.quotas.alter(ENTITY, {"request_percentage": None}, validate_only=False)
        settings = {"log.segment.bytes": "2000000", "log.retention.ms": "9"}
        resources.alter(broker, resources.BROKER, "", settings, validate_only=False)
        less = {"log.segment.bytes": "2000000"}
        resources.alter(broker, resources.BROKER, "", less, validate_only=False)
        own = {"log.segment.bytes": "3000000", "listener.name.a.sasl.enabled.mechanisms": "PLAIN"}
        resources.alter(broker, resources.BROKER, "1", own, validate_only=False)
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        assert broker.authorizer.rules(ALL_RULES) == [RULE]
        assert broker.credentials.scram_users() == ["alice"]
        assert broker.credentials.scram("alice", SCRAM_SHA_256) == kept
        assert broker.credentials.scram("alice", SCRAM_SHA_512) is None
        (_, described) = broker.quotas.describe([], strict=False)
        assert described == [(ENTITY, {"producer_byte_rate": 1024.0})]
        assert broker.config.text("log.segment.bytes") == "3000000"
        assert (broker.dynamic.of_all(), broker.dynamic.own()) == (less, own)
        broker.authorizer.remove(RULE)
    with kept_broker(tmp_path / "data") as broker:
        assert broker.authorizer.rules(ALL_RULES) == []


@killed_or_stopped
def test_no_producer_id_is_given_out_twice(tmp_path: Path, is_killed: bool) -> None:
    given = []
    for _ in range(4):
        with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
            given += [producer_id(broker)[0] for _ in range(3)]
    assert len(set(given)) == len(given)


@killed_or_stopped
def test_a_transactional_id_goes_on_with_its_producer_in_a_later_epoch(
    tmp_path: Path, is_killed: bool
) -> None:
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        first = producer_id(broker, "t")
    with kept_broker(tmp_path / "data") as broker:
        second = producer_id(broker, "t")
    assert second == (first[0], first[1] + 1)


@killed_or_stopped
def test_committed_offsets_are_kept(tmp_path: Path, is_killed: bool) -> None:
    with kept_broker(tmp_path / "data", is_killed=is_killed) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        assert commit(WireClient(broker)) == 0
    with kept_broker(tmp_path / "data") as broker:
        wanted = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[wanted])])
        answer = WireClient(broker).ask(fetch, 8)
        assert answer.groups[0].topics[0].partitions[0].committed_offset == 42


def commit(client: WireClient) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[topic]
    )
    code: int = client.ask(request, 8).topics[0].partitions[0].error_code
    return code


@pytest.mark.parametrize("damaged_at", [16, 17, 90, -1])
@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_a_garbled_log_of_a_coordinator_is_told_and_nobody_coordinates_by_it(
    tmp_path: Path, topic: str, damaged_at: int
) -> None:
    directory = tmp_path / "data"
    with kept_broker(directory) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        client = WireClient(broker)
        for _ in range(3):
            assert commit(client) == 0
            request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
            assert client.ask(request, 4).error_code == 0
        groups, transactions = broker.groups.partitions, broker.transactions.partitions
        index = groups.of("g") if topic == "__consumer_offsets" else transactions.of("t")
    log = directory / f"{topic}-{index}" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    starts = [batch.position for batch in ottla.read_batches(bytes(data))]
    data[starts[1] + damaged_at] ^= 1
    log.write_bytes(data)
    lines: list[str] = []
    with kept_broker(directory, lines=lines) as broker:
        [line] = lines
        assert line.startswith(f"{topic}-{index} cannot be loaded, and has no coordinator: ")
        assert f"`ottla audit {directory}` tells what is damaged" in line
        assert list(broker.wrong) == [f"{topic}-{index}"]
        coordinators = broker.groups if topic == "__consumer_offsets" else broker.transactions
        assert index not in coordinators.partitions.led()
    assert log.read_bytes()[: len(data)] == data


def test_a_log_that_is_cut_off_behind_a_clean_stop_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with kept_broker(directory) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        assert [commit(WireClient(broker)) for _ in range(3)] == [0, 0, 0]
        name = f"__consumer_offsets-{broker.groups.partitions.of('g')}"
    log = directory / name / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    last = [batch.position for batch in ottla.read_batches(bytes(data))][-1]
    # The size of the last batch, which reaches beyond the end then.
    data[last + 8] ^= 1
    log.write_bytes(data)
    lines: list[str] = []
    with kept_broker(directory, lines=lines):
        [line] = lines
    assert line.startswith(f"{directory / name}: cut {log.name} from {len(data)} to {last} bytes")
    assert "though the broker was stopped cleanly" in line


def test_a_new_member_gets_an_id_that_no_member_of_before_has(tmp_path: Path) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    members = set()
    for _ in range(4):
        # Each broker draws from the same seed.
        with kept_broker(tmp_path / "data") as broker:
            answer = WireClient(broker).ask(request, 0)
            assert (answer.error_code, answer.member_id in members) == (0, False)
            members.add(answer.member_id)
            assert {*broker.groups.store.groups["g"].members} == members


def test_a_new_rule_gets_an_id_that_no_rule_of_before_has(tmp_path: Path) -> None:
    for number in range(4):
        data = opened_data(tmp_path / "data", seed=7)
        assert len([*data.keeper.rules()]) == number
        data.keeper.add_rule(RULE._replace(resource_name=f"topic-{number}"))
        data.abandon()


def test_each_start_is_a_leader_epoch(tmp_path: Path) -> None:
    with kept_broker(tmp_path / "data") as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        produce(broker, "orders", [b"a"])
    for epoch in (1, 2):
        with kept_broker(tmp_path / "data") as broker:
            produce(broker, "orders", [b"b"])
            partition = broker.image.topics["orders"].partitions[0]
            data = broker.plane.read(partition.handle, 0, 1 << 20)
            assert partition.leader_epoch == epoch
            epochs = [batch.partition_leader_epoch for batch in ottla.read_batches(data)]
            assert epochs == [*range(epoch + 1)]


def test_a_directory_of_no_topic_is_put_aside_and_told(tmp_path: Path) -> None:
    with kept_broker(tmp_path / "data") as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        produce(broker, "orders", [b"a"])
    path = tmp_path / "data"
    (path / "strange-0").mkdir()
    (path / "strange-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: 0oxwDUXU7rJV88pEP6rAlQ"
    )
    deleted = path / f"old-0.{'0' * 32}-delete"
    deleted.mkdir()
    lines: list[str] = []
    with kept_broker(path, lines=lines) as broker:
        assert values_of(broker, "orders") == [b"a"]
    (line,) = lines
    (aside,) = path.glob("strange-0.*-stray")
    assert aside.name in line
    assert not deleted.exists()


def test_a_directory_of_no_topic_is_put_aside_however_long_its_name_is(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with kept_broker(path):
        pass
    topic = "s" * 249
    (path / f"{topic}-0").mkdir()
    (path / f"{topic}-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: 0oxwDUXU7rJV88pEP6rAlQ"
    )
    with kept_broker(path):
        pass
    # As with Kafka, the topic is cut so that there is room for the rest.
    (aside,) = path.glob("sss*-stray")
    assert (len(aside.name), aside.name.count("s-0.")) == (255, 1)


def test_partitions_are_not_put_aside_where_the_log_of_the_controller_is_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    with kept_broker(path) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
    (path / METADATA_DIRECTORY / f"{0:020}.log").write_bytes(b"")
    before = sorted(each.name for each in path.iterdir())
    with (
        pytest.raises(LogDirectoryError, match=r"has partitions \(orders-0\), and __cluster_"),
        kept_broker(path),
    ):
        pass
    assert sorted(each.name for each in path.iterdir()) == before


def test_a_first_start_that_was_killed_begins_with_all_features_at_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KilledError

    path = tmp_path / "data"
    with monkeypatch.context() as patched:
        patched.setattr(MetadataLog, "append", killed)
        with pytest.raises(KilledError), kept_broker(path):
            pass
    with kept_broker(path) as broker:
        after_kill = broker.features
    with kept_broker(tmp_path / "other") as broker:
        assert broker.features == after_kill


def test_partitions_of_another_topic_of_that_name_are_put_aside(tmp_path: Path) -> None:
    with kept_broker(tmp_path / "data") as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
    file = tmp_path / "data" / "orders-0" / "partition.metadata"
    file.write_text("version: 0\ntopic_id: 0oxwDUXU7rJV88pEP6rAlQ")
    lines: list[str] = []
    with kept_broker(tmp_path / "data", lines=lines) as broker:
        assert values_of(broker, "orders") == []
    assert len(lines) == 1
    assert len([*(tmp_path / "data").glob("orders-0.*-stray")]) == 1


def test_a_partition_of_another_broker_is_refused_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    with kept_broker(tmp_path / "data") as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
    meta = tmp_path / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    (tmp_path / "data" / "__cluster_metadata-0" / "quorum-state").unlink()
    with (
        pytest.raises(LogDirectoryError, match="partition orders-0 is on the brokers 1"),
        kept_broker(tmp_path / "data"),
    ):
        pass


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_torn_log_of_the_controller_is_laid_to_a_crash_only_where_there_was_one(
    tmp_path: Path, is_killed: bool
) -> None:
    with kept_broker(tmp_path, is_killed=is_killed):
        pass
    [log] = (tmp_path / "__cluster_metadata-0").glob("*.log")
    log.write_bytes(log.read_bytes()[:-7])
    lines: list[str] = []
    with kept_broker(tmp_path, lines=lines):
        pass
    [line] = [each for each in lines if "no whole batch" in each]
    assert ("as a crash leaves them" in line) is is_killed
    assert ("stopped cleanly" in line) is not is_killed
