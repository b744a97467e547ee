"""Producers are forgotten by the broker's clock, and by no other (KIP-98)."""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.wire_client import WireClient, new_broker

IDLE_MS = 60_000
CHECK_MS = 1_000
SETTINGS = {
    "producer.id.expiration.ms": str(IDLE_MS),
    "producer.id.expiration.check.interval.ms": str(CHECK_MS),
}


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker(SETTINGS))
    client.broker.topics.create("orders", 1, {}, client.now_ms)
    return client


def produce(client: WireClient, sequence: int, *, name: str | None = None, **fields: Any) -> Any:
    records = ottla.build_batch(
        [ottla.NewRecord(b"k", b"v", timestamp=client.now_ms)],
        base_sequence=sequence,
        is_transactional=name is not None,
        **{"producer_id": 900, "producer_epoch": 0} | fields,
    )
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="orders", partition_data=[data])],
    )
    return client.ask(request, 12).responses[0].partition_responses[0]


def known(client: WireClient) -> list[int]:
    """The producers of the partition."""
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    (partition,) = client.ask(request, 0).topics[0].partitions
    return [producer.producer_id for producer in partition.active_producers]


def test_a_producer_is_forgotten_by_the_brokers_clock(client: WireClient) -> None:
    assert produce(client, 0).error_code == 0
    client.advance(IDLE_MS - CHECK_MS)
    assert known(client) == [900]
    client.advance(CHECK_MS)
    assert known(client) == []
    # Its records are there: whoever asks learns that the log did not lose them.
    refused = produce(client, 1)
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.UNKNOWN_PRODUCER_ID, 0)
    assert produce(client, 0, producer_epoch=1).error_code == 0


def test_a_producer_that_goes_on_is_not_forgotten(client: WireClient) -> None:
    for sequence in range(5):
        assert produce(client, sequence).error_code == 0
        client.advance(IDLE_MS - CHECK_MS)
    assert known(client) == [900]


def test_a_producer_in_a_transaction_is_not_forgotten(client: WireClient) -> None:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=3 * IDLE_MS)
    started = client.ask(request, 5)
    producer: dict[str, Any] = {
        "producer_id": started.producer_id,
        "producer_epoch": started.producer_epoch,
    }
    assert produce(client, 0, name="t", **producer).error_code == 0
    client.advance(2 * IDLE_MS)
    assert known(client) == [started.producer_id]
    assert produce(client, 1, name="t", **producer).error_code == 0
    # Its time-out ends the transaction, and then the producer is idle like any other.
    client.advance(5 * IDLE_MS)
    assert known(client) == []


def test_without_settings_a_producer_is_remembered_for_a_day() -> None:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 1, {}, client.now_ms)
    produce(client, 0)
    client.advance(86_400_000 - 600_000)
    assert known(client) == [900]
    client.advance(600_000)
    assert known(client) == []
