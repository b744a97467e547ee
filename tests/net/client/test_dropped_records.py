"""Records that a broker refuses, and what becomes of those beside them (KIP-467), with our broker.

A compacted topic takes no record without a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import Producer
from ottla.client.errors import (
    AbortableError,
    CommitFailedError,
    InvalidRecordError,
    KafkaError,
    TransactionAbortedError,
)
from ottla.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.client import RecordMetadata
    from ottla.net.client.producer import RecordFuture

KINDS: dict[str, dict[str, Any]] = {
    "none": {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1},
    "idempotent": {},
    "dropping transaction": {"transactional_id": "t", "transaction_drop_invalid_records": True},
}
CULPRITS = {
    "first": [0],
    "middle": [3],
    "last": [6],
    "several": [0, 2, 3, 6],
    "all": [0, 1, 2, 3, 4, 5, 6],
}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"prices-{abs(hash(request.node.name))}"
    broker.create_topic(name, cleanup_policy="compact")
    return name


def producer_of(broker: Broker, **options: Any) -> Producer:
    return Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=20, **options)


def send(producer: Producer, topic: str, values: list[bytes], culprits: list[int]) -> Any:
    """Sends values, those at some places without a key; a batch of them and one behind it."""
    return [
        producer.send(topic, value, key=None if i in culprits else b"k")
        for i, value in enumerate(values)
    ]


def read_back(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def check(broker: Broker, topic: str, futures: list[RecordFuture], culprits: list[int]) -> None:
    """Each culprit has its own error, and each other record its place."""
    log = read_back(broker, topic)
    written: list[RecordMetadata] = []
    for i, future in enumerate(futures):
        error = future.exception(10)
        assert (type(error) is InvalidRecordError) == (i in culprits), error
        if error is None:
            written.append(future.result())
    assert [log[one.offset] for one in written] == [
        b"%d" % i for i in range(len(futures)) if i not in culprits
    ]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("place", CULPRITS)
@pytest.mark.parametrize("kind", KINDS)
def test_refused_records_fail_alone_and_the_others_are_there_once_in_order(
    broker: Broker, topic: str, kind: str, place: str, codec: str
) -> None:
    culprits = CULPRITS[place]
    with producer_of(broker, compression_type=codec, **KINDS[kind]) as producer:
        if "transaction" in kind:
            producer.init_transactions()
            producer.begin_transaction()
        futures = send(producer, topic, [b"%d" % i for i in range(7)], culprits)
        producer.flush()
        if "transaction" in kind:
            producer.commit_transaction()
        check(broker, topic, futures, culprits)
        sound = [b"%d" % i for i in range(7) if i not in culprits]
        assert read_back(broker, topic) == sound
        assert producer.metrics()["record-drop-total"] == len(culprits)
        assert producer.metrics()["record-send-total"] == len(sound)


@pytest.mark.parametrize("kind", ["idempotent", "dropping transaction"])
def test_batches_that_are_under_way_behind_a_refused_one_keep_their_order(
    broker: Broker, topic: str, kind: str
) -> None:
    count = 300
    culprits = [*range(5, count, 7)]
    with producer_of(broker, batch_size=500, **KINDS[kind]) as producer:
        if "transaction" in kind:
            producer.init_transactions()
            producer.begin_transaction()
        futures = send(producer, topic, [b"%d" % i for i in range(count)], culprits)
        producer.flush()
        if "transaction" in kind:
            producer.commit_transaction()
        check(broker, topic, futures, culprits)
        assert read_back(broker, topic) == [b"%d" % i for i in range(count) if i not in culprits]


def test_a_transaction_fails_with_a_refused_record_unless_it_may_be_dropped(
    broker: Broker, topic: str
) -> None:
    with producer_of(broker, transactional_id="strict") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        futures = send(producer, topic, [b"0", b"1", b"2"], [1])
        producer.flush()
        assert [type(one.exception(10)) for one in futures] == [
            TransactionAbortedError,
            InvalidRecordError,
            TransactionAbortedError,
        ]
        with pytest.raises(AbortableError) as raised:
            producer.send(topic, b"3", key=b"k")
        assert type(raised.value.root) is InvalidRecordError
        with pytest.raises(CommitFailedError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"4", key=b"k")
        producer.commit_transaction()
    assert read_back(broker, topic) == [b"4"]


def test_without_dropping_the_records_beside_a_refused_one_fail_by_another_error(
    broker: Broker, topic: str
) -> None:
    with producer_of(broker, drop_invalid_records=False) as producer:
        futures = send(producer, topic, [b"0", b"1", b"2"], [1])
        producer.flush()
        assert [type(one.exception(10)) for one in futures] == [
            KafkaError,
            InvalidRecordError,
            KafkaError,
        ]
        producer.send(topic, b"3", key=b"k").result(10)
    assert read_back(broker, topic) == [b"3"]


def test_rows_of_one_call_have_their_own_errors_and_the_others_their_offsets(
    broker: Broker, topic: str
) -> None:
    with producer_of(broker) as producer:
        receipt = producer.produce_many(topic, [b"0", b"1", b"2"], keys=[b"k", None, b"k"])
    assert receipt.offsets.tolist() == [0, -1, 1]
    assert {row: type(error) for row, error in receipt.errors.items()} == {1: InvalidRecordError}


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_is_too_large_for_its_topic_is_split_with_what_it_refuses_dropped(
    broker: Broker, topic: str, codec: str
) -> None:
    small = f"{topic}-small"
    broker.create_topic(small, cleanup_policy="compact", max_message_bytes=300)
    culprits = [4, 9]
    values = [b"%d" % i for i in range(60)]
    with producer_of(broker, compression_type=codec) as producer:
        futures = send(producer, small, values, culprits)
        producer.flush()
        check(broker, small, futures, culprits)
    assert read_back(broker, small) == [v for i, v in enumerate(values) if i not in culprits]


def test_a_refused_record_is_logged_as_nobody_may_look_at_its_future(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with producer_of(broker) as producer:
        send(producer, topic, [b"0", b"1", b"2"], [1])
    assert f"{topic}-0: 1 record was not written: InvalidRecordError: " in caplog.text
