"""Brokers to play with, in memory and on a log directory, and what they have stored."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import ottla
from ottla.broker.broker import Broker
from support.kept_broker import kept_broker
from support.simulation.checker import Logs, Stored
from support.simulation.clients import PARTITIONS, TOPIC
from support.simulation.disk import Disk
from support.simulation.kept import CONFIGS, OFTEN
from support.wire_client import NOW_MS, new_broker

# Segments are full after some seconds, so that some are sealed in every history.
SEGMENTS = {"segment.ms": "3000"}


def a_broker(now_ms: int = NOW_MS) -> Broker:
    """A broker in memory."""
    broker = new_broker(
        {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2", **OFTEN}
    )
    create_topics(broker, {}, now_ms)
    return broker


def create_topics(broker: Broker, configs: Mapping[str, str], now_ms: int) -> None:
    """Create those that are not there, with settings beside their own."""
    if TOPIC not in broker.image.topics:
        broker.topics.create(TOPIC, PARTITIONS, {**SEGMENTS, **configs}, now_ms)
    for topic, own in CONFIGS.items():
        if topic not in broker.image.topics:
            broker.topics.create(topic, 1, {**own, **configs}, now_ms)


class Starts:
    """Brokers one after the other on a log directory, each but the first behind a crash.

    Args:
        path: of the directory.
        disk: what forgets when the power is cut; without one the process alone is killed.
        configs: of topics, beside their own.
    """

    def __init__(
        self,
        path: Path,
        disk: Disk | None = None,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.disk = disk
        self.configs = dict(configs)
        self.lines: list[str] = []
        self.count = 0
        self.kept = contextlib.ExitStack()

    def __call__(self, now_ms: int) -> Broker:
        # A process that is killed gives back its lock, and nothing else.
        self.kept.close()
        if self.disk is not None:
            self.disk.cut_power()
        # No two draw the same ids: a member may hold one that the broker has not kept.
        self.count += 1
        broker = self.kept.enter_context(
            kept_broker(
                self.path, OFTEN, is_killed=True, lines=self.lines, seed=self.count, now_ms=now_ms
            )
        )
        create_topics(broker, self.configs, now_ms)
        return broker


def logs_of(broker: Broker) -> Logs:
    """Everything that is stored, as the checker wants it."""
    logs: Logs = {}
    for index in range(PARTITIONS):
        partition = broker.image.partition(TOPIC, index)
        assert partition is not None
        logs[TOPIC, index] = list(_batches(broker, partition.handle))
    return logs


def _batches(broker: Broker, handle: int) -> Iterator[Stored]:
    offset, _, _, end_offset = broker.plane.offsets(handle)
    while offset < end_offset:
        # It ends with a segment.
        found = stored(bytes(broker.plane.read(handle, offset, 1 << 30)))
        assert found, f"nothing is at offset {offset}, and the log ends at {end_offset}"
        yield from found
        offset = found[-1].last_offset + 1


def whole_batches(data: bytes) -> list[Stored]:
    """The batches at the beginning of a log's files that nothing has happened to."""
    whole: list[Stored] = []
    with contextlib.suppress(ottla.RecordBatchError):
        for batch in ottla.read_batches(data):
            batch.verify()
            if batch.base_offset != (whole[-1].last_offset + 1 if whole else 0):
                break
            whole += stored(data[batch.position : batch.position + batch.size])
    return whole


def stored(data: bytes) -> list[Stored]:
    """The batches of a log's bytes."""
    return [
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
            () if batch.is_control else tuple(bytes(each.value or b"") for each in batch.records()),
        )
        for batch in ottla.read_batches(data)
    ]
