"""Answers that wait for the disk, and those that do not."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import ottla
import pytest
from ottla.broker.api import APIS
from ottla.broker.broker import Broker
from ottla.broker.data.storage import DirectoryStorage
from ottla.broker.faults import Fault
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
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
from support.kept_broker import kept_broker
from support.wire_client import NOW_MS, Pending, WireClient

Job = tuple[Callable[[], None], Callable[[BaseException | None], None]]


class Worker:
    """What a worker was given and has not done yet."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, job: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        self.jobs.append((job, then))

    def do(self, error: OSError | None = None) -> None:
        job, then = self.jobs.pop(0)
        if error is None:
            job()
        then(error)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def broker(tmp_path: Path, lines: list[str]) -> Iterator[Broker]:
    with kept_broker(tmp_path / "data", lines=lines) as made:
        for name, configs in (
            ("cached", {}),
            ("synced", {"flush.messages": "1"}),
            ("third", {"flush.messages": "3"}),
        ):
            made.topics.create(name, 2, configs, NOW_MS)
        yield made


@pytest.fixture
def worker(broker: Broker) -> Worker:
    made = Worker()
    storage = broker.storage
    assert isinstance(storage, DirectoryStorage)
    storage.flusher.submit = made.submit
    return made


def produce(
    client: WireClient, topic: str, partition: int = 0, records: int = 1, producer_id: int = -1
) -> Pending:
    first = -1 if producer_id < 0 else 0
    batch = ottla.build_batch(
        [ottla.NewRecord(value=b"x", timestamp=NOW_MS) for _ in range(records)],
        producer_id=producer_id,
        producer_epoch=first,
        base_sequence=first,
    )
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return client.send(request, 9)


def error_of(pending: Pending) -> int:
    code: int = pending.answer().responses[0].partition_responses[0].error_code
    return code


def recovery_point(broker: Broker, topic: str) -> int:
    """What is known to be on the disk of the first partition."""
    (found,) = [row[2] for row in broker.plane.checkpoints() if row[:2] == (topic, 0)]
    return found


def commit(client: WireClient) -> Pending:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="cached", partitions=[partition])
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[topic]
    )
    return client.send(request, 8)


def test_records_of_an_ordinary_topic_are_left_to_the_page_cache(
    broker: Broker, worker: Worker
) -> None:
    assert error_of(produce(WireClient(broker), "cached")) == 0
    assert worker.jobs == []


def test_an_answer_waits_until_its_records_are_synced(broker: Broker, worker: Worker) -> None:
    pending = produce(WireClient(broker), "synced")
    assert (pending.waits, pending.is_answered) == (True, False)
    worker.do()
    assert error_of(pending) == 0
    assert worker.jobs == []


def test_whoever_repeats_records_waits_for_the_sync_of_the_first(
    broker: Broker, worker: Worker
) -> None:
    first, again = (produce(WireClient(broker), "synced", producer_id=7) for _ in range(2))
    assert (first.is_answered, again.is_answered) == (False, False)
    worker.do()
    assert (error_of(first), error_of(again)) == (0, 0)
    assert worker.jobs == []
    # They are on the disk by now.
    assert error_of(produce(WireClient(broker), "synced", producer_id=7)) == 0


def test_an_answer_that_a_fault_takes_the_place_of_is_not_sent_when_the_disk_has_it(
    broker: Broker, worker: Worker
) -> None:
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.faults.add(Fault(APIS[ApiKey.PRODUCE], error=error, after=True))
    pending = produce(WireClient(broker), "synced")
    while worker.jobs:
        worker.do()
    assert error_of(pending) == error


def test_all_that_come_during_a_sync_share_the_next_one(broker: Broker, worker: Worker) -> None:
    first = produce(WireClient(broker), "synced")
    later = [produce(WireClient(broker), "synced", index % 2) for index in range(20)]
    assert len(worker.jobs) == 1
    worker.do()
    assert first.is_answered
    assert not any(pending.is_answered for pending in later)
    assert len(worker.jobs) == 1
    worker.do()
    assert [error_of(pending) for pending in later] == [0] * 20


def test_those_who_write_elsewhere_or_read_do_not_wait(broker: Broker, worker: Worker) -> None:
    produce(WireClient(broker), "synced")
    assert error_of(produce(WireClient(broker), "cached")) == 0
    assert WireClient(broker).send(MetadataRequest(topics=None), 9).is_answered
    worker.do()


