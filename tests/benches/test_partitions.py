"""Many small partitions: all of them are audited, and little is held of each."""

import tracemalloc
from pathlib import Path

import ottla

from benches.partitions import write_partitions
from benches.scaling import THREADS, least_seconds

PARTITIONS = 300

# A broker of 100,000 partitions is audited in 256 MiB, of which 50 are there for any audit.
BYTES_A_PARTITION = 1500


def test_many_partitions_are_all_there_and_sound(tmp_path: Path) -> None:
    written = write_partitions(tmp_path, PARTITIONS)
    result = ottla.audit(tmp_path)
    assert not list(result.findings)
    assert result.exit_code == 0
    assert (result.summary.partitions, result.summary.bytes) == (PARTITIONS, written)
    assert len(result.files) == sum(1 for _ in result.files) == 5 * PARTITIONS + 6
    assert len(result.metrics) == sum(1 for _ in result.metrics) == PARTITIONS
    assert not list(result.recovery)


def held_by_an_audit(directory: Path) -> int:
    """Bytes of Python objects that a result keeps."""
    tracemalloc.start()
    try:
        result = ottla.audit(directory, threads=1)
        assert result.summary.not_read == 0
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_little_is_held_of_each_partition(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    write_partitions(few, 1)
    write_partitions(many, PARTITIONS)
    # What is made once, like caches and imported modules, is no part of it.
    held_by_an_audit(many)
    held = held_by_an_audit(many) - held_by_an_audit(few)
    assert held < BYTES_A_PARTITION * PARTITIONS


def test_each_number_of_threads_is_timed(tmp_path: Path) -> None:
    write_partitions(tmp_path, 3)
    assert least_seconds(tmp_path, rounds=1).keys() == set(THREADS)
