"""Streams at every level of isolation, and over damage, against one read of the same log."""

import random
import shutil
from pathlib import Path
from typing import Any

import ottla
import pytest
from support.logs import segment_name
from support.transactions import transactional_log

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import DataLossWarning, SparkError
from ottla.spark.source.stream import ReadMaxBytes
from support.streams import STEPS, Growing, Query, drain, one_read, waiting

STEP = pytest.mark.parametrize("step", STEPS)
COMMITTED = {"isolation_level": "read_committed"}


def batch(base_offset: int, producer: int, count: int = 3) -> bytes:
    return ottla.build_batch(
        [ottla.NewRecord(b"k", b"%d" % (base_offset + n)) for n in range(count)],
        base_offset=base_offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(base_offset: int, producer: int, kind: Any) -> bytes:
    return ottla.build_control_batch(
        kind,
        base_offset=base_offset,
        producer_id=producer,
        producer_epoch=0,
        timestamp=1000,
        coordinator_epoch=0,
    )


def put(root: Path, data: bytes, base_offset: int = 0) -> Path:
    directory = root / "orders-0"
    directory.mkdir(exist_ok=True)
    (directory / segment_name(base_offset)).write_bytes(data)
    return directory


@STEP
def test_an_open_transaction_holds_a_stream_back_until_it_ends(step: str, tmp_path: Path) -> None:
    data = batch(0, 1) + batch(3, 2) + marker(6, 1, "commit")
    put(tmp_path, data)
    query = Query(tmp_path, **COMMITTED)
    query.killed_at(step)
    query.trigger()
    assert query.offsets() == [0, 1, 2]
    assert not query.trigger()
    assert "the transaction of producer id 2 that began at offset 3 is open" in waiting(query)[0]
    put(tmp_path, data + batch(7, 3))
    assert not query.trigger()
    put(tmp_path, data + batch(7, 3) + marker(10, 2, "abort") + marker(11, 3, "commit"))
    query.killed_at(step)
    query.trigger()
    assert query.offsets() == [0, 1, 2, 7, 8, 9]
    assert not query.trigger()
    assert query.rows == one_read(tmp_path, **COMMITTED)


@pytest.mark.skipif(ReadMaxBytes is None, reason="limits need PySpark 4.2")
def test_a_marker_behind_what_a_trigger_reads_decides_about_it(tmp_path: Path) -> None:
    put(tmp_path, batch(0, 1) + batch(3, 2))
    put(tmp_path, batch(6, 1) + marker(9, 1, "abort") + marker(10, 2, "commit"), 6)
    query = Query(tmp_path, **COMMITTED)
    triggers = 0
    while query.trigger(1):
        triggers += 1
        query.restart()
    assert triggers == 5
    assert query.offsets() == [3, 4, 5]


def test_a_transaction_that_goes_on_in_a_missing_segment_is_not_decided_behind_it(
    tmp_path: Path,
) -> None:
    put(tmp_path, batch(0, 1))
    late = marker(3, 1, "commit") + batch(4, 1)
    put(tmp_path, marker(7, 1, "abort"), 7)
    query = Query(tmp_path, **COMMITTED)
    assert not query.trigger()
    put(tmp_path, late, 3)
    query.trigger()
    assert query.offsets() == [0, 1, 2]


@pytest.mark.parametrize("start", ["latest", '{"orders": {"0": 6}}'])
def test_a_transaction_that_began_before_the_first_offset_holds_it_too(
    start: str, tmp_path: Path
) -> None:
    data = batch(0, 1) + batch(3, 2) + marker(6, 2, "commit")
    put(tmp_path, data)
    query = Query(tmp_path, startingOffsets=start, **COMMITTED)
    query.trigger()
    data += batch(7, 2) + marker(10, 2, "commit")
    put(tmp_path, data)
    while query.trigger():
        query.restart()
    assert query.offsets() == []
    put(tmp_path, data + marker(11, 1, "abort"))
    query.trigger()
    assert query.offsets() == [7, 8, 9]


def test_a_replay_is_proved_by_the_markers_behind_it_too(tmp_path: Path) -> None:
    put(tmp_path, batch(0, 1) + batch(3, 2))
    put(tmp_path, marker(6, 1, "abort"), 6)
    query = Query(tmp_path, **COMMITTED)
    query.killed_at("divided")
    (planned,) = query.planned["partitions"].values()  # type: ignore[index]
    assert planned["next_offset"] == 3
    put(tmp_path, marker(6, 1, "commit"), 6)
    with pytest.raises(SparkError, match="not what was planned: the batches of offsets 0 to 2"):
        query.trigger()
    put(tmp_path, batch(6, 3), 6)
    with pytest.raises(SparkError, match="of producer id 1 that began at offset 0 was decided"):
        query.trigger()
    query.restart(fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="producer id 1 that began at offset 0 was decided"):
        query.trigger()
    assert query.offsets() == []


def compare_grown(seed: int, root: Path) -> None:
    rng = random.Random(seed)
    options = {
        "isolation_level": rng.choice(["read_committed", "read_committed", "READ_UNCOMMITTED"])
    }
    if rng.random() < 0.3:
        options["schema"] = "kafka"
    growing = Growing(transactional_log(root / "source", rng), root / "followed")
    query = Query(root / "followed", **options)
    while growing.size < growing.whole:
        growing.grow_to(min(growing.whole, growing.size + rng.randrange(1, 1600)))
        drain(query, rng)
        assert query.rows == one_read(root / "followed", **options), seed


def test_a_stream_in_any_number_of_triggers_gives_the_rows_of_one_read(tmp_path: Path) -> None:
    for seed in range(12):
        compare_grown(seed, tmp_path / str(seed))


@pytest.mark.slow
def test_a_stream_in_any_number_of_triggers_gives_the_rows_of_one_read_at_length(
    tmp_path: Path,
) -> None:
    for seed in range(100, 600):
        compare_grown(seed, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))
