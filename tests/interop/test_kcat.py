"""kcat, the command line of librdkafka: what it sends is stored, and what is stored it prints."""

import json
import re
import subprocess
import time
from typing import Any

import pytest
from ottla.testing import Broker
from support.programs import required

PATIENCE_S = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def kcat(
    broker: Broker, *arguments: str, lines: list[str] | None = None, user: str | None = None
) -> str:
    """What it prints of a call that succeeds; `lines` are the records that it sends."""
    done = called(broker, *arguments, lines=lines, user=user)
    assert done.returncode == 0, done.stderr
    return done.stdout


def called(
    broker: Broker, *arguments: str, lines: list[str] | None = None, user: str | None = None
) -> subprocess.CompletedProcess[str]:
    # Without a file it would read the one of the user who runs the test.
    command = [required("kcat"), "-F", "/dev/null"]
    for name, value in broker.client_config(user).items():
        command += ["-X", f"{name}={value}"]
    return subprocess.run(
        [*command, *arguments],
        input="".join(f"{line}\n" for line in lines or []),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def received(broker: Broker, partition: int, *more: str) -> list[Any]:
    """All records of a partition of orders."""
    reading = ("-C", "-t", "orders", "-p", str(partition), "-o", "beginning", "-e", "-q", "-J")
    return [json.loads(line) for line in kcat(broker, *reading, *more).splitlines()]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_codec_arrive_with_keys_and_headers(broker: Broker, codec: str) -> None:
    values = [f"value {number} " * 20 for number in range(50)]
    sending = ("-P", "-t", "orders", "-p", "1", "-z", codec, "-K:", "-H", "colour=red")
    kcat(broker, *sending, "-X", "linger.ms=50", lines=[f"key:{value}" for value in values])
    stored = broker.records("orders")
    assert [record.value for record in stored] == [value.encode() for value in values]
    assert {record.key for record in stored} == {b"key"}
    found = received(broker, 1)
    assert [record["payload"] for record in found] == values
    assert found[0]["headers"] == ["colour", "red"]
    assert (found[0]["key"], found[-1]["offset"], found[0]["tstype"]) == ("key", 49, "create")


def test_an_idempotent_producer_sends_again_what_was_stored_unanswered(broker: Broker) -> None:
    lost = broker.fail("Produce", error="REQUEST_TIMED_OUT", after=True, times=1)
    sending = ("-P", "-t", "orders", "-p", "0", "-X", "enable.idempotence=true")
    kcat(broker, *sending, lines=["0", "1"])
    assert lost.hits == 1
    assert [record.value for record in broker.records("orders", 0)] == [b"0", b"1"]


def test_a_transaction_is_read_once_it_is_committed(broker: Broker) -> None:
    sending = ("-P", "-t", "orders", "-p", "0", "-X", "transactional.id=copier")
    with broker.fail("EndTxn", error="INVALID_TXN_STATE", transactional_id="copier"):
        refused = called(broker, *sending, lines=["never"])
    assert refused.returncode == 1
    kcat(broker, *sending, lines=["a", "b"])
    committed = received(broker, 0, "-X", "isolation.level=read_committed")
    assert [record["payload"] for record in committed] == ["a", "b"]
    every = received(broker, 0, "-X", "isolation.level=read_uncommitted")
    assert [record["payload"] for record in every] == ["never", "a", "b"]
    assert broker.transactions["copier"].state == "CompleteCommit"


def test_metadata_names_the_broker_its_topics_and_their_leaders(broker: Broker) -> None:
    told = json.loads(kcat(broker, "-L", "-J"))
    assert told["brokers"] == [{"id": 1, "name": broker.bootstrap_servers}]
    assert told["controllerid"] == 1
    (topic,) = told["topics"]
    assert topic["topic"] == "orders"
    alone = [{"id": 1}]
    assert topic["partitions"] == [
        {"partition": number, "leader": 1, "replicas": alone, "isrs": alone} for number in range(3)
    ]


def test_offsets_are_found_by_time_and_at_both_ends(broker: Broker) -> None:
    for value in ("a", "b", "c"):
        kcat(broker, "-P", "-t", "orders", "-p", "2", lines=[value])
        # Times of records are in milliseconds, and kcat takes those of the machine.
        time.sleep(0.002)
    times = [record.timestamp for record in broker.records("orders", 2)]
    asked = {-2: 0, times[0]: 0, times[1]: 1, times[2]: 2, times[2] + 60_000: -1, -1: 3}
    for timestamp, offset in asked.items():
        told = kcat(broker, "-Q", "-t", f"orders:2:{timestamp}")
        assert told == f"orders [2] offset {offset}\n", timestamp
    later = f"s@{times[1]}"
    reading = ("-C", "-t", "orders", "-p", "2", "-o", later, "-e", "-q")
    assert kcat(broker, *reading) == "b\nc\n"


def test_a_group_goes_on_where_it_has_ended(broker: Broker) -> None:
    for partition in range(3):
        kcat(broker, "-P", "-t", "orders", "-p", str(partition), lines=[f"{partition}"])
    # The topics of a group end its arguments.
    reading = ("-G", "team", "-e", "-q", "-X", "auto.offset.reset=earliest", "orders")
    assert sorted(kcat(broker, *reading).splitlines()) == ["0", "1", "2"]
    kcat(broker, "-P", "-t", "orders", "-p", "1", lines=["later"])
    assert kcat(broker, *reading) == "later\n"
    assert {each.partition: each.offset for each in broker.groups["team"].offsets} == {
        0: 1,
        1: 2,
        2: 1,
    }


def test_a_refused_record_is_told_as_invalid(broker: Broker) -> None:
    """Its librdkafka asks for a version of Produce that is older than KIP-467."""
    broker.create_topic("compacted", cleanup_policy="compact")
    refused = called(broker, "-P", "-t", "compacted", lines=["no key"])
    assert refused.returncode == 1
    assert "Delivery failed for message: Broker: Invalid re" in refused.stderr
    (entry,) = [request for request in broker.requests if request.api == "Produce"]
    assert entry.errors == ((42,) if entry.version < 8 else (87,))
    assert broker.records("compacted") == []


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_is_let_in_with_the_right_password_alone(mechanism: str) -> None:
    with Broker(topics=["orders"], users={"alice": "secret"}, tls=True) as broker:
        by_mechanism = ("-X", f"sasl.mechanism={mechanism}")
        wrong = ("-L", *by_mechanism, "-X", "sasl.password=guessed", "-m", "2")
        refused = called(broker, *wrong, user="alice")
        assert refused.returncode == 1
        sending = ("-P", "-t", "orders", *by_mechanism)
        if mechanism != "PLAIN" and version_of_librdkafka() < (2, 6, 1):
            # It repeats its nonce, which Kafka refuses from 4.0 on.
            refused = called(broker, *sending, lines=["a"], user="alice")
            assert "Invalid client nonce" in refused.stderr
            return
        assert "uthentication failed" in refused.stderr
        kcat(broker, *sending, lines=["a"], user="alice")
        assert [record.value for record in broker.records("orders")] == [b"a"]


def version_of_librdkafka() -> tuple[int, ...]:
    said = subprocess.run(
        [required("kcat"), "-V"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", said)
    assert found is not None, said
    return tuple(map(int, found.groups()))
