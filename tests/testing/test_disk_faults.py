"""A disk that is full, or does not sync, because a test says so."""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from ottla.errors import KafkaError, ServerError
from ottla.testing import Broker

PATIENCE_S = 30.0


@pytest.fixture(params=[False, True], ids=["here", "own process"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with Broker(data=tmp_path / "data", process=request.param) as running:
        running.create_topic("orders", 2)
        running.create_topic("synced", flush_messages=1)
        yield running


class Sender:
    """A producer that sends once, and does not give up on a broker that is gone."""

    def __init__(self, broker: Broker) -> None:
        self.client = confluent_kafka.Producer(
            {**broker.client_config(retries=0, linger_ms=0), "log_level": 0}
        )

    def send(self, topic: str, partition: int = 0, *, timeout_s: float = PATIENCE_S) -> str:
        """The error's name, or nothing; `no answer` where there is none in time."""
        told: list[confluent_kafka.KafkaError | None] = []
        self.client.produce(
            topic, b"1", partition=partition, on_delivery=lambda error, _: told.append(error)
        )
        self.client.flush(timeout_s)
        if not told:
            return "no answer"
        (error,) = told
        return "" if error is None else error.name()


def test_a_full_disk_refuses_records_until_there_is_room(broker: Broker) -> None:
    sender = Sender(broker)
    assert sender.send("orders") == ""
    with broker.fail_disk("full") as fault:
        assert sender.send("orders") == "KAFKA_STORAGE_ERROR"
        assert sender.send("synced") == "KAFKA_STORAGE_ERROR"
        fault.wait(2)
    hits = fault.hits
    assert sender.send("orders") == ""
    assert fault.hits == hits
    assert len(broker.records("orders")) == 2
    assert broker.records("synced") == []
    assert list(broker.audit().findings) == []


def test_a_full_disk_creates_no_topic(broker: Broker) -> None:
    with broker.fail_disk("full") as fault:
        with pytest.raises(KafkaError, match=r"room|space"):
            broker.create_topic("more")
        assert fault.hits == 1
    broker.create_topic("more")
    assert Sender(broker).send("more") == ""


def test_a_disk_may_be_full_for_one_partition(broker: Broker) -> None:
    sender = Sender(broker)
    with broker.fail_disk("full", topic="orders", partition=1) as fault:
        assert sender.send("orders", 0) == ""
        assert sender.send("orders", 1) == "KAFKA_STORAGE_ERROR"
        broker.create_topic("more")
        assert sender.send("more") == ""
        assert fault.hits == 1
    with broker.fail_disk("full", topic="later") as fault:
        broker.create_topic("later")
        assert sender.send("later") == "KAFKA_STORAGE_ERROR"
    assert sender.send("later") == ""


def test_a_sync_that_fails_takes_the_directory_offline(broker: Broker) -> None:
    sender = Sender(broker)
    fault = broker.fail_disk("fsync", topic="synced")
    # What nobody syncs is not struck.
    assert sender.send("orders") == ""
    assert fault.hits == 0
    assert sender.send("synced", timeout_s=0.0) == "no answer"
    fault.wait(1)
    fault.remove()
    assert Sender(broker).send("orders") == "KAFKA_STORAGE_ERROR"


def test_behind_a_sync_that_failed_the_next_broker_has_what_is_on_the_disk(tmp_path: Path) -> None:
    lines: list[str] = []
    with Broker(data=tmp_path, log=lines.append) as broker:
        broker.create_topic("synced", flush_messages=1)
        sender = Sender(broker)
        assert sender.send("synced") == ""
        with broker.fail_disk("fsync") as fault:
            sender.send("synced", timeout_s=0.0)
            fault.wait(1)
            assert "cannot be synced" in broker.run(lambda core: core.wrong["storage"])
    assert any("is offline: it cannot be synced" in line for line in lines)
    with Broker(data=tmp_path) as broker:
        assert len(broker.records("synced")) >= 1
        assert Sender(broker).send("synced") == ""
        assert list(broker.audit().findings) == []


def test_a_full_disk_is_in_the_health_until_there_is_room(tmp_path: Path) -> None:
    lines: list[str] = []
    with Broker(data=tmp_path, log=lines.append) as broker:
        with broker.fail_disk("full"):
            wrong = broker.run(lambda core: dict(core.wrong))
            assert wrong == {"room": f"{tmp_path} has 0 bytes of room left"}
        assert broker.run(lambda core: dict(core.wrong)) == {}
    assert lines[-1] == f"{tmp_path} has room again"


def test_faults_of_the_disk_are_listed_beside_the_others_and_cannot_be_paused(
    tmp_path: Path,
) -> None:
    from ottla.net.operations import Operations  # noqa: PLC0415 - what both ways to a broker use

    with Broker(data=tmp_path) as broker:
        operations = Operations(broker._desk.server)
        of_requests = operations.fail("Produce", error="NOT_LEADER_OR_FOLLOWER")
        of_disk = operations.fail_disk("full", topic="orders")
        listed = {each.fault: (each.disk, each.api, each.topic) for each in operations.faults()}
        assert listed == {of_requests: ("", "Produce", None), of_disk: ("full", "", "orders")}
        with pytest.raises(ValueError, match="is one of the disk"):
            operations.pause(of_disk)
        operations.remove(of_disk)
        assert [each.fault for each in operations.faults()] == [of_requests]
        assert operations.hits(of_disk) == 0


def test_what_is_no_fault_of_a_disk_is_refused(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        with pytest.raises(
            ValueError, match="'slow' is no fault of a disk: expected full or fsync"
        ):
            broker.fail_disk("slow")
        assert not broker.run(lambda core: core.storage.disk_faults)


@pytest.mark.parametrize("process", [False, True], ids=["here", "own process"])
def test_a_broker_in_memory_has_no_disk_that_can_fail(process: bool) -> None:
    with (
        Broker(process=process) as broker,
        pytest.raises((ValueError, ServerError), match="in memory, so there is no disk"),
    ):
        broker.fail_disk("full")
