"""A broker and its clients under a seed: whatever the network loses, Kafka's promises are kept."""

import os
from random import Random

import ottla
import pytest
from ottla.broker.broker import Broker
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

SEEDS = int(os.environ.get("OTTLA_SIMULATIONS", "0"))
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


def simulate(seed: int) -> tuple[History, World]:
    """Play the history of a seed."""
    history = History()
    world = World(seed, a_broker)
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
    return history, world


def hold(seed: int) -> None:
    history, world = simulate(seed)
    logs = logs_of(world.broker)
    check(history, logs)
    kept = world.broker.groups.store.offsets.get("of-payments", TOPIC, 0)
    offset = None if kept is None else kept.offset
    check_offsets_of_transactions(history, logs, "payments", offset)
    for index in range(PARTITIONS):
        partition = world.broker.image.partition(TOPIC, index)
        assert partition is not None
        _, last_stable_offset, high_watermark, _ = world.broker.plane.offsets(partition.handle)
        assert last_stable_offset == high_watermark, "a transaction is open for ever"


@pytest.mark.parametrize("seed", range(40))
def test_promises_are_kept_whatever_the_network_loses(seed: int) -> None:
    hold(seed)


def test_a_seed_is_played_again_the_same() -> None:
    first, world = simulate(7)
    second, again = simulate(7)
    assert first == second
    assert logs_of(world.broker) == logs_of(again.broker)


@pytest.mark.slow
def test_promises_are_kept_in_a_thousand_histories() -> None:
    for seed in range(1000, 1000 + (SEEDS or 1000)):
        try:
            hold(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
