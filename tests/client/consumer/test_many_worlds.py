"""Whatever goes wrong by a seed, each record is delivered once, in order, to where it counts."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from ottla.client.consumer.position import Position
from ottla.client.errors import KafkaError
from ottla.client.partitions import TopicPartition
from support.scripted_cluster import CUT
from support.scripted_logs import ScriptedLogs

if TYPE_CHECKING:
    from ottla.client.consumer.core import ConsumerCore

FETCH_ERRORS = (3, 5, 6, 9, 56, 74, 75, 78, 100, 103, -1)
LOOKUP_ERRORS = (3, 5, 6, 7, 9, 56, 74, 75, 78, -1)
SESSION_ERRORS = (70, 71, 106)
WORLDS = int(os.environ.get("OTTLA_WORLDS", "2000"))


class World:
    """A consumer of three partitions on two nodes, and what went to its application."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        chance = self.chance
        versions = {} if chance.random() < 0.7 else {"Fetch": range(4, chance.randrange(5, 19))}
        self.logs = ScriptedLogs(
            nodes=2,
            topics={"t": 2, "u": 1},
            versions=versions,
            has_sessions=chance.random() < 0.8,
            seed=seed,
            request_timeout_ms=1000,
        )
        self.partitions = [TopicPartition(*one) for one in (("t", 0), ("t", 1), ("u", 0))]
        self.logs.faults.append(self.fault)
        self.fetch = self.logs._fetch
        self.logs.cluster.on("Fetch", self.answer)
        self.trouble = 0.2
        self.delivered: dict[TopicPartition, list[int]] = defaultdict(list)
        self.expected_from = dict.fromkeys(self.partitions, 0)
        self.core: ConsumerCore = self.logs.consumer(
            max_partition_fetch_bytes=chance.choice([300, 3000]),
            fetch_max_bytes=chance.choice([600, 60_000]),
            isolation_level=chance.choice(["read_committed", "read_uncommitted"]),
        )
        self.core.assign(self.partitions, self.logs.now_ms)

    def fault(self, api: str, topic: str, _partition: int) -> int | None:
        if self.chance.random() > self.trouble / 3:
            return None
        if api == "Fetch":
            return self.chance.choice(FETCH_ERRORS if topic else SESSION_ERRORS)
        return self.chance.choice(LOOKUP_ERRORS)

    def answer(self, request: object, version: int) -> object:
        if self.chance.random() < self.trouble / 6:
            return CUT
        return self.fetch(request, version)  # type: ignore[arg-type]

    def step(self) -> None:
        chance, logs, core = self.chance, self.logs, self.core
        one = chance.choice(self.partitions)
        deed = chance.random()
        if deed < 0.3:
            values = [b"%d" % number for number in range(chance.randrange(1, 20))]
            logs.append(*one, values, compression=chance.choice(["none", "zstd"]))
        elif deed < 0.35:
            log = logs.logs[one]
            log.epoch += 1
            logs.cluster.leaders[one] = (chance.choice([1, 2]), log.epoch)
        elif deed < 0.4:
            core.pause([one], is_paused=chance.random() < 0.4)
        elif deed < 0.44:
            logs.cluster.cut(chance.choice([1, 2]))
        elif deed < 0.48:
            offset = chance.randrange(logs.logs[one].end + 1)
            core.seek(one, Position(offset))
            self.delivered[one], self.expected_from[one] = [], offset
        else:
            self.poll(chance.choice([1, 10, 200]))

    def poll(self, max_ms: int) -> None:
        limit = self.chance.choice([1, 3, 500])
        try:
            records = self.logs.poll(self.core, max_ms, limit)
        except KafkaError as error:
            raise AssertionError(f"{error!r}") from error
        for record in records:
            self.delivered[TopicPartition(record.topic, record.partition)].append(record.offset)

    def settle(self) -> None:
        self.trouble = 0.0
        self.core.pause(self.partitions, is_paused=False)
        for _ in range(10_000):
            if all(self.is_whole(one) for one in self.partitions):
                return
            self.poll(500)
        raise AssertionError({one: self.missing(one) for one in self.partitions})

    def missing(self, one: TopicPartition) -> object:
        known = self.core._table.get(one)
        assert known is not None
        return len(self.delivered[one]), self.logs.logs[one].end, known.state, known.position

    def is_whole(self, one: TopicPartition) -> bool:
        expected = list(range(self.expected_from[one], self.logs.logs[one].end))
        assert self.delivered[one] == expected[: len(self.delivered[one])]
        return self.delivered[one] == expected


def play(seed: int) -> None:
    world = World(seed)
    for _ in range(60):
        world.step()
    world.settle()
    for one in world.partitions:
        assert world.logs.wait(world.core.position(one)).offset == world.logs.logs[one].end


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_each_record_is_delivered_once_and_in_order_whatever_goes_wrong(start: int) -> None:
    for seed in range(start, start + 10):
        play(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1000 + WORLDS, 500))
def test_the_same_in_many_more_worlds(start: int) -> None:
    for seed in range(start, start + 500):
        play(seed)
