"""`make bench-growth`: what one more of anything costs an audit, and that it stays so as logs grow.

A log is made with so many, twice and four times as many of a thing, and nothing else changes. The
instructions of the whole process are counted under callgrind, so that start-up cancels out. Between
the first and the second step one more costs what it does between the second and the third: growth
is linear where the last column is about 1.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import ottla

from benches.instructions import AUDIT, count, python
from benches.partitions import write_beside, write_partitions

Write = Callable[[Path, int], None]

TIMESTAMP = 1_760_000_000_000
# One cost may be this many times the other: lists that double, and caches.
MOST = 1.6


def batch(offset: int, *, records: int = 1, producer: int = -1, sequence: int = 0) -> bytes:
    """Build a batch, transactional if it has a producer of an odd id."""
    made = [ottla.NewRecord(value=b"v", timestamp=TIMESTAMP + offset)] * records
    if producer < 0:
        return ottla.build_batch(made, base_offset=offset, partition_leader_epoch=0)
    return ottla.build_batch(
        made,
        base_offset=offset,
        partition_leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=producer % 2 == 1,
    )


def write(folder: Path, segments: Mapping[int, bytes]) -> None:
    """Write a partition of these segments, with the files beside them."""
    partition = folder / "grown-0"
    partition.mkdir(parents=True)
    for base_offset, data in segments.items():
        (partition / f"{base_offset:020d}.log").write_bytes(data)
    write_beside(partition, 0)


def batches(folder: Path, n: int) -> None:
    """So many batches of one record."""
    write(folder, {0: b"".join(map(batch, range(n)))})


def records(folder: Path, n: int) -> None:
    """So many records, in batches of a hundred."""
    write(folder, {0: b"".join(batch(at, records=100) for at in range(0, n, 100))})


def producers(folder: Path, n: int) -> None:
    """So many idempotent producers."""
    write(folder, {0: b"".join(batch(at, producer=2 * at) for at in range(n))})


def open_transactions(folder: Path, n: int) -> None:
    """So many transactions without an end."""
    write(folder, {0: b"".join(batch(at, producer=2 * at + 1) for at in range(n))})


def closed_transactions(folder: Path, n: int) -> None:
    """So many transactions of one producer, each committed."""

    def transaction(number: int) -> bytes:
        marker = ottla.build_control_batch(
            "commit",
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=TIMESTAMP + number,
            base_offset=2 * number + 1,
            partition_leader_epoch=0,
        )
        return batch(2 * number, producer=1, sequence=number) + marker

    write(folder, {0: b"".join(map(transaction, range(n)))})


def segments(folder: Path, n: int) -> None:
    """So many segments of one batch."""
    write(folder, {at: batch(at) for at in range(n)})


def gaps(folder: Path, n: int) -> None:
    """So many ranges of missing offsets."""
    write(folder, {0: b"".join(batch(2 * at) for at in range(n))})


def repeats(folder: Path, n: int) -> None:
    """So many batches that are there twice."""
    write(folder, {0: b"".join(2 * batch(at) for at in range(n))})


def damage(folder: Path, n: int) -> None:
    """So many batches with a changed byte, a sound one behind each."""

    def pair(at: int) -> bytes:
        hurt = bytearray(batch(at))
        hurt[-1] ^= 1
        return bytes(hurt) + batch(at + 1)

    write(folder, {0: b"".join(map(pair, range(0, 2 * n, 2)))})


def epochs(folder: Path, n: int) -> None:
    """So many leader epochs."""
    made = [ottla.NewRecord(value=b"v", timestamp=TIMESTAMP)]
    build = ottla.build_batch
    data = (build(made, base_offset=at, partition_leader_epoch=at) for at in range(n))
    write(folder, {0: b"".join(data)})


def partitions(folder: Path, n: int) -> None:
    """So many clean partitions of 11 KB."""
    write_partitions(folder, n)


def damaged_partitions(folder: Path, n: int) -> None:
    """So many partitions with one damaged batch each."""
    for number in range(n):
        made = folder / str(number)
        damage(made, 1)
        (made / "grown-0").rename(folder / f"grown-{number}")
        made.rmdir()


def strangers(folder: Path, n: int) -> None:
    """So many files of no kind of Kafka's in a partition."""
    batches(folder, 1)
    for number in range(n):
        (folder / "grown-0" / f"stranger-{number}.txt").write_bytes(b"")


DIMENSIONS: Mapping[str, tuple[Write, int]] = {
    "batches": (batches, 5000),
    "records": (records, 50_000),
    "producers": (producers, 2000),
    "open transactions": (open_transactions, 100),
    "closed transactions": (closed_transactions, 2000),
    "segments": (segments, 100),
    "gaps": (gaps, 5000),
    "repeats": (repeats, 200),
    "damage": (damage, 100),
    "leader epochs": (epochs, 1000),
    "partitions": (partitions, 200),
    "damaged partitions": (damaged_partitions, 20),
    "unknown files": (strangers, 100),
}
"""What grows, and its number at the first step."""


def costs(write_log: Write, first: int, audit: Sequence[str]) -> tuple[float, float]:
    """Count what one more costs between two steps, and between the next two."""
    counts = []
    with tempfile.TemporaryDirectory(prefix="ottla-growth-") as home:
        for times in (1, 2, 4):
            folder = Path(home) / "logs"
            write_log(folder, times * first)
            counts.append(count([*audit, str(folder)], Path(home) / "bytecode"))
            shutil.rmtree(folder)
    one, two, four = counts
    return (two - one) / first, (four - two) / (2 * first)


def main() -> None:
    """Print the table; the status is 1 where something does not grow in proportion."""
    parser = argparse.ArgumentParser(prog="python -m benches.growth", description=__doc__)
    parser.add_argument("words", nargs="*", help="only dimensions with one of these words")
    asked = parser.parse_args()
    print("| one more | instructions | and further on | ratio |\n| --- | --- | --- | --- |")
    is_linear = True
    for name, (write_log, first) in DIMENSIONS.items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        near, far = costs(write_log, first, python(AUDIT))
        is_linear &= far <= MOST * near
        print(f"| {name} | {near:,.0f} | {far:,.0f} | {far / near:.2f} |", flush=True)
    sys.exit(not is_linear)


if __name__ == "__main__":
    main()
