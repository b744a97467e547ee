"""What is on the disk before what: a power cut in between parts no two that belong together."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ottla
import pytest
from ottla.broker.broker import Broker
from ottla.broker.data.storage import DirectoryStorage
from ottla.broker.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.coordinator_calls import Said, call, only_error, send
from support.kept_broker import kept_broker
from support.wire_client import NOW_MS, Pending, WireClient


class World(NamedTuple):
    """A broker whose syncs are under way until `sync` says otherwise."""

    broker: Broker
    path: Path
    jobs: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]]

    def client(self) -> WireClient:
        return WireClient(self.broker)

    def sync(self) -> None:
        job, then = self.jobs.pop(0)
        job()
        then(None)
        self.broker.tick(NOW_MS)

    def ask(self, client: WireClient, name: str, version: int, said: Said) -> Pending:
        """Sends a request, and syncs until it is answered."""
        pending = send(client, name, version, said)
        while not pending.is_answered:
            self.sync()
        return pending

    def count(self, topic: str) -> int:
        """How many batches the partitions of a topic have, markers included."""
        found = self.broker.image.topics[topic].partitions
        return sum(self.broker.plane.offsets(each.handle)[3] for each in found)

    def states(self) -> list[int]:
        """The states of the transaction, in the order in which they were written."""
        [log] = [
            each
            for each in self.broker.image.topics[TRANSACTION_STATE].partitions
            if self.broker.plane.offsets(each.handle)[3]
        ]
        data = self.broker.plane.read(log.handle, 0, 1 << 20)
        # Behind the version, the id and epoch of the producer, and its time-out.
        values = [record.value or b"" for record in ottla.read(data)]
        return [value[2 + 8 + 2 + 4] for value in values]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with kept_broker(tmp_path / "data", {"transaction.state.log.num.partitions": "1"}) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        made = World(broker, tmp_path / "data", [])
        storage = broker.storage
        assert isinstance(storage, DirectoryStorage)
        storage.flusher.submit = lambda job, then: made.jobs.append((job, then))
        yield made
        while made.jobs:
            made.sync()


def said(world: World, **more: Any) -> Said:
    return Said(world.broker.image.topics["orders"].topic_id)._replace(**more)


def in_transaction(world: World, client: WireClient) -> Said:
    """Begins a transaction, and writes a record that is left to the page cache."""
    answer = world.ask(client, "init_producer_id", 3, said(world)).answer()
    own = said(world, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
    assert only_error(world.ask(client, "add_partitions_to_txn", 3, own)) == 0
    assert call(client, "produce", 8, own) == 0
    return own


@pytest.mark.parametrize("configs", [{}, {"flush.messages": "2"}])
def test_an_offset_is_committed_once_the_records_before_it_are_on_the_disk(
    world: World, configs: dict[str, str]
) -> None:
    world.broker.topics.configure(world.broker.image.topics["orders"], configs)
    client = world.client()
    batch = ottla.build_batch([ottla.NewRecord(value=b"x", timestamp=NOW_MS)])
    data = TopicProduceData(
        name="orders", partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    answered = client.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 8)
    assert only_error(answered) == 0
    assert world.jobs == []
    pending = send(client, "offset_commit", 7, said(world))
    # Those of the topic are synced first, and nothing is written of the offset.
    assert (pending.waits, world.count(CONSUMER_OFFSETS)) == (True, 0)
    world.sync()
    assert (pending.is_answered, world.count(CONSUMER_OFFSETS)) == (False, 1)
    world.sync()
    assert only_error(pending) == 0
    # They are on the disk by now.
    again = send(world.client(), "offset_commit", 7, said(world))
    assert world.count(CONSUMER_OFFSETS) == 2
    world.sync()
    assert only_error(again) == 0


def test_a_transaction_is_on_the_disk_step_by_step(world: World) -> None:
    ongoing, prepared, complete = 1, 2, 4
    client = world.client()
    own = in_transaction(world, client)
    before = world.states()
    assert before[-1] == ongoing
    pending = send(client, "end_txn", 3, own)
    # Its records, then that it is committed, then the markers, and then that nothing is left.
    assert (world.states(), world.count("orders")) == (before, 1)
    world.sync()
    assert (world.states(), world.count("orders")) == ([*before, prepared], 1)
    world.sync()
    assert (world.states(), world.count("orders")) == ([*before, prepared], 2)
    assert not pending.is_answered
    world.sync()
    assert world.states() == [*before, prepared, complete]
    assert only_error(pending) == 0


@pytest.mark.parametrize(
    ("name", "version", "log"),
    [("produce", 12, "orders"), ("txn_offset_commit", 5, CONSUMER_OFFSETS)],
)
def test_what_joins_a_transaction_by_itself_is_written_once_that_is_on_the_disk(
    world: World, name: str, version: int, log: str
) -> None:
    client = world.client()
    answer = world.ask(client, "init_producer_id", 3, said(world)).answer()
    own = said(world, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
    world.ask(client, "find_coordinator", 4, own)
    pending = send(client, name, version, own)
    assert (pending.waits, pending.is_answered, world.count(log)) == (True, False, 0)
    world.sync()
    assert world.count(log) == 1
    while world.jobs:
        world.sync()
    assert only_error(pending) == 0


def test_the_next_transaction_begins_as_soon_as_the_one_before_is_answered(world: World) -> None:
    client = world.client()
    own = in_transaction(world, client)
    assert only_error(world.ask(client, "end_txn", 3, own)) == 0
    assert only_error(world.ask(client, "add_partitions_to_txn", 3, own)) == 0


def test_whoever_waits_for_a_sync_that_fails_gets_no_answer(world: World) -> None:
    client, other = world.client(), world.client()
    own = in_transaction(world, client)
    ended = send(client, "end_txn", 3, own)
    committed = send(other, "offset_commit", 7, said(world))
    _, then = world.jobs.pop(0)
    then(OSError(5, "Input/output error"))
    world.broker.tick(NOW_MS)
    assert (ended.frames, committed.frames) == ([None], [None])


def test_a_transaction_whose_decision_cannot_be_synced_is_not_answered(world: World) -> None:
    client = world.client()
    own = in_transaction(world, client)
    ended = send(client, "end_txn", 3, own)
    world.sync()
    assert not ended.is_answered
    _, then = world.jobs.pop(0)
    then(OSError(5, "Input/output error"))
    world.broker.tick(NOW_MS)
    assert ended.frames == [None]
    assert world.count("orders") == 1
