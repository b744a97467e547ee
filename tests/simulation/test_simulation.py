"""A broker and its clients under a seed: whatever the network loses, Kafka's promises are kept."""

import contextlib
import os
import shutil
from pathlib import Path
from random import Random

import ottla
import pytest
from ottla.broker.broker import Broker
from support.kept_broker import kept_broker
from support.simulation.checker import (
    Logs,
    Stored,
    check,
    check_offsets_of_transactions,
)
from support.simulation.clients import (
    PARTITIONS,
    TOPIC,
    Model,
    committer,
    hasty_producer,
    idempotent_producer,
    reader,
    transactional_producer,
    vanishing_producer,
)
from support.simulation.history import History
from support.simulation.world import World
from support.wire_client import NOW_MS, new_broker

# `make simulate` asks for more.
SEEDS = int(os.environ.get("OTTLA_SIMULATIONS", "300"))
HOUR_MS = 3_600_000


def a_broker() -> Broker:
    broker = new_broker(
        {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    )
    broker.topics.create(TOPIC, PARTITIONS, {}, NOW_MS)
    return broker


def logs_of(broker: Broker) -> Logs:
    """Everything that is stored, as the checker wants it."""
    logs: Logs = {}
    for index in range(PARTITIONS):
        partition = broker.image.partition(TOPIC, index)
        assert partition is not None
        start, _, _, end = broker.plane.offsets(partition.handle)
        data = bytes(broker.plane.read(partition.handle, start, 1 << 30)) if end > start else b""
        logs[TOPIC, index] = [
            Stored(
                batch.base_offset,
                batch.last_offset,
                batch.producer_id,
                batch.producer_epoch,
                batch.is_transactional,
                # The type of a marker is the second number of its key.
                next(bytes(each.key or b"")[3] == 1 for each in batch.records())
                if batch.is_control
                else None,
                ()
                if batch.is_control
                else tuple(bytes(each.value or b"") for each in batch.records()),
            )
            for batch in ottla.read_batches(data)
        ]
    return logs


def play(seed: int, world: World) -> History:
    """Play the history of a seed."""
    history = History()
    model = Model(Random(seed + 1), history, is_new=seed % 2 == 0)
    world.start(idempotent_producer(model, "first", 12))
    world.start(idempotent_producer(model, "second", 12))
    world.start(transactional_producer(model, "payments", 8, is_alone=True))
    # Two of one name: each start of one fences the other.
    world.start(transactional_producer(model, "shared", 3))
    world.start(transactional_producer(model, "shared", 3))
    world.start(vanishing_producer(model, "gone"))
    for number in range(6):
        world.start(hasty_producer(model, f"hasty-{number}"))
    for partition in range(PARTITIONS):
        world.start(reader(model, partition, 5, is_committed=True))
        world.start(reader(model, partition, 2, is_committed=False))
    world.start(committer(model, "readers", 8))
    world.run(HOUR_MS)
    # What was left open times out.
    world.pass_time(HOUR_MS)
    return history


def judge(history: History, broker: Broker) -> None:
    """Hold a history against what the broker has in the end."""
    logs = logs_of(broker)
    check(history, logs)
    kept = broker.groups.store.offsets.get("of-payments", TOPIC, 0)
    offset = None if kept is None else kept.offset
    check_offsets_of_transactions(history, logs, "payments", offset)
    for index in range(PARTITIONS):
        partition = broker.image.partition(TOPIC, index)
        assert partition is not None
        _, last_stable_offset, high_watermark, _ = broker.plane.offsets(partition.handle)
        assert last_stable_offset == high_watermark, "a transaction is open for ever"


def hold(seed: int) -> None:
    """Play and judge a seed."""
    world = World(seed, a_broker)
    judge(play(seed, world), world.broker)


class Starts:
    """Brokers one after the other on a log directory, each but the first behind a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = contextlib.ExitStack()

    def __call__(self) -> Broker:
        # A process that is killed gives back its lock, and nothing else.
        self.kept.close()
        broker = self.kept.enter_context(kept_broker(self.path, is_killed=True))
        if TOPIC not in broker.image.topics:
            broker.topics.create(TOPIC, PARTITIONS, {}, NOW_MS)
        return broker


def hold_with_crashes(seed: int, path: Path) -> None:
    """Play and judge a seed, with crashes between."""
    starts = Starts(path)
    with starts.kept:
        world = World(seed, starts)
        for _ in range(4):
            world.crash_after(world.random.randrange(20_000))
        history = play(seed, world)
        assert world.crashes
        judge(history, world.broker)
        # What the last broker knows, another knows again.
        world.crash()
        judge(history, world.broker)


@pytest.mark.parametrize("seed", range(40))
def test_promises_are_kept_whatever_the_network_loses(seed: int) -> None:
    hold(seed)


def test_a_seed_is_played_again_the_same() -> None:
    world, again = World(7, a_broker), World(7, a_broker)
    assert play(7, world) == play(7, again)
    assert logs_of(world.broker) == logs_of(again.broker)


@pytest.mark.parametrize("seed", range(6))
def test_promises_are_kept_whenever_the_broker_is_killed(seed: int, tmp_path: Path) -> None:
    hold_with_crashes(seed, tmp_path / "data")


@pytest.mark.slow
def test_promises_are_kept_in_many_histories_with_crashes(tmp_path: Path) -> None:
    for seed in range(1000, 1000 + SEEDS // 10):
        try:
            hold_with_crashes(seed, tmp_path / str(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.slow
def test_promises_are_kept_in_many_histories() -> None:
    for seed in range(1000, 1000 + SEEDS):
        try:
            hold(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
