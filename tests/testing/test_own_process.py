"""A broker in a process of its own: the same object, and it ends with the test's process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import ottla
import pytest
from ottla.broker.configs.setting import InvalidConfigError
from ottla.errors import ListenError
from ottla.net.operations import Operations
from ottla.testing import Broker

PATIENCE_S = 30.0
API_VERSIONS = bytes.fromhex("0000000c 0012 0000 00000001 0002 6d65")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 2}, process=True) as running:
        yield running


def is_served(bootstrap_servers: str) -> bool:
    host, _, port = bootstrap_servers.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(API_VERSIONS)
            return bool(connection.recv(4096))
    except ConnectionError:
        return False


def produce(broker: Broker, *values: bytes, topic: str = "orders", **settings: Any) -> Any:
    client = confluent_kafka.Producer(broker.client_config(**settings))
    if "transactional_id" in settings:
        client.init_transactions(PATIENCE_S)
        client.begin_transaction()
    for value in values:
        client.produce(topic, value, partition=0)
    assert client.flush(PATIENCE_S) == 0
    return client


def test_what_clients_have_sent_is_read_and_audited_from_here(broker: Broker) -> None:
    produce(broker, b"1", b"2", transactional_id="payments").commit_transaction(PATIENCE_S)
    broker.wait_for(transactional_id="payments", state="CompleteCommit")
    broker.wait_for(topic="orders", records=2)
    assert [record.value for record in broker.records("orders")] == [b"1", b"2"]
    assert [record.value for record in broker.records("orders", 1)] == []
    assert len(broker.columns("orders").offset) == 2
    assert broker.transactions["payments"].state == "CompleteCommit"
    assert [known.last_sequence for known in broker.producers("orders", 0)] == [1]
    assert {entry.api for entry in broker.requests} >= {"Produce", "EndTxn"}
    assert list(broker.audit().findings) == []


def test_a_log_that_is_larger_than_an_answer_is_read_whole(broker: Broker) -> None:
    values = [bytes([number]) * 900_000 for number in range(12)]
    produce(broker, *values, linger_ms=0, batch_num_messages=1)
    assert [record.value for record in broker.records("orders")] == values


def test_groups_are_the_same_objects_as_in_the_process(broker: Broker) -> None:
    client = confluent_kafka.Consumer(broker.client_config(group_id="readers"))
    client.subscribe(["orders"])
    client.poll(0)
    broker.wait_for(group="readers", state="Stable", members=1, timeout_s=PATIENCE_S)
    (member,) = broker.groups["readers"].members
    assert member.assignment == (("orders", 0), ("orders", 1))
    client.close()


def test_faults_and_time_are_in_the_hand_of_the_test() -> None:
    with Broker(["orders"], process=True, frozen_at_ms=1_700_000_000_000) as broker:
        with broker.fail("Metadata", error="INVALID_REQUEST", times=1) as fault:
            with pytest.raises(TimeoutError, match="has struck 0 times"):
                fault.wait(timeout_s=0.01)
            fault.pause()
            fault.release()
            client = confluent_kafka.Producer(broker.client_config())
            assert "orders" in client.list_topics(timeout=PATIENCE_S).topics
            fault.wait(timeout_s=PATIENCE_S)
        assert fault.hits == 1
        broker.clock.advance(seconds=2.5)
        assert broker.clock.now_ms == 1_700_000_002_500


def test_errors_are_those_of_a_broker_in_this_process(broker: Broker) -> None:
    with pytest.raises(ottla.KafkaError, match="already exists") as raised:
        broker.create_topic("orders")
    assert (raised.value.error_code, raised.value.error) == (36, "TOPIC_ALREADY_EXISTS")
    with pytest.raises(ValueError, match="name no group"):
        broker.fail("Metadata", group="readers")
    with pytest.raises(ValueError, match="cannot call `when`"):
        broker.fail("Metadata", when=bool)
    with pytest.raises(ValueError, match="runs no function"):
        broker.run(lambda core: core)
    with pytest.raises(ValueError, match="logs to standard error"):
        Broker(process=True, log=print)


def test_what_cannot_begin_says_why_and_leaves_no_process() -> None:
    for options, kind, said in (
        ({"topics": ["no good"]}, ottla.KafkaError, "invalid"),
        ({"config": {"num.partition": 3}}, InvalidConfigError, "did you mean num.partitions"),
        ({"kafka_version": "1.0"}, ValueError, "the oldest is 2.4"),
    ):
        with pytest.raises(kind, match=said):
            Broker(process=True, **options).start()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ListenError):
        Broker(process=True, port=taken.getsockname()[1]).start()


def test_users_and_tls_are_there_as_well() -> None:
    with Broker(["orders"], process=True, users={"alice": "secret"}, tls=True) as broker:
        client = confluent_kafka.Producer(broker.client_config("alice"))
        assert "orders" in client.list_topics(timeout=PATIENCE_S).topics


def test_a_stopped_broker_says_so(broker: Broker) -> None:
    broker.stop()
    assert not is_served(broker.bootstrap_servers)
    with pytest.raises(ottla.OttlaError, match="stopped"):
        broker.topics  # noqa: B018 - it is asked for


PARENT = """
import sys, time
from ottla.testing import Broker
broker = Broker(process=True).start()
print(broker.bootstrap_servers, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_it_ends_with_the_process_of_the_test_however_that_ends(
    end: signal.Signals | None,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().strip()
        assert is_served(address)
        if end is None:
            parent.communicate("\n", timeout=PATIENCE_S)
        else:
            os.kill(parent.pid, end)
            parent.wait(PATIENCE_S)
    for _ in range(int(PATIENCE_S * 10)):
        if not is_served(address):
            return
        time.sleep(0.1)
    raise AssertionError


def test_what_a_broker_can_be_asked_can_be_asked_of_one_in_another_process() -> None:
    from ottla.net.control_operations import OPERATIONS  # noqa: PLC0415 - beside what it is held to

    public = {name for name in dir(Operations) if not name.startswith("_")}
    assert OPERATIONS.keys() - public == {"operations", "bootstrap_servers", "stop"}
    assert public - OPERATIONS.keys() == set()
