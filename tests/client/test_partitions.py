"""Offsets are taken as numbers, or with what else a group keeps of them."""

import pytest
from ottla.client import IllegalArgumentError, OffsetAndMetadata, Producer, TopicPartition
from ottla.client.partitions import GroupMetadata, offsets_to_commit
from ottla.testing import Broker


def test_a_number_is_an_offset_without_metadata() -> None:
    given = OffsetAndMetadata(7, "by hand", 3)
    assert offsets_to_commit({("orders", 0): 5, ("orders", 1): given}) == {
        TopicPartition("orders", 0): OffsetAndMetadata(5),
        TopicPartition("orders", 1): given,
    }


@pytest.mark.parametrize("offset", ["5", None, True, 5.0, (5, "")])
def test_what_is_no_offset_is_refused_with_its_partition(offset: object) -> None:
    with pytest.raises(IllegalArgumentError, match=r"the offset of \('orders', 0\) is .*expected"):
        offsets_to_commit({("orders", 0): offset})  # type: ignore[dict-item]


def test_an_offset_that_is_none_leaves_the_producer_as_it_was() -> None:
    with (
        Broker(topics={"orders": 1}) as broker,
        Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(IllegalArgumentError):
            producer.send_offsets_to_transaction(
                {("orders", 0): "5"},  # type: ignore[dict-item]
                GroupMetadata("billing"),
            )
        producer.send_offsets_to_transaction({("orders", 0): 5}, GroupMetadata("billing"))
        producer.commit_transaction()
