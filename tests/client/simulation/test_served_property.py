"""Whatever goes wrong at a served broker, in real time: what is read is what was sent.

Without culprits, in order in each partition and once, and each promise agrees with the log. What
goes wrong is drawn from a seed; when it does, the machine has a say in.
"""

from __future__ import annotations

import os
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import Consumer, Producer, TopicPartition
from ottla.client.errors import InvalidRecordError
from ottla.testing import Broker

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ottla.net.client.producer import RecordFuture

SEEDS = int(os.environ.get("OTTLA_SERVED_SEEDS", "4"))
WITHIN_S = 60
PARTITIONS = [TopicPartition("names", number) for number in range(3)]
QUICKLY: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 50,
}
PRODUCE_FAULTS: list[dict[str, Any]] = [
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "NOT_ENOUGH_REPLICAS"},
    {"error": "REQUEST_TIMED_OUT", "after": True},
    {"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "after": True},
    {"error": "CORRUPT_MESSAGE"},
    {"disconnect": True},
    {"disconnect": True, "after": True},
    {"delay": 0.03},
    {"delay": 0.5},
]
FETCH_FAULTS: list[dict[str, Any]] = [
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "FETCH_SESSION_ID_NOT_FOUND"},
    {"disconnect": True},
    {"disconnect": True, "after": True},
    {"delay": 0.03},
]


class World:
    """A broker with a directory, what was sent to it, and all that goes wrong."""

    def __init__(self, seed: int, home: Path) -> None:
        self.random = Random(seed)
        self.home = home
        self.broker = Broker(data=home).start()
        self.broker.create_topic("names", len(PARTITIONS), cleanup_policy="compact")
        self.address = self.broker.bootstrap_servers
        self.sent: list[tuple[int, bytes, RecordFuture]] = []
        self.faults: list[AbstractContextManager[Any]] = []

    def producer(self) -> Producer:
        choice = self.random.choice
        return Producer(
            bootstrap_servers=self.address,
            linger_ms=choice([0, 2, 10]),
            batch_size=choice([100, 1_000, 16_384]),
            compression_type=choice(["none", "lz4", "zstd"]),
            max_in_flight_requests_per_connection=choice([1, 2, 5]),
            request_timeout_ms=300,
            delivery_timeout_ms=WITHIN_S * 1_000,
            **QUICKLY,
        )

    def send(self, producer: Producer) -> None:
        """Sends records, of which some have no key, and lets things go wrong meanwhile."""
        random = self.random
        culprits, trouble = random.choice([0.0, 0.05, 0.3]), random.choice([0.0, 0.05, 0.2])
        restart_at = random.randrange(200)
        for number in range(random.randrange(40, 120)):
            value = b"%d" % number
            partition = random.randrange(len(PARTITIONS))
            key = None if random.random() < culprits else value
            self.sent.append((partition, value, producer.send("names", value, key, partition)))
            if random.random() < trouble:
                self.break_something("Produce", PRODUCE_FAULTS)
            if random.random() < 0.1:
                time.sleep(random.choice([0.001, 0.01]))
            if number == restart_at:
                self.restart()

    def break_something(self, api: str, faults: list[dict[str, Any]]) -> None:
        times = self.random.randrange(1, 4)
        self.faults.append(self.broker.fail(api, times=times, **self.random.choice(faults)))

    def restart(self) -> None:
        self.faults.clear()
        self.broker.stop()
        port = int(self.address.rpartition(":")[2])
        self.broker = Broker(data=self.home, port=port).start()

    def require_promises(self) -> dict[int, list[bytes]]:
        """Each future says what became of its record; returns what the partitions have to hold."""
        sound: dict[int, list[bytes]] = {one.partition: [] for one in PARTITIONS}
        for partition, value, future in self.sent:
            error = future.exception(WITHIN_S)
            if error is None:
                assert future.result().offset in {len(sound[partition]), -1}, value
                sound[partition].append(value)
            else:
                assert isinstance(error, InvalidRecordError), (value, error)
        return sound

    def read(self, count: int) -> dict[int, list[bytes | None]]:
        """Reads so many records, and what may come behind them."""
        read: dict[int, list[bytes | None]] = {one.partition: [] for one in PARTITIONS}
        until = time.monotonic() + WITHIN_S
        with Consumer(
            bootstrap_servers=self.address,
            auto_offset_reset="none",
            max_partition_fetch_bytes=self.random.choice([300, 1_000_000]),
            request_timeout_ms=1_000,
            fetch_max_wait_ms=20,
            **QUICKLY,
        ) as consumer:
            consumer.assign(PARTITIONS)
            for one in PARTITIONS:
                consumer.seek(one, 0)
            while sum(map(len, read.values())) < count and time.monotonic() < until:
                if self.random.random() < 0.2:
                    self.break_something("Fetch", FETCH_FAULTS)
                for record in consumer.poll(20, max_records=self.random.choice([1, 7, 500])):
                    read[record.partition].append(record.value)
            for record in consumer.poll(50):
                read[record.partition].append(record.value)
        return read

    def __enter__(self) -> World:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.stop()


BLOCKS = [range(begin, min(begin + 10, SEEDS)) for begin in range(0, SEEDS, 10)]


@pytest.mark.parametrize("seeds", BLOCKS, ids=str)
def test_what_is_read_from_a_served_broker_is_what_was_sent_without_culprits(
    seeds: range, tmp_path: Path
) -> None:
    for seed in seeds:
        with World(seed, tmp_path / str(seed)) as world:
            with world.producer() as producer:
                world.send(producer)
                producer.flush(WITHIN_S)
            sound = world.require_promises()
            assert world.read(sum(map(len, sound.values()))) == sound, seed
