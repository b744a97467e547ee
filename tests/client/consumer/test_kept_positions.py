"""Positions leave the client with what tells their log from others, and come back (KIP-232)."""

from collections.abc import Iterator

import pytest
from ottla.client import Consumer, OffsetAndMetadata, TopicPartition
from ottla.client.offset_epoch import epochs_in
from ottla.testing import Broker

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as one:
        for number in range(5):
            one.produce("orders", b"%d" % number, timestamp=1_700_000_000_000 + number)
        yield one


def consumer_of(broker: Broker) -> Consumer:
    return Consumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )


def first_of(consumer: Consumer) -> object:
    (record,) = consumer.poll(5000, max_records=1)
    return record.value


def test_a_position_that_an_application_keeps_is_gone_on_from(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.poll(5000, max_records=2)
        kept = consumer.position_and_offset_epoch(ORDERS)
    assert isinstance(kept.offset_epoch, bytes)
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, kept.offset, kept.offset_epoch)
        assert first_of(consumer) == b"2"


def test_an_offset_that_was_found_by_time_is_gone_on_from(broker: Broker) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        found = consumer.offsets_for_times({ORDERS: 1_700_000_000_003})[ORDERS]
        assert found is not None
        assert epochs_in(found.offset_epoch).leader_epoch == 0
        consumer.seek(ORDERS, found.offset, found.offset_epoch)
        assert first_of(consumer) == b"3"


def test_a_commit_before_anything_was_read_has_the_epoch_of_where_the_reading_begins(
    broker: Broker,
) -> None:
    with consumer_of(broker) as consumer:
        consumer.assign([ORDERS])
        found = consumer.offsets_for_times({ORDERS: 1_700_000_000_003})[ORDERS]
        assert found is not None
        consumer.seek(ORDERS, found.offset, found.offset_epoch)
        consumer.commit()
        committed = consumer.committed(ORDERS)[ORDERS]
    assert isinstance(committed, OffsetAndMetadata)
    assert (committed.offset, committed.leader_epoch) == (3, 0)