def test_a_committed_offset_is_synced_before_its_answer(broker: Broker, worker: Worker) -> None:
    pending = commit(WireClient(broker))
    assert (pending.waits, pending.is_answered) == (True, False)
    worker.do()
    assert pending.answer().topics[0].partitions[0].error_code == 0


def test_a_topic_may_be_synced_once_in_a_number_of_records(broker: Broker, worker: Worker) -> None:
    client = WireClient(broker)
    assert error_of(produce(client, "third", records=2)) == 0
    pending = produce(client, "third", records=1)
    assert not pending.is_answered
    worker.do()
    assert error_of(pending) == 0
    assert error_of(produce(client, "third", records=2)) == 0


def test_a_setting_of_the_broker_is_that_of_its_topics(tmp_path: Path) -> None:
    config = {"log.flush.interval.messages": "1"}
    with kept_broker(tmp_path / "data", config) as broker:
        broker.topics.create("a", 1, {}, NOW_MS)
        worker, storage = Worker(), broker.storage
        assert isinstance(storage, DirectoryStorage)
        storage.flusher.submit = worker.submit
        pending = produce(WireClient(broker), "a")
        assert not pending.is_answered
        worker.do()
        assert error_of(pending) == 0


def test_what_a_topic_has_is_synced_when_its_records_are_to_be(
    broker: Broker, worker: Worker
) -> None:
    client = WireClient(broker)
    assert error_of(produce(client, "cached")) == 0
    broker.topics.configure(broker.image.topics["cached"], {"flush.messages": "1"})
    broker.tick(NOW_MS)
    assert recovery_point(broker, "cached") == 0
    worker.do()
    assert recovery_point(broker, "cached") == 1


def test_a_topic_may_be_left_to_the_page_cache_again(broker: Broker, worker: Worker) -> None:
    client = WireClient(broker)
    produce(client, "synced")
    worker.do()
    broker.topics.configure(broker.image.topics["synced"], {})
    assert error_of(produce(client, "synced")) == 0
    assert worker.jobs == []


def test_a_topic_that_is_deleted_during_a_sync_is_no_fault(broker: Broker, worker: Worker) -> None:
    pending = produce(WireClient(broker), "synced")
    broker.topics.delete(["synced"])
    worker.do()
    assert pending.is_answered


def test_a_sync_that_fails_takes_every_partition_offline_and_is_told_in_a_line(
    broker: Broker, worker: Worker, lines: list[str]
) -> None:
    clients = [WireClient(broker) for _ in range(4)]
    first, second = produce(clients[0], "synced"), produce(clients[1], "synced", 1)
    worker.do(OSError(errno.EIO, "Input/output error"))
    # Nobody knows what is on the disk: neither is acknowledged.
    assert [first.frames, second.frames] == [[None], [None]]
    for topic in ("cached", "synced", "third"):
        assert error_of(produce(clients[2], topic)) == ErrorCode.KAFKA_STORAGE_ERROR
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name="more",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="flush.messages", value="1")],
            )
        ],
        timeout_ms=1000,
    )
    created = clients[3].ask(request, 5)
    assert created.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert clients[3].send(MetadataRequest(topics=None), 9).is_answered
    assert len(lines) == 1
    assert "is offline: it cannot be synced (Input/output error)" in lines[0]
    assert worker.jobs == []


def test_a_partition_that_is_offline_takes_no_other_with_it_when_its_sync_is_due(
    broker: Broker, worker: Worker, lines: list[str]
) -> None:
    clients = [WireClient(broker) for _ in range(4)]
    first, second = produce(clients[0], "synced"), produce(clients[1], "synced", 1)
    lost = broker.image.partition("synced", 1)
    assert lost is not None
    broker.plane.take_offline(lost.handle)
    worker.do()
    worker.do()
    # Nobody knows what is on the disk of the second.
    assert (error_of(first), second.frames) == (0, [None])
    assert error_of(produce(clients[2], "synced", 1)) == ErrorCode.KAFKA_STORAGE_ERROR
    third = produce(clients[3], "synced")
    worker.do()
    assert (error_of(third), error_of(produce(clients[2], "cached"))) == (0, 0)
    assert (lines, broker.wrong, worker.jobs) == ([], {}, [])
