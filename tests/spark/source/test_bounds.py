"""Offsets and timestamps that a read asks for: rows are those of a filter, files outside unread."""

import random
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.spark.source.bounds import Bounds
from ottla.spark.source.options import request_for
from ottla.spark.source.pieces import task_pieces
from records.crafting import resealed
from support.frames import arrow_of
from support.logs import TIMESTAMP, segment, segment_name, write_partition
from support.random_logs import write_random_log

pytestmark = pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")

Row = tuple[Any, ...]

COLUMNS = ("file", "offset", "timestamp", "value")


def rows_of(path: Path, on_damage: str = "skip", /, **bounds: int) -> list[Row]:
    """Return what the tasks of a read return."""
    asked: dict[str, int | None] = {
        "from_offset": None,
        "to_offset": None,
        "from_timestamp": None,
        "to_timestamp": None,
    }
    request = request_for(
        (str(path),),
        "records",
        columns=COLUMNS,
        on_damage=on_damage,  # type: ignore[arg-type]
        bounds=Bounds.between(**(asked | bounds)),
    )
    return [
        row
        for task in task_pieces(request)
        for batch in task.rows(request)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def filtered(rows: list[Row], bounds: dict[str, int]) -> list[Row]:
    """Return what a filter leaves."""
    first, end = bounds.get("from_offset", 0), bounds.get("to_offset", 2**63)
    earliest, latest = bounds.get("from_timestamp", -(2**63)), bounds.get("to_timestamp", 2**63)
    return [row for row in rows if first <= row[1] < end and earliest <= row[2] < latest]


def some_bounds(rng: random.Random, rows: list[Row]) -> dict[str, int]:
    """Return bounds near offsets and timestamps that there are."""
    found = {}
    for name, column in (("offset", 1), ("timestamp", 2)):
        for end in ("from", "to"):
            if rows and rng.random() < 0.4:
                value = rng.choice(rows)[column] + rng.randrange(-1, 2)
                found[f"{end}_{name}"] = max(0, value) if column == 1 else value
    return found


def batch(base_offset: int, timestamps: list[int], **options: Any) -> bytes:
    return ottla.build_batch(
        [ottla.NewRecord(value=b"%d" % time, timestamp=time) for time in timestamps],
        base_offset=base_offset,
        **options,
    )


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return a log of every kind of timestamps: out of order, of the log, of old formats, thin."""
    parts = [batch(20, [100, 300, 200]), batch(23, [150, 50], compression="zstd")]
    rows = [ottla.NewRecord(value=b"m", timestamp=time) for time in (260, 240, 245)]
    old = [
        ottla.build_message_set(rows, magic=1, base_offset=40, compression="gzip"),
        ottla.build_message_set(rows, magic=0, base_offset=43),
    ]
    write_partition(
        tmp_path / "orders-0",
        {
            0: batch(0, [10, 20, 30]) + batch(7, [400, 15]),
            20: b"".join(parts),
            30: batch(30, [5, 6, 7], log_append_time_ms=250),
            40: b"".join(old),
            50: batch(50, [1000]),
        },
    )
    return tmp_path


@pytest.mark.parametrize("seed", range(12))
def test_rows_within_bounds_are_those_of_a_filter(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    write_random_log(tmp_path / "orders-0", rng)
    rows = rows_of(tmp_path)
    for _ in range(20):
        bounds = some_bounds(rng, rows)
        assert rows_of(tmp_path, **bounds) == filtered(rows, bounds), bounds


@pytest.mark.parametrize("seed", range(4))
def test_rows_between_timestamps_are_those_of_a_filter_however_they_are_kept(
    seed: int, odd: Path
) -> None:
    rng = random.Random(seed)
    rows = rows_of(odd, "fail")
    assert [row[2] for row in rows if 30 <= row[1] < 33] == [250] * 3
    assert [row[2] for row in rows if 43 <= row[1] < 46] == [-1] * 3
    for _ in range(30):
        bounds = some_bounds(rng, rows)
        assert rows_of(odd, "fail", **bounds) == filtered(rows, bounds), bounds


def test_segments_without_the_offsets_asked_for_are_not_opened(tmp_path: Path) -> None:
    sound = {base: segment(3, base_offset=base) for base in range(0, 45, 9)}
    directory = write_partition(tmp_path / "orders-0", sound)
    whole = rows_of(tmp_path, "fail")
    wanted = {"from_offset": 20, "to_offset": 27}
    for base in (0, 9, 27, 36):
        (directory / segment_name(base)).write_bytes(b"\xff" * len(sound[base]))
    assert rows_of(tmp_path, "fail", **wanted) == filtered(whole, wanted)
    with pytest.raises(ottla.OttlaError, match="on_damage=skip leaves it out"):
        rows_of(tmp_path, "fail", from_offset=20)


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, {"from_timestamp": 301}),
        ({"log_append_time_ms": 300}, {"from_timestamp": 301}),
        ({"log_append_time_ms": 300}, {"to_timestamp": 300}),
    ],
)
def test_batches_without_the_timestamps_asked_for_are_not_decompressed(
    options: dict[str, int], bounds: dict[str, int], tmp_path: Path
) -> None:
    """One that cannot be, though its checksum is right, is passed over by its header."""
    no_zstd = bytearray(batch(20, [100, 300, 200], compression="zstd", **options))
    no_zstd[61:65] = bytes(4)
    parts = batch(10, [250, 350]), resealed(bytes(no_zstd)), batch(30, [50, 400])
    write_partition(tmp_path / "orders-0", {0: b"".join(parts)})
    rows = [10, 250], [11, 350], [30, 50], [31, 400]
    found = [[row[1], row[2]] for row in rows_of(tmp_path, "fail", **bounds)]
    earliest, end = bounds.get("from_timestamp", 0), bounds.get("to_timestamp", 999)
    assert found == [row for row in rows if earliest <= row[1] < end]
    # Those that might hold them are: with create time, any may begin earlier.
    for others in ({"from_timestamp": 300}, {"to_timestamp": 301}):
        with pytest.raises(ottla.OttlaError, match="on_damage=skip leaves it out"):
            rows_of(tmp_path, "fail", **others)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"from_offset": -1}, "from_offset is -1, not from 0"),
        ({"to_timestamp": 2**63}, "to_timestamp is 9223372036854775808, not from"),
    ],
)
def test_a_bound_that_is_none_is_refused(bounds: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of(Path(), **bounds)


@pytest.mark.spark
def test_a_read_has_the_bounds_that_are_asked_for(spark: Any, tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: segment(4), 12: segment(4, base_offset=12)})
    columns = ["offset", "timestamp"]
    rows = arrow_of(ottla.spark.read(spark, tmp_path, columns=columns)).to_pylist()
    found = ottla.spark.read(
        spark,
        tmp_path,
        columns=columns,
        from_offset=2,
        to_offset=20,
        from_timestamp=TIMESTAMP + 1,
    )
    wanted = [r for r in rows if 2 <= r["offset"] < 20 and r["timestamp"] > TIMESTAMP]
    assert arrow_of(found).to_pylist() == wanted
    with pytest.raises(ValueError, match="of the table records, not of batches"):
        ottla.spark.read(spark, tmp_path, "batches", from_offset=2)
