"""Whatever goes wrong on the way: what arrives is what was sent without what was refused.

In order in each partition, each once where the producer is idempotent, and each promise agrees with
the log. Everything is drawn from a seed, on a virtual clock.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ottla.client.errors import InvalidRecordError, RecordTooLargeError
from support.model_cluster import CULPRIT, Faults, ModelCluster
from support.simulated_producer import SimulatedProducer

TOPICS = {"orders": 3}
FOREVER_MS = 2_000_000_000


def faults_of(random: Random) -> Faults:
    """Draws how much goes wrong: nothing, a little, or a lot of it."""
    rates = [0.0, 0.02, 0.2]
    return Faults(
        lost=random.choice(rates) / 2,
        unanswered=random.choice(rates) / 2,
        late=random.choice(rates) / 2,
        passing=random.choice(rates),
        moves=random.choice(rates),
        restarts=random.choice(rates),
    )


def deliver(seed: int, **options: Any) -> tuple[ModelCluster, SimulatedProducer, list[Any]]:
    """Sends records through all of it; returns what there is in the end, and what was sent."""
    random = Random(seed)
    model = ModelCluster(TOPICS, max_records=random.choice([4, 1_000]))
    faults = faults_of(random)
    cluster = model.attach(random, faults, seed)
    producer = SimulatedProducer(
        cluster,
        random,
        linger_ms=random.choice([0, 5, 50]),
        batch_size=random.choice([100, 400, 16_384]),
        max_in_flight_requests_per_connection=random.choice([1, 2, 5]),
        delivery_timeout_ms=FOREVER_MS,
        max_block_ms=600_000,
        **options,
    )
    culprits = random.choice([0.0, 0.05, 0.3])
    sent: list[tuple[int, bytes]] = []
    for number in range(random.randrange(20, 120)):
        mark = CULPRIT if random.random() < culprits else b""
        partition = random.randrange(TOPICS["orders"])
        value = mark + b"%d-%d" % (partition, number)
        producer.send("orders", partition, value)
        sent.append((partition, value))
        if random.random() < 0.3:
            producer.pass_ms(random.choice([1, 20, 500]))
        if random.random() < 0.02 and not (faults.late or unacknowledged(producer, sent)):
            # Only then are the records that go with what the leader knows surely acknowledged, and
            # none of them is under way once more, which a leader without memory would take.
            model.logs["orders", partition].delete_all()
    for kind in ("lost", "unanswered", "late", "passing", "moves", "restarts"):
        setattr(faults, kind, 0.0)
    producer.max_block_ms = 10_000_000
    producer.flush()
    return model, producer, sent


def unacknowledged(producer: SimulatedProducer, sent: list[Any]) -> bool:
    known = len(producer.fates.delivered) + len(producer.fates.failed)
    return known < len(sent)


def check(seed: int, **options: Any) -> None:
    model, producer, sent = deliver(seed, **options)
    fates = producer.fates
    culprits = {value for _, value in sent if value.startswith(CULPRIT)}
    assert set(fates.failed) == culprits
    assert all(isinstance(one, InvalidRecordError) for one in fates.failed.values())
    assert set(fates.delivered) == {value for _, value in sent} - culprits
    assert not producer.lost
    for partition in range(TOPICS["orders"]):
        log = model.logs["orders", partition]
        sound = [value for p, value in sent if p == partition and value not in culprits]
        assert log.values() == sound
        for value in sound:
            assert fates.delivered[value] in (-1, sound.index(value))


@pytest.mark.parametrize("block", range(10))
def test_an_idempotent_producer_delivers_each_sound_record_once_and_in_order(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_it_does_so_in_ten_thousand_worlds(block: int) -> None:
    for seed in range(1_000 + block * 100, 1_100 + block * 100):
        check(seed)


@pytest.mark.parametrize("block", range(4))
def test_without_idempotence_each_sound_record_arrives_and_is_told_one_offset(block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        model, producer, sent = deliver(seed, enable_idempotence=False, acks=-1)
        culprits = {value for _, value in sent if value.startswith(CULPRIT)}
        assert set(producer.fates.failed) == culprits
        for partition, value in sent:
            if value not in culprits:
                values = model.logs["orders", partition].values()
                assert values[producer.fates.delivered[value]] == value


def test_a_record_that_is_too_large_alone_fails_alone() -> None:
    model = ModelCluster(TOPICS, max_records=0)
    random = Random(0)
    producer = SimulatedProducer(model.attach(random, Faults()), random)
    producer.send("orders", 0, b"large")
    producer.flush()
    assert [type(one) for one in producer.fates.failed.values()] == [RecordTooLargeError]
