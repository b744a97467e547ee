"""Transactions with errors at every step: committed offsets and records agree, whatever happens.

A worker reads inputs 0, 1, 2 … of which each makes some records, and commits how far it has come
with them. What readers of committed records see is what the committed inputs have made, in order in
each partition, each once; nothing is left open; a worker that was replaced changes nothing more.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest
from ottla.client.errors import (
    KafkaError,
    KafkaTimeoutError,
)
from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition
from ottla.client.processing.transaction import is_abortable, run_transaction
from support.model_cluster import CULPRIT, Faults, ModelCluster
from support.simulated_producer import Fates, SimulatedProducer

TOPICS = {"made": 3}
INPUT = TopicPartition("read", 0)
GROUP = "workers"


class Worker:
    """A consumer of inputs and its producer, on a way of their own to the cluster."""

    def __init__(self, model: ModelCluster, seed: int, **options: Any) -> None:
        self.model = model
        self.random = Random(seed)
        self.faults = faults_of(self.random)
        self.cluster = model.attach(self.random, self.faults, seed)
        self.options = options
        self.position = 0
        self.reset_to_last_committed_positions()
        self.replaced = 0
        self.aborted = 0
        self.producer = self._new_producer()

    def _new_producer(self) -> SimulatedProducer:
        return SimulatedProducer(
            self.cluster,
            self.random,
            transactional_id="worker",
            linger_ms=self.random.choice([0, 5]),
            batch_size=self.random.choice([100, 16_384]),
            **self.options,
        )

    # As a consumer.

    def positions(self) -> Any:
        return {INPUT: OffsetAndMetadata(self.position)}

    def group_metadata(self) -> GroupMetadata:
        return GroupMetadata(GROUP)

    def reset_to_last_committed_positions(self) -> None:
        self.position = self.model.coordinator.committed.get(GROUP, {}).get(INPUT, 0)

    # One input after the other.

    def initialize(self) -> None:
        """Gets an id, however often that takes."""
        for _ in range(50):
            try:
                self.producer.init_transactions()
            except KafkaTimeoutError:
                continue
            except KafkaError:
                self.replace()
                continue
            self.reset_to_last_committed_positions()
            return
        raise AssertionError("no id in fifty attempts")

    def replace(self) -> None:
        """Goes on with another producer of the same id."""
        self.replaced += 1
        self.producer.close()
        self.cluster = self.model.attach(self.random, self.faults, self.random.randrange(2**31))
        self.producer = self._new_producer()

    def step(self) -> bool:
        """Processes an input; returns whether it is committed."""
        number = self.position
        body = partial(self._body, number)
        try:
            return run_transaction(self.producer, self, body)
        except KafkaTimeoutError:
            self.replace()
        except _GiveUpError:
            self.reset_to_last_committed_positions()
            return False
        except KafkaError as error:
            if is_abortable(error):
                raise
            self.replace()
        self.initialize()
        return False

    def _body(self, number: int) -> None:
        self.position = number + 1
        self.producer.fates = Fates()
        for topic, at, value in made_of(number):
            self.producer.send(topic, at, value)
            if self.random.random() < 0.2:
                self.producer.pass_ms(self.random.choice([1, 50]))
        if self.random.random() < 0.05:
            raise _GiveUpError


class _GiveUpError(Exception):
    """The processing fails now and then."""


def made_of(number: int) -> list[tuple[str, int, bytes]]:
    """The records that an input makes: always the same, with a culprit now and then."""
    random = Random(number)
    made = []
    for index in range(random.randrange(1, 6)):
        mark = CULPRIT if number % 17 == 3 and index == 1 else b""
        made.append(("made", random.randrange(3), mark + b"%d-%d" % (number, index)))
    return made


def faults_of(random: Random) -> Faults:
    rates = [0.0, 0.01, 0.05]
    return Faults(
        lost=random.choice(rates),
        unanswered=random.choice(rates),
        late=random.choice(rates) / 5,
        passing=random.choice([0.0, 0.05, 0.2]),
        abortable=random.choice(rates),
        moves=random.choice(rates),
        restarts=random.choice(rates),
        most_delay_ms=3_000,
    )


def require_exact(model: ModelCluster) -> int:
    """Readers of committed records see what the committed inputs made; returns how many there are.

    The culprits are left out, as the workers drop them.
    """
    committed = model.coordinator.committed.get(GROUP, {}).get(INPUT, 0)
    expected: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for number in range(committed):
        for _, at, value in made_of(number):
            if not value.startswith(CULPRIT):
                expected[at].append(value)
    for at, values in expected.items():
        assert model.logs["made", at].committed() == values
    return committed


def work(seed: int, count: int, *, bumps: bool) -> tuple[ModelCluster, Worker]:
    """Runs transactions until so many have been tried; then all that goes wrong has gone."""
    model = ModelCluster(TOPICS, bumps=bumps)
    worker = Worker(model, seed, transaction_drop_invalid_records=True)
    worker.initialize()
    for _ in range(count):
        worker.aborted += not worker.step()
    quiet(worker.faults)
    for _ in range(5):
        worker.step()
    return model, worker


def quiet(faults: Faults) -> None:
    for kind in ("lost", "unanswered", "late", "passing", "abortable", "moves", "restarts"):
        setattr(faults, kind, 0.0)


def check(seed: int, count: int, *, bumps: bool) -> int:
    model, worker = work(seed, count, bumps=bumps)
    committed = require_exact(model)
    assert not model.coordinator.is_open()
    assert not any(log.is_open() for log in model.logs.values())
    worker.producer.close()
    return committed


VERSIONS = pytest.mark.parametrize("bumps", [False, True], ids=["version 1", "version 2"])


@VERSIONS
@pytest.mark.parametrize("block", range(5))
def test_committed_offsets_and_records_agree_whatever_goes_wrong(
    block: int,
    bumps: bool,
) -> None:
    assert sum(check(block * 4 + i, 25, bumps=bumps) for i in range(4))


@pytest.mark.slow
@VERSIONS
@pytest.mark.parametrize("block", range(50))
def test_they_do_so_in_ten_thousand_transactions(
    block: int,
    bumps: bool,
) -> None:
    assert sum(check(1_000 + block * 4 + i, 25, bumps=bumps) for i in range(4))


@VERSIONS
def test_a_worker_that_was_replaced_in_a_transaction_is_fenced_and_adds_nothing(
    bumps: bool,
) -> None:
    for seed in range(20):
        model = ModelCluster(TOPICS, bumps=bumps)
        first = Worker(model, seed, transaction_drop_invalid_records=True)
        first.initialize()
        for _ in range(5):
            first.step()
        quiet(first.faults)
        begin_midway(first)
        second = Worker(model, seed + 1_000, transaction_drop_invalid_records=True)
        second.initialize()
        for _ in range(10):
            second.step()
        before = {place: len(log.entries) for place, log in model.logs.items()}
        with pytest.raises(KafkaError) as caught:
            commit_midway(first)
        assert not is_abortable(caught.value)
        first.producer.close()
        assert {place: len(log.entries) for place, log in model.logs.items()} == before
        quiet(second.faults)
        for _ in range(3):
            second.step()
        require_exact(model)
        assert not model.coordinator.is_open()


def begin_midway(worker: Worker) -> None:
    """Leaves a transaction open, with a record of no input in it."""
    producer = worker.producer
    producer.fates = Fates()
    producer.begin_transaction()
    producer.send("made", 0, b"of a zombie")
    producer.flush()


def commit_midway(worker: Worker) -> None:
    """Goes on with the transaction as if nothing had happened."""
    producer = worker.producer
    producer.send("made", 1, b"of a zombie, too late")
    offsets = {INPUT: OffsetAndMetadata(1_000)}
    producer.send_offsets_to_transaction(offsets, GroupMetadata(GROUP))
    producer.commit_transaction()
