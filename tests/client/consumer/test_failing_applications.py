"""Applications that raise in the midst of their records: what they had not done is read again."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import AsyncConsumer, Consumer, TopicPartition
from ottla.client.consumer.listener import RebalanceListener
from ottla.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        for number in range(10):
            broker.produce("orders", b"%d" % number)
        yield broker


def options_of(broker: Broker, group: str) -> dict[str, Any]:
    servers = broker.bootstrap_servers
    return {"bootstrap_servers": servers, "group_id": group, "auto_offset_reset": "earliest"}


def committed(broker: Broker, group: str) -> int:
    with Consumer(**options_of(broker, group)) as consumer:
        found = consumer.committed(ORDERS)
    return found[ORDERS].offset if found else 0


class ApplicationError(Exception):
    """Of the application's own."""


def fail(kind: type[BaseException] = ApplicationError) -> None:
    raise kind


@contextmanager
def ended_by(kind: type[BaseException], broker: Broker) -> Iterator[Consumer]:
    """A consumer whose block ends by an exception."""
    with pytest.raises(kind), Consumer(**options_of(broker, "g")) as consumer:
        yield consumer


def begin(consumer: Any, *, shared: bool) -> None:
    if shared:
        consumer.subscribe(["orders"])
    else:
        consumer.assign([ORDERS])


@pytest.mark.parametrize("shared", [True, False], ids=["subscribed", "assigned"])
def test_records_whose_processing_raises_are_not_committed(broker: Broker, shared: bool) -> None:
    with ended_by(ApplicationError, broker) as consumer:
        begin(consumer, shared=shared)
        assert len(consumer.poll(10_000, max_records=4)) == 4
        assert len(consumer.poll(10_000, max_records=3)) == 3
        fail()
    assert committed(broker, "g") == 4


@pytest.mark.parametrize("shared", [True, False], ids=["subscribed", "assigned"])
def test_they_are_not_on_asyncio(broker: Broker, shared: bool) -> None:
    async def main() -> None:
        async with AsyncConsumer(**options_of(broker, "g")) as consumer:
            begin(consumer, shared=shared)
            assert len(await consumer.poll(10_000, max_records=4)) == 4
            assert len(await consumer.poll(10_000, max_records=3)) == 3
            raise ApplicationError

    with pytest.raises(ApplicationError):
        asyncio.run(main())
    assert committed(broker, "g") == 4


def test_a_record_whose_processing_raises_is_read_again_though_it_came_alone(
    broker: Broker,
) -> None:
    processed = []
    with ended_by(ApplicationError, broker) as consumer:
        begin(consumer, shared=True)
        for record in consumer:
            if record.offset == 7:
                fail()
            processed.append(record.offset)
    with Consumer(**options_of(broker, "g")) as consumer:
        begin(consumer, shared=True)
        assert next(iter(consumer)).offset <= 7
    assert processed == [*range(7)]


def test_ctrl_c_while_nothing_comes_commits_all_that_is_done(broker: Broker) -> None:
    with ended_by(KeyboardInterrupt, broker) as consumer:
        begin(consumer, shared=False)
        assert len(consumer.poll(10_000)) == 10
        assert consumer.poll(0) == []
        fail(KeyboardInterrupt)
    assert committed(broker, "g") == 10


def test_who_has_gone_back_before_it_raised_is_committed_there(broker: Broker) -> None:
    with ended_by(ApplicationError, broker) as consumer:
        begin(consumer, shared=False)
        assert len(consumer.poll(10_000)) == 10
        assert consumer.poll(0) == []
        consumer.seek(ORDERS, 2)
        fail()
    assert committed(broker, "g") == 2


class Raising(RebalanceListener):
    """Raises at the first call of a kind."""

    def __init__(self, raises_at: str) -> None:
        self.raises_at = raises_at
        self.told: list[str] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("revoked", partitions)

    def _tell(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        assert [*partitions] == [ORDERS]
        self.told.append(kind)
        if self.told.count(kind) == 1 and kind == self.raises_at:
            raise ApplicationError(kind)


@pytest.mark.parametrize("kind", ["assigned", "revoked"])
def test_what_a_listener_raises_comes_from_the_poll_and_the_group_goes_on(
    broker: Broker, kind: str
) -> None:
    listener = Raising(kind)
    with Consumer(**options_of(broker, "g")) as consumer:
        consumer.subscribe(["orders"], listener=listener)
        offsets: list[int] = []
        raised = 0
        while raised == 0 or len(listener.told) < 3:
            try:
                offsets += [one.offset for one in consumer.poll(100)]
            except ApplicationError:
                raised += 1
            if len(offsets) == 10 and listener.told == ["assigned"]:
                consumer.enforce_rebalance()
        assert raised == 1
        broker.produce("orders", b"10")
        while len(offsets) < 11:
            offsets += [one.offset for one in consumer.poll(100)]
    assert offsets == [*range(11)]
    assert listener.told == ["assigned", "revoked", "assigned", "revoked"]
