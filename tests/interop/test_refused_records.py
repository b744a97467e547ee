"""What real producers make of records that are refused (KIP-467), and of a log that forgot them.

A batch is refused as a whole, and its answer names the records to blame. No client sends the others
again. kafka-python gives a named record its own message and the others a general error. librdkafka
has one code for a batch where one record is named; where more are, the others get a code of their
own. confluent-kafka hands on these codes, and none of the messages. aiokafka and older versions of
librdkafka ask for a version of Produce that has neither.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import pytest
from kafka.errors import InvalidRecordError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing import Broker

PATIENCE_S = 30
UNKNOWN_PRODUCER_ID = 59
INVALID_RECORD = confluent_kafka.KafkaError.INVALID_RECORD
INVALID_BESIDE = confluent_kafka.KafkaError._INVALID_DIFFERENT_RECORD


@pytest.fixture
def compacted(broker: Broker) -> Broker:
    """The broker with a compacted topic of one partition."""
    broker.create_topic("compacted", cleanup_policy="compact")
    return broker


def own_message(index: int) -> str:
    return f"record {index}: no key, but the topic is compacted"


def told_by_confluent(broker: Broker, keys: list[bytes | None], **options: Any) -> list[int]:
    """The codes that the callbacks get, 0 for none, of records that went in one batch."""
    client = confluent_kafka.Producer(batched(broker, len(keys)) | options)
    told: dict[int, int] = {}
    for index, key in enumerate(keys):

        def note(error: Any, _message: Any, index: int = index) -> None:
            told[index] = 0 if error is None else error.code()

        client.produce("compacted", b"v", key=key, partition=0, on_delivery=note)
    assert client.flush(PATIENCE_S) == 0
    return [told[index] for index in range(len(keys))]


def batched(broker: Broker, count: int) -> dict[str, str]:
    """Settings with which so many records go in one batch."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "linger.ms": str(PATIENCE_S * 1000),
        "batch.num.messages": str(count),
    }


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_librdkafka_has_one_code_for_a_batch_of_one_culprit(
    compacted: Broker, *, is_idempotent: bool
) -> None:
    options = {"enable.idempotence": is_idempotent}
    told = told_by_confluent(compacted, [b"a", None, b"c"], **options)
    assert told == [INVALID_RECORD] * 3
    assert compacted.records("compacted") == []


def test_confluent_kafka_hands_on_the_general_text_of_each_code_alone(compacted: Broker) -> None:
    client = confluent_kafka.Producer(batched(compacted, 3))
    told: list[str] = []
    for key in (None, b"b", None):
        client.produce(
            "compacted", b"v", key, 0, on_delivery=lambda error, _: told.append(error.str())
        )
    assert client.flush(PATIENCE_S) == 0
    general = "Broker: Broker failed to validate record"
    sibling = "Local: an invalid record in the same batch caused the failure of this message too"
    assert told == [general, sibling, general]


def test_aiokafka_has_one_error_for_all_which_is_older_than_what_it_would_say(
    compacted: Broker,
) -> None:
    async def send() -> list[BaseException]:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=compacted.bootstrap_servers, linger_ms=500
        ) as client:
            sent = [
                await client.send("compacted", b"v", key=key, partition=0)
                for key in (b"a", None, b"c")
            ]
            return list(await asyncio.gather(*sent, return_exceptions=True))

    told = asyncio.run(asyncio.wait_for(send(), PATIENCE_S))
    assert [type(error) for error in told] == [aiokafka.errors.InvalidRequestError] * 3
    (entry,) = [request for request in compacted.requests if request.api == "Produce"]
    assert (entry.version, entry.errors) == (7, (42,))


@pytest.mark.parametrize("culprits", [{1, 3}, {0, 1}, {0, 1, 2}])
def test_librdkafka_tells_several_culprits_from_their_siblings_by_their_codes(
    compacted: Broker, culprits: set[int]
) -> None:
    keys = [None if index in culprits else b"k" for index in range(4)]
    assert told_by_confluent(compacted, keys) == [
        INVALID_RECORD if index in culprits else INVALID_BESIDE for index in range(4)
    ]
    assert compacted.records("compacted") == []


def test_a_producer_that_sends_the_innocent_again_gets_them_stored(compacted: Broker) -> None:
    """What KIP-467 wants of clients, by hand."""
    keys = [b"a", None, b"c", None]
    told = told_by_confluent(compacted, keys)
    innocent = [key for key, code in zip(keys, told, strict=True) if code == INVALID_BESIDE]
    assert told_by_confluent(compacted, innocent) == [0, 0]
    assert [record.key for record in compacted.records("compacted")] == [b"a", b"c"]


@pytest.fixture
def python_producer(compacted: Broker) -> Iterator[Any]:
    client = kafka.KafkaProducer(
        bootstrap_servers=compacted.bootstrap_servers, linger_ms=PATIENCE_S * 1000, retries=0
    )
    yield client
    client.close()


@pytest.mark.parametrize("culprits", [{1}, {0, 3}, {0, 1, 2, 3}])
def test_kafka_python_gives_each_culprit_its_own_message_and_the_siblings_another(
    compacted: Broker, python_producer: Any, culprits: set[int]
) -> None:
    sent = [
        python_producer.send("compacted", b"v", key=None if index in culprits else b"k")
        for index in range(4)
    ]
    python_producer.flush(PATIENCE_S)
    told = []
    for future in sent:
        with pytest.raises(KafkaError) as raised:
            future.get(PATIENCE_S)
        told.append(raised.value)
    for index, error in enumerate(told):
        assert isinstance(error, InvalidRecordError) == (index in culprits)
        assert (own_message(index) in str(error)) == (index in culprits)
    assert compacted.records("compacted") == []


@pytest.mark.parametrize("deleted", [1, 3])
def test_a_producer_that_was_forgotten_goes_on_and_stores_each_record_once(
    broker: Broker, deleted: int
) -> None:
    """KIP-192 and KIP-360: UNKNOWN_PRODUCER_ID has a client begin anew, with another epoch."""
    client = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
    )
    told: list[Any] = []

    def send(value: bytes) -> None:
        client.produce(
            "orders", value, partition=0, on_delivery=lambda error, _: told.append(error)
        )
        assert client.flush(PATIENCE_S) == 0

    for number in range(3):
        send(b"%d" % number)

    def forget(core: Any) -> None:
        handle = core.image.partition("orders", 0).handle
        core.plane.delete_records(handle, deleted)
        core.plane.expire_producers(1 << 60)

    broker.run(forget)
    send(b"3")
    send(b"4")
    assert told == [None] * 5
    stored = [record.value for record in broker.records("orders", 0)]
    assert stored == [b"%d" % number for number in range(deleted, 5)]
    errors = [request.errors for request in broker.requests if request.api == "Produce"]
    assert errors.count((UNKNOWN_PRODUCER_ID,)) == 1
