"""What clients ask of a served broker that cannot be: the protocol's error, and others go on."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ottla
import pytest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.served import COMMAND, Served, SocketClient, client_of, served

OFFSET_OUT_OF_RANGE = 1
INVALID_TOPIC = 17
FENCED_INSTANCE_ID = 82
UNRELEASED_INSTANCE_ID = 111
INVALID_REGULAR_EXPRESSION = 128
KAFKA_STORAGE_ERROR = 56


def is_well(broker: Served) -> bool:
    with client_of(broker.address, "beside") as client:
        return len(client.ask(MetadataRequest(topics=[]), 9).brokers) == 1


def create(client: SocketClient, *names: str) -> set[int]:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    return {topic.error_code for topic in answer.topics}


def produce(client: SocketClient, topic: str, value: bytes) -> int:
    records = ottla.build_batch([ottla.NewRecord(value=value, timestamp=5)])
    data = PartitionProduceData(index=0, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    (answered,) = client.ask(request, 8).responses
    code: int = answered.partition_responses[0].error_code
    return code


def fetch(client: SocketClient, topic: str, offset: int) -> int:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=topics)
    (answered,) = client.ask(request, 11).responses
    code: int = answered.partitions[0].error_code
    return code


def join(client: SocketClient, group: str, instance: str) -> tuple[int, str, int]:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.ask(request, 5)
    return answer.error_code, answer.member_id, answer.generation_id


def test_a_name_of_249_characters_is_a_topic_and_one_of_250_an_error_for_clients_too() -> None:
    with served() as broker, client_of(broker.address) as client:
        assert create(client, "x" * 249) == {0}
        assert produce(client, "x" * 249, b"1") == 0
        assert create(client, "x" * 250) == {INVALID_TOPIC}
        (answered,) = client.ask(MetadataRequest(topics=None), 9).topics
        assert len(answered.name) == 249
        assert is_well(broker)
        assert broker.end() == (0, "")


def test_a_regular_expression_that_runs_away_is_refused_while_others_are_served() -> None:
    with served() as broker, client_of(broker.address) as client:
        names = [
            f"{number:0249b}".translate({48: "a", 49: "b"}) for number in range(2**16, 2**16 + 300)
        ]
        assert create(client, *names) == {0}
        client.ask(FindCoordinatorRequest(key="g"), 3)
        for regex, code in (
            ("(a|b)*a(a|b){240}", INVALID_REGULAR_EXPRESSION),
            ("((((x{1,99}){1,99}){1,99}))", INVALID_REGULAR_EXPRESSION),
            ("(a*)*b", 0),
        ):
            request = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=f"member-{code}",
                member_epoch=0,
                rebalance_timeout_ms=1_000,
                subscribed_topic_regex=regex,
                topic_partitions=[],
            )
            assert client.ask(request, 1).error_code == code, regex
            assert is_well(broker)
        assert broker.end() == (0, "")


def test_of_two_members_with_one_static_id_one_is_fenced_and_others_go_on() -> None:
    with (
        served("--set", "group.initial.rebalance.delay.ms=0") as broker,
        client_of(broker.address) as one,
        client_of(broker.address) as other,
    ):
        one.ask(FindCoordinatorRequest(key="classic"), 3)
        code, first, generation = join(one, "classic", "static")
        assert code == 0
        code, second, _ = join(other, "classic", "static")
        assert (code, second != first) == (0, True)
        beat = HeartbeatRequest(
            group_id="classic",
            generation_id=generation,
            member_id=first,
            group_instance_id="static",
        )
        assert one.ask(beat, 3).error_code == FENCED_INSTANCE_ID
        codes = [
            client.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id="consumer",
                    member_id=name,
                    member_epoch=0,
                    instance_id="static",
                    rebalance_timeout_ms=1_000,
                    subscribed_topic_names=["orders"],
                    topic_partitions=[],
                ),
                1,
            ).error_code
            for name, client in (("a", one), ("b", other))
        ]
        assert codes == [0, UNRELEASED_INSTANCE_ID]
        assert is_well(broker)
        assert broker.end() == (0, "")


def test_offsets_in_the_future_are_out_of_range_to_read_and_may_be_committed() -> None:
    with served("--topic", "orders") as broker, client_of(broker.address) as client:
        assert produce(client, "orders", b"1") == 0
        assert fetch(client, "orders", 1) == 0
        for offset in (2, 1_000, (1 << 63) - 1, -1, -(1 << 63)):
            assert fetch(client, "orders", offset) == OFFSET_OUT_OF_RANGE, offset
        client.ask(FindCoordinatorRequest(key="g"), 3)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=(1 << 63) - 1)
        topics = [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
        # As in Kafka: only a consumer that goes on from there sees that there is nothing.
        answered = client.ask(OffsetCommitRequest(group_id="g", topics=topics), 8)
        assert answered.topics[0].partitions[0].error_code == 0
        assert fetch(client, "orders", 0) == 0
        assert is_well(broker)
        assert broker.end() == (0, "")


@contextmanager
def on_a_small_disk(data: Path) -> Iterator[Served]:
    """A broker whose files cannot grow beyond a MiB, which ends a write as a full disk does."""
    options = ["--data", str(data), "--port", "0", "--set", "log.index.size.max.bytes=65536"]
    with subprocess.Popen(
        ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh", *COMMAND, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Served(process, process.stdout.readline())
        finally:
            process.kill()


def test_a_disk_that_is_full_refuses_what_does_not_fit_and_serves_the_rest(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with on_a_small_disk(data) as broker, client_of(broker.address) as client:
        assert create(client, "orders", "payments") == {0}
        taken, value = 0, os.urandom(200_000)
        while (code := produce(client, "orders", value)) == 0:
            taken += 1
            assert taken < 50
        assert (taken, code) == (5, KAFKA_STORAGE_ERROR)
        assert produce(client, "payments", b"1") == 0
        assert fetch(client, "orders", taken - 1) == 0
        assert is_well(broker)
        assert broker.end()[0] == 0
    with served("--data", data) as broker, client_of(broker.address) as client:
        assert fetch(client, "orders", taken - 1) == 0
        assert fetch(client, "orders", taken + 1) == OFFSET_OUT_OF_RANGE
        assert produce(client, "orders", value) == 0
        assert broker.end() == (0, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for this user")
def test_a_directory_that_is_read_only_is_one_line_with_status_3(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = subprocess.run(
        [*COMMAND, "--port", "0", "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "Permission denied" in done.stderr
