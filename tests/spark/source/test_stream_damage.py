"""Streams that go on behind damage, against one read of the same log."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.logs import segment, segment_name
from support.transactions import transactional_log

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import SparkError
from ottla.spark.source.stream import ReadMaxBytes
from support.streams import Growing, Query, drain, one_read, waiting

pytestmark = pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")

LAST_OFFSET_DELTA = 23
"""Where a batch says how many offsets it has."""


def write(root: Path, data: bytes, base_offset: int = 0) -> None:
    directory = root / "orders-0"
    directory.mkdir(exist_ok=True)
    (directory / segment_name(base_offset)).write_bytes(data)


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


def test_a_stream_returns_what_it_cannot_read_as_rows(tmp_path: Path) -> None:
    first = segment(1)
    lost = flipped(segment(1, base_offset=3), 80)
    write(tmp_path, first + lost)
    query = Query(tmp_path, on_damage="quarantine")
    query.trigger()
    assert [row[2] for row in query.rows] == [0, 1, 2]
    write(tmp_path, first + lost + segment(1, base_offset=6))
    query.killed_at("divided")
    query.trigger()
    assert [row[2] for row in query.rows if row[4] is None] == [0, 1, 2, 6, 7, 8]
    (row,) = [row for row in query.rows if row[4] is not None]
    assert row[:4] == ("orders", 0, None, None)
    assert row[4]["bytes"] == lost
    assert (row[4]["position"], row[4]["first_offset"], row[4]["last_offset"]) == (len(first), 3, 5)
    assert "wrong CRC" in row[4]["reason"]


@pytest.mark.parametrize("on_damage", ["skip", "quarantine", "fail"])
def test_a_batch_whose_offset_is_none_is_stepped_over(on_damage: str, tmp_path: Path) -> None:
    # The checksum is right: it does not cover the base offset.
    lost = b"\xff" * 8 + segment(1, base_offset=3)[8:]
    write(tmp_path, segment(1) + lost + segment(1, base_offset=6))
    query = Query(tmp_path, on_damage=on_damage)
    if on_damage == "fail":
        with pytest.raises(SparkError, match=f"damage at position {len(segment(1))}"):
            query.trigger()
        return
    query.trigger()
    assert [row[2] for row in query.rows if row[2] is not None] == [0, 1, 2, 6, 7, 8]
    assert query.rows == one_read(tmp_path, on_damage=on_damage)


@pytest.mark.parametrize("is_last_of_its_segment", [False, True])
def test_a_damaged_batch_that_says_more_offsets_than_it_has_takes_no_others_with_it(
    tmp_path: Path, *, is_last_of_its_segment: bool
) -> None:
    data = segment(1) + flipped(segment(1, base_offset=3), LAST_OFFSET_DELTA)
    if is_last_of_its_segment:
        write(tmp_path, data)
        write(tmp_path, segment(2, base_offset=6), 6)
    else:
        write(tmp_path, data + segment(2, base_offset=6))
    for limit in (None, 1) if ReadMaxBytes else (None,):
        query = Query(tmp_path, on_damage="skip")
        while query.trigger(limit):
            pass
        assert query.offsets() == [0, 1, 2, 6, 7, 8, 9, 10, 11]


def test_of_several_damaged_batches_at_the_end_none_is_read_before_another_follows(
    tmp_path: Path,
) -> None:
    data = segment(1)
    for base_offset in (3, 6):
        data += flipped(segment(1, base_offset=base_offset), 80)
    write(tmp_path, data)
    query = Query(tmp_path, on_damage="quarantine")
    query.trigger()
    assert [row[4] for row in query.rows] == [None] * 3
    assert "no whole batch yet" in waiting(query)[0]
    write(tmp_path, data + segment(1, base_offset=9))
    query.trigger()
    assert [row[4]["last_offset"] for row in query.rows if row[4]] == [8]


@pytest.mark.skipif(ReadMaxBytes is None, reason="limits need PySpark 4.2")
def test_damage_is_one_row_wherever_a_trigger_ends(tmp_path: Path) -> None:
    write(tmp_path, segment(1) + b"#" * 300 + segment(3, base_offset=9))
    query = Query(tmp_path, on_damage="quarantine")
    while query.trigger(1):
        query.restart()
    assert without_damage(query.rows) == without_damage(one_read(tmp_path, on_damage="quarantine"))
    assert len([row for row in query.rows if row[4]]) == 1


def bit_flipped(data: bytes, byte: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)


HURT = {
    "the first batch": 0,
    "a batch between others": 1,
    "the last batch of a segment": 2,
    "the first batch of a segment": 3,
}
# The base offset, the magic and the offsets that a batch says it has: for each, what makes a hole.
FLIPS = [(2, 3), (6, 5), (7, 0), (7, 4), (16, 1), (LAST_OFFSET_DELTA + 3, 1)]


@pytest.mark.parametrize("where", HURT)
@pytest.mark.parametrize(("byte", "bit"), FLIPS)
def test_a_damaged_header_that_makes_a_hole_is_passed_as_one_read_passes_it(
    byte: int, bit: int, where: str, tmp_path: Path
) -> None:
    batches = [segment(1, base_offset=3 * number) for number in range(6)]
    hurt = HURT[where]
    batches[hurt] = bit_flipped(batches[hurt], byte, bit)
    write(tmp_path, b"".join(batches[:3]))
    write(tmp_path, b"".join(batches[3:]), 9)
    options = {"on_damage": "quarantine", "late_segments": "fail"}
    expected, lost = without_damage(one_read(tmp_path, **options))
    for limit in (None, 1) if ReadMaxBytes else (None,):
        query = Query(tmp_path, **options)
        while query.trigger(limit):
            query.restart()
        assert without_damage(query.rows) == (expected, lost)
    # All offsets are there, or told of.
    told = {offset for row in lost for offset in range(row[3], row[4] + 1)}
    assert {row[2] for row in expected} | told == set(range(18))


def test_a_hole_that_no_damage_explains_ends_a_stream_that_skips_damage(tmp_path: Path) -> None:
    write(tmp_path, segment(1) + segment(2, base_offset=6))
    with pytest.raises(SparkError, match="offsets 3 to 5 are missing"):
        Query(tmp_path, on_damage="skip").trigger()
    # Nor does damage elsewhere explain it.
    hurt = flipped(segment(1, base_offset=12), 80)
    write(tmp_path, segment(1) + segment(2, base_offset=6) + hurt + segment(1, base_offset=15))
    with pytest.raises(SparkError, match="offsets 3 to 5 are missing"):
        Query(tmp_path, on_damage="skip").trigger()


def test_a_damaged_base_offset_ends_a_stream_of_committed_records(tmp_path: Path) -> None:
    far = bit_flipped(segment(1, base_offset=3), 6, 5)
    write(tmp_path, segment(1) + far + segment(1, base_offset=6))
    with pytest.raises(SparkError, match="offsets 3 to 8194 are missing"):
        Query(tmp_path, on_damage="skip", isolation_level="read_committed").trigger()


def test_a_last_batch_behind_a_hole_waits_for_one_that_shows_which_is_wrong(
    tmp_path: Path,
) -> None:
    far = bit_flipped(segment(1, base_offset=3), 6, 5)
    write(tmp_path, segment(1) + far)
    query = Query(tmp_path, on_damage="skip")
    query.trigger()
    assert query.offsets() == [0, 1, 2]
    assert "has offset 8195 where 3 is expected" in waiting(query)[0]
    write(tmp_path, segment(1) + far + segment(1, base_offset=6))
    query.trigger()
    assert query.offsets() == [0, 1, 2, 6, 7, 8]
    # The batch behind it may also show that offsets are missing.
    write(tmp_path, segment(1) + far + segment(1, base_offset=6) + segment(1, base_offset=12))
    query.trigger()
    assert "has offset 12 where 9 is expected" in waiting(query)[0]
    log = segment(1) + far + segment(1, base_offset=6) + segment(2, base_offset=12)
    write(tmp_path, log)
    with pytest.raises(SparkError, match="offsets 9 to 11 are missing"):
        query.trigger()


def spoil(path: Path, rng: random.Random) -> None:
    """Change some bits of a log."""
    for _ in range(rng.randrange(1, 4)):
        file = rng.choice(sorted(path.glob("*.log")))
        data = bytearray(file.read_bytes())
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            file.write_bytes(data)


def compare_damaged(seed: int, root: Path) -> str:
    """Follow a damaged log, and compare with one read of it; how that ended."""
    rng = random.Random(seed)
    source = transactional_log(root / "source", rng)
    spoil(source, rng)
    options = {
        "isolation_level": rng.choice(["read_committed", "read_uncommitted"]),
        "on_damage": rng.choice(["skip", "quarantine"]),
    }
    growing = Growing(source, root / "followed")
    query = Query(root / "followed", late_segments="fail", **options)
    try:
        while growing.size < growing.whole:
            growing.grow_to(min(growing.whole, growing.size + rng.randrange(1, 3000)))
            drain(query, rng)
        expected = one_read(root / "followed", **options)
    except SparkError:
        return "failed"
    # Within a task, rows of damage come with the records around it.
    found, lost = without_damage(query.rows)
    wanted, all_lost = without_damage(expected)
    if waiting(query):
        assert found == wanted[: len(found)], seed
        assert lost <= all_lost, seed
        return "waits"
    assert (found, lost) == (wanted, all_lost), seed
    return "complete"


def without_damage(rows: list[tuple[Any, ...]]) -> tuple[list[Any], set[Any]]:
    """Return the rows of records, and those of damage."""
    lost = {tuple(row[4].values()) for row in rows if row[4:] and row[4] is not None}
    return [row[:4] for row in rows if not row[4:] or row[4] is None], lost


def test_a_stream_over_damage_gives_the_rows_of_one_read(tmp_path: Path) -> None:
    ends = [compare_damaged(seed, tmp_path / str(seed)) for seed in range(16)]
    assert ends.count("complete") + ends.count("waits") > 8, ends


@pytest.mark.slow
def test_a_stream_over_damage_gives_the_rows_of_one_read_at_length(tmp_path: Path) -> None:
    for seed in range(100, 800):
        compare_damaged(seed, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))
