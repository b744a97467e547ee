"""Producers that Apache Kafka has forgotten with their records. Needs Java and Maven."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import Admin, Consumer, Producer, TopicPartition
from support.content import listed
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, killed_kafka

if TYPE_CHECKING:
    from pathlib import Path

    from support.kafka_broker import Kafka

pytestmark = pytest.mark.slow

WITHIN_MS = 60_000
ROWS = 500
FORGETFUL = TopicPartition("forgetful", 0)


def forget(broker: Kafka) -> None:
    """Deletes all records, and has the broker make its state of what is left."""
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        low = admin.delete_records({FORGETFUL: -1}).check()[FORGETFUL].low_watermark
    assert low >= ROWS
    # After a crash records before the start of the log are not looked at. Kafka writes down where
    # that is for the first time half a minute after it began.
    kept = broker.log_directory / "log-start-offset-checkpoint"
    ends_at = time.monotonic() + WITHIN_MS / 1000
    while f"forgetful 0 {low}\n" not in kept.read_text("utf-8"):
        assert time.monotonic() < ends_at, kept.read_text("utf-8")
        time.sleep(0.1)
    broker.kill()
    broker.start()


def require_forgotten(servers: str) -> None:
    """Requires that the leader knows no producer, or by the end of its transaction alone."""
    with Admin(bootstrap_servers=servers) as admin:
        known = admin.describe_producers([FORGETFUL]).check()[FORGETFUL].producers
    assert [one for one in known if one.last_sequence >= 0] == []


def write(producer: Producer, values: list[bytes], *, is_transactional: bool) -> None:
    if is_transactional:
        producer.begin_transaction()
    producer.produce_many("forgetful", values, partition=0).raise_first()
    if is_transactional:
        producer.commit_transaction()


def read(servers: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([FORGETFUL])
        while len(found) < count and len(columns := consumer.poll_columns(WITHIN_MS)):
            found += listed(columns.value[:2])
        return found + listed(consumer.poll_columns(200).value[:2])


@pytest.mark.skipif(
    "OTTLA_KAFKA_KILLS" not in os.environ,
    reason="waits half a minute for Kafka: `make client-on-kafka` runs it",
)
@pytest.mark.parametrize("kind", ["idempotent", "transactional"])
@pytest.mark.parametrize("release", RELEASES_OF_CLIENTS)
def test_a_producer_goes_on_where_its_deleted_records_made_kafka_forget_it(
    release: str, kind: str, tmp_path: Path
) -> None:
    is_transactional = kind == "transactional"
    options: dict[str, Any] = {"transactional_id": "forgotten"} if is_transactional else {}
    first, second = ([b"%d-%d" % (number, row) for row in range(ROWS)] for number in range(2))
    settings = {"log_flush_start_offset_checkpoint_interval_ms": "100"}
    with killed_kafka(tmp_path, release, **settings) as broker:
        servers = broker.bootstrap_servers
        RunningKafka(servers, release).create("forgetful")
        with Producer(bootstrap_servers=servers, **options) as producer:
            if is_transactional:
                producer.init_transactions()
            write(producer, first, is_transactional=is_transactional)
            forget(broker)
            if release == "4.4.0":
                require_forgotten(servers)
            write(producer, second, is_transactional=is_transactional)
        assert read(servers, ROWS) == second
