"""A broker's data plane: what a partition of a Produce or a Fetch takes, alone and among many."""

import struct
from typing import Any

import pytest
from ottla import Leader
from ottla._engine import DataPlane

from benches.data import Shape, generate

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="plane")]

# After the records.
NOW_MS = 1_800_000_000_000
ROUNDS = 50
ONE_RECORD = Shape(100, 1)
NAME = b"orders"
TOPIC = bytes([len(NAME) + 1]) + NAME


def plane_of(partitions: int) -> DataPlane:
    """Return a plane with partitions of a topic."""
    plane = DataPlane()
    for partition in range(partitions):
        plane.open(NAME.decode(), bytes(16), partition, now_ms=NOW_MS)
    return plane


def uvarint(value: int) -> bytes:
    """Return a length or a count, as flexible versions have it."""
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def produce_frame(partitions: int) -> bytes:
    """Return a Produce 9 of one record for each partition."""
    batch = generate(ONE_RECORD, 1).batches[0]
    records = uvarint(len(batch) + 1) + batch + b"\0"
    sets = b"".join(struct.pack(">i", partition) + records for partition in range(partitions))
    # No transactional id, all replicas; one topic.
    head = b"\0" + struct.pack(">hi", -1, 1000)
    return head + b"\2" + TOPIC + uvarint(partitions + 1) + sets + b"\0\0"


def fetch_frame(partitions: int) -> bytes:
    """Return a Fetch 12 of everything in each partition."""
    head = struct.pack(">iiiibii", -1, 500, 1, 1 << 30, 0, 0, -1)
    asked = b"".join(
        struct.pack(">iiqiqib", partition, -1, 0, -1, -1, 1 << 20, 0)
        for partition in range(partitions)
    )
    # No topic is forgotten, and the client has no rack.
    return head + b"\2" + TOPIC + uvarint(partitions + 1) + asked + b"\0" + b"\1\1\0"


@pytest.mark.parametrize("partitions", [1, 1000])
def test_a_record_is_produced_to_each_partition(benchmark: Any, partitions: int) -> None:
    plane, frame = plane_of(partitions), produce_frame(partitions)
    produced = benchmark.pedantic(
        lambda: plane.produce(frame, 0, 9, now_ms=NOW_MS), rounds=ROUNDS, warmup_rounds=1
    )
    assert len(produced.moved) == partitions
    assert not produced.failed


@pytest.mark.parametrize("partitions", [1, 1000])
def test_a_record_is_fetched_of_each_partition(benchmark: Any, partitions: int) -> None:
    plane, frame = plane_of(partitions), fetch_frame(partitions)
    plane.produce(produce_frame(partitions), 0, 9, now_ms=NOW_MS)
    fetched = benchmark(lambda: plane.fetch(frame, 0, 12, now_ms=NOW_MS, must_answer=False))
    assert sum(map(len, fetched.answer)) > partitions * ONE_RECORD.value_size


def test_a_leader_alone_decides_on_a_record(benchmark: Any) -> None:
    """What of a Produce is no matter of the wire and the log."""
    leader, batch = Leader(), generate(ONE_RECORD, 1).batches[0]
    assert benchmark(lambda: leader.append(batch, now_ms=NOW_MS)).accepted
