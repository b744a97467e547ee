"""Records that Apache Kafka refuses, and transactions, as its client meets them.

Needs Java and Maven.
"""

from __future__ import annotations

import re
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import (
    AbortableError,
    Consumer,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    Producer,
    TopicPartition,
)
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, kafka_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.slow

ROWS = 400
DAY_MS = 86_400_000
WITHIN_MS = 60_000
KINDS: dict[str, dict[str, Any]] = {
    # Without sequences, order is kept by one request at a time alone.
    "plain": {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1},
    "idempotent": {},
    "transactional": {"transaction_drop_invalid_records": True},
}
# Where a batch has several culprits, nothing says that all of them have the code of the batch.
REASONS: dict[str, tuple[tuple[type[KafkaError], ...], str]] = {
    "no key": ((InvalidRecordError,), "without key|no key|null key"),
    "from tomorrow": ((InvalidTimestampError, InvalidRecordError), "[Tt]imestamp"),
}


@pytest.fixture(scope="module", params=RELEASES_OF_CLIENTS)
def apache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningKafka]:
    """A broker of each release."""
    home = tmp_path_factory.mktemp("kafka")
    with kafka_on(home, request.param, is_formatted=False) as servers:
        yield RunningKafka(servers, request.param)


@pytest.fixture
def naming(apache: RunningKafka) -> RunningKafka:
    """A broker that says which records of a batch it refuses."""
    if not apache.names_culprits:
        pytest.skip("Kafka names records since 2.4")
    return apache


class Rows:
    """Values, and what makes some of them culprits.

    Args:
        reason: a name of `REASONS`.
        culprits: which.
    """

    def __init__(self, reason: str, culprits: Sequence[int], count: int = ROWS) -> None:
        now_ms = int(time.time() * 1000)
        is_keyless = reason == "no key"
        named = {*culprits}
        self.culprits = sorted(named)
        self.values = [b"%d " % row * 20 for row in range(count)]
        self.sound = [value for row, value in enumerate(self.values) if row not in named]
        self.keys = [None if is_keyless and row in named else b"k%d" % row for row in range(count)]
        self.times = [now_ms + DAY_MS * (not is_keyless and row in named) for row in range(count)]


def topic_that_refuses(apache: RunningKafka, name: str, reason: str) -> str:
    name = f"{name}-{apache.release}".replace(" ", "-")
    if reason == "no key":
        apache.create(name, cleanup_policy="compact", min_cleanable_dirty_ratio="1.0")
    elif apache.release == "4.4.0":
        apache.create(name, message_timestamp_after_max_ms="3600000")
    else:
        apache.create(name, message_timestamp_difference_max_ms="3600000")
    return name


def producer_of(apache: RunningKafka, topic: str, kind: str, **options: Any) -> Producer:
    """Several batches at once, each of some ten rows."""
    if kind == "transactional":
        options["transactional_id"] = topic
    return Producer(bootstrap_servers=apache.servers, batch_size=1000, **{**KINDS[kind], **options})


