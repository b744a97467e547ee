"""A broker's data plane: what a partition of a Produce or a Fetch takes, alone and among many."""

import struct
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ottla import Leader, NewRecord, build_batch
from ottla._engine import CompactJob, DataPlane, TopicSettings

from benches.data import Shape, generate

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="plane")]

# After the records.
NOW_MS = 1_800_000_000_000
ROUNDS = 50
ONE_RECORD = Shape(100, 1)
NAME = b"orders"
COMPACTED = TopicSettings([("cleanup_policy", "compact")])
TOPIC = bytes([len(NAME) + 1]) + NAME


MEMORY_AND_FILES = pytest.mark.parametrize("is_in_files", [False, True], ids=["memory", "files"])


def plane_of(partitions: int, directory: Path | None = None) -> DataPlane:
    """Return a plane with partitions of a topic, below a directory or in memory."""
    plane = DataPlane()
    for partition in range(partitions):
        own = directory and directory / f"{NAME.decode()}-{partition}"
        plane.open(NAME.decode(), bytes(16), partition, now_ms=NOW_MS, directory=own)
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


def fetch_frame(partitions: int, offset: int = 0) -> bytes:
    """Return a Fetch 12 of what is in each partition from an offset on."""
    head = struct.pack(">iiiibii", -1, 500, 1, 1 << 30, 0, 0, -1)
    asked = b"".join(
        struct.pack(">iiqiqib", partition, -1, offset, -1, -1, 1 << 20, 0)
        for partition in range(partitions)
    )
    # No topic is forgotten, and the client has no rack.
    return head + b"\2" + TOPIC + uvarint(partitions + 1) + asked + b"\0" + b"\1\1\0"


@MEMORY_AND_FILES
@pytest.mark.parametrize("partitions", [1, 1000])
def test_a_record_is_produced_to_each_partition(
    benchmark: Any, tmp_path: Path, partitions: int, is_in_files: bool
) -> None:
    plane = plane_of(partitions, tmp_path if is_in_files else None)
    frame = produce_frame(partitions)
    produced = benchmark.pedantic(
        lambda: plane.produce(frame, 0, 9, now_ms=NOW_MS), rounds=ROUNDS, warmup_rounds=1
    )
    assert len(produced.moved) == partitions
    assert not produced.failed


@MEMORY_AND_FILES
@pytest.mark.parametrize("partitions", [1, 1000])
def test_a_record_is_fetched_of_each_partition(
    benchmark: Any, tmp_path: Path, partitions: int, is_in_files: bool
) -> None:
    plane = plane_of(partitions, tmp_path if is_in_files else None)
    frame = fetch_frame(partitions)
    plane.produce(produce_frame(partitions), 0, 9, now_ms=NOW_MS)
    fetched = benchmark(lambda: plane.fetch(frame, 0, 12, now_ms=NOW_MS, must_answer=False))
    assert sum(map(len, fetched.answer)) > partitions * ONE_RECORD.value_size


@MEMORY_AND_FILES
def test_a_mebibyte_is_fetched_of_the_middle_of_a_log(
    benchmark: Any, tmp_path: Path, is_in_files: bool
) -> None:
    """Of small batches, so that both ends are looked for between the entries of the index."""
    plane, frame = plane_of(1, tmp_path if is_in_files else None), produce_frame(1)
    for _ in range(20_000):
        plane.produce(frame, 0, 9, now_ms=NOW_MS)
    fetch = fetch_frame(1, 5000)
    fetched = benchmark(lambda: plane.fetch(fetch, 0, 12, now_ms=NOW_MS, must_answer=False))
    assert sum(map(len, fetched.answer)) > 1_000_000


@MEMORY_AND_FILES
def test_a_log_is_compacted(benchmark: Any, tmp_path: Path, is_in_files: bool) -> None:
    """25 MB in batches of a hundred records, of which a quarter stays."""

    def job_of() -> tuple[tuple[CompactJob], dict[str, Any]]:
        plane = DataPlane()
        handle = plane.open(
            NAME.decode(),
            bytes(16),
            0,
            now_ms=NOW_MS,
            settings=COMPACTED,
            directory=str(tmp_path / str(next(numbers))) if is_in_files else None,
        )
        for batch in batches:
            plane.append(handle, batch, now_ms=NOW_MS)
        job = plane.compact_job(handle, now_ms=NOW_MS, is_forced=True)
        assert job is not None
        return (job,), {}

    numbers = count()
    value = bytes(100)
    keys = [b"key-%09d" % (number % 50_000) for number in range(200_000)]
    batches = [
        build_batch([NewRecord(key=key, value=value, timestamp=NOW_MS) for key in some])
        for some in (keys[at : at + 100] for at in range(0, len(keys), 100))
    ]
    benchmark.pedantic(CompactJob.run, setup=job_of, rounds=5)


def test_a_leader_alone_decides_on_a_record(benchmark: Any) -> None:
    """What of a Produce is no matter of the wire and the log."""
    leader, batch = Leader(), generate(ONE_RECORD, 1).batches[0]
    assert benchmark(lambda: leader.append(batch, now_ms=NOW_MS)).accepted