def require_values(apache: RunningKafka, topic: str, wanted: list[bytes]) -> None:
    """Requires that this is there for a reader of what is committed, and nothing else."""
    found: list[bytes] = []
    with Consumer(
        bootstrap_servers=apache.servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        # A transaction that is committed can be read a moment later.
        while len(found) < len(wanted) and (records := consumer.poll(WITHIN_MS)):
            found += [one.value or b"" for one in records]
        found += [one.value or b"" for one in consumer.poll(200)]
    assert found == wanted


def write_rows(producer: Producer, topic: str, rows: Rows) -> tuple[list[int], dict[int, Any]]:
    receipt = producer.produce_many(topic, rows.values, rows.keys, 0, rows.times)
    return receipt.offsets.tolist(), receipt.errors


def write_one_by_one(
    producer: Producer, topic: str, rows: Rows
) -> tuple[list[int], dict[int, Any]]:
    futures = [
        producer.send(topic, value, key, 0, timestamp_ms)
        for value, key, timestamp_ms in zip(rows.values, rows.keys, rows.times, strict=True)
    ]
    errors = {row: error for row, one in enumerate(futures) if (error := one.exception(60))}
    return [one.metadata.offset if one.metadata else -1 for one in futures], errors


@pytest.mark.parametrize(("codec", "write"), [("none", write_rows), ("lz4", write_one_by_one)])
@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_kafka_names_fails_alone_and_the_rest_is_there_once_in_order(
    naming: RunningKafka, kind: str, reason: str, codec: str, write: Any
) -> None:
    topic = topic_that_refuses(naming, f"{kind}-{reason}-{codec}", reason)
    chance = Random(f"{kind} {codec}")
    rows = Rows(reason, [0, *chance.sample(range(ROWS), 40), ROWS - 1])
    with producer_of(naming, topic, kind, compression_type=codec) as producer:
        if kind == "transactional":
            producer.init_transactions()
            producer.begin_transaction()
        offsets, errors = write(producer, topic, rows)
        if kind == "transactional":
            producer.commit_transaction()
        metrics = producer.metrics()
    assert sorted(errors) == rows.culprits
    kinds, text = REASONS[reason]
    assert all(isinstance(error, kinds) for error in errors.values())
    assert [str(error) for error in errors.values() if not re.search(text, str(error))] == []
    assert [offset for offset in offsets if offset >= 0] == [*range(len(rows.sound))]
    require_values(naming, topic, rows.sound)
    assert metrics["record-drop-total"] == len(rows.culprits)


@pytest.mark.parametrize("reason", REASONS)
def test_a_batch_of_culprits_alone_leaves_its_place_to_the_next(
    naming: RunningKafka, reason: str
) -> None:
    topic = topic_that_refuses(naming, f"all-{reason}", reason)
    wrong, sound = Rows(reason, range(50), 50), Rows(reason, [], 50)
    with producer_of(naming, topic, "idempotent") as producer:
        for rows in (wrong, sound, wrong, sound):
            _, errors = write_rows(producer, topic, rows)
            assert sorted(errors) == rows.culprits
    require_values(naming, topic, sound.values * 2)


@pytest.mark.parametrize("kind", ["plain", "idempotent"])
@pytest.mark.parametrize("reason", REASONS)
def test_a_broker_that_names_nobody_has_the_whole_batch_refused(
    apache: RunningKafka, kind: str, reason: str
) -> None:
    if apache.names_culprits:
        pytest.skip("Kafka names records since 2.4")
    topic = topic_that_refuses(apache, f"whole-{kind}-{reason}", reason)
    wrong, sound = Rows(reason, [3], 8), Rows(reason, [], 50)
    # A missing key was a code that clients repeat, until their time is over.
    soon = {"request_timeout_ms": 1000, "delivery_timeout_ms": 3000, "linger_ms": 500}
    with producer_of(apache, topic, kind, **soon) as producer:
        producer.partitions_for(topic)
        for rows in (sound, wrong, sound):
            _, errors = write_one_by_one(producer, topic, rows)
            assert sorted(errors) == ([*range(8)] if rows is wrong else [])
            assert all(isinstance(error, KafkaError) for error in errors.values())
    require_values(apache, topic, sound.values * 2)


def test_a_transaction_with_a_refused_record_aborts_and_the_next_commits(
    naming: RunningKafka,
) -> None:
    topic = topic_that_refuses(naming, "aborts", "no key")
    wrong, sound = Rows("no key", [5], 30), Rows("no key", [], 30)
    options = {"transaction_drop_invalid_records": False}
    with producer_of(naming, topic, "transactional", **options) as producer:
        producer.init_transactions()
        for _ in range(3):
            producer.begin_transaction()
            _, errors = write_rows(producer, topic, wrong)
            assert isinstance(errors[5], InvalidRecordError)
            with pytest.raises(AbortableError):
                producer.commit_transaction()
            producer.abort_transaction()
            producer.begin_transaction()
            assert write_rows(producer, topic, sound)[1] == {}
            producer.commit_transaction()
    require_values(naming, topic, sound.values * 3)
