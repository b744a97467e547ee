"""The records of audited files in two tables: good ones, and those in quarantine with a reason."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.audit import audit
from ottla.audit.catalogue.explain import explain
from ottla.audit.catalogue.finding import PlacedFinding
from ottla.audit.result import split
from ottla.storage import LocalPlace
from support.logs import batches, segment, segment_name, write_partition

from benches.data import Compression, encode_batch

Split = tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]

TIMESTAMP = 1_700_000_000_000


def split_of(directory: Path) -> Split:
    valid, quarantine = audit(directory).split_records()
    return list(valid), list(quarantine)


@pytest.fixture
def split_log(tmp_path: Path) -> Callable[[bytes], Split]:
    """Return a function that audits a partition of one closed segment and splits it."""

    def work(data: bytes) -> Split:
        last = segment(1, base_offset=1_000)
        return split_of(write_partition(tmp_path / "orders-0", {0: data, 1_000: last}))

    return work


def test_a_sound_log_has_nothing_in_quarantine(demo: Path) -> None:
    result = audit(demo)
    valid, quarantine = result.split_records()
    assert valid.to_arrow().equals(result.records.to_arrow())
    assert len(quarantine) == 0
    assert [column.name for column in quarantine.columns] == quarantine.to_arrow().column_names


def test_a_batch_with_a_wrong_checksum_is_one_row_with_its_bytes(
    split_log: Callable[[bytes], Split],
) -> None:
    first, second, third = batches(3)
    damaged = second[:-1] + b"\x55"
    valid, quarantine = split_log(first + damaged + third)
    assert [row["offset"] for row in valid] == [0, 1, 2, 6, 7, 8, 1000, 1001, 1002]
    (row,) = quarantine
    assert (row["file"], row["topic"], row["partition"]) == (
        f"orders-0/{segment_name(0)}",
        "orders",
        0,
    )
    assert (row["batch_position"], row["bytes"], row["size"]) == (len(first), damaged, len(damaged))
    assert row["reason"] == "crc-mismatch"
    assert row["message"]
    assert row["offset"] is None


def test_records_of_a_readable_batch_are_told_one_by_one(
    split_log: Callable[[bytes], Split],
) -> None:
    first, second = batches(2)
    valid, quarantine = split_log(first + second + first)
    assert [row["offset"] for row in valid] == [*range(6), 1000, 1001, 1002]
    assert [(row["offset"], row["record_index"], row["reason"]) for row in quarantine] == [
        (0, 0, "offset-repeat"),
        (1, 1, "offset-repeat"),
        (2, 2, "offset-repeat"),
    ]
    assert quarantine[0]["value"] == valid[0]["value"]
    assert quarantine[0]["bytes"] is None


def test_a_finding_about_one_record_leaves_the_others_of_its_batch(
    tmp_path: Path,
) -> None:
    data = segment(2)
    path = bytes(tmp_path / segment_name(0))
    Path(path.decode()).write_bytes(data)
    size = len(batches(1)[0])
    named = PlacedFinding(
        name="record-fault",
        severity="error",
        path=path,
        message="wrong",
        position=size,
        size=size,
        record_index=1,
    )
    parts = split.split_file(LocalPlace(path), ("f", "orders", 0), [named])
    valid, quarantine = ([row for chunk in part for row in chunk] for part in parts)
    assert [row[4] for row in valid] == [0, 1, 2, 3, 5]
    assert [(row[4], *row[-5:]) for row in quarantine] == [
        (4, "record-fault", "wrong", 1, None, None)
    ]


def test_a_batch_with_an_unreadable_record_is_kept_whole(
    split_log: Callable[[bytes], Split],
) -> None:
    # A record count that promises one more than there is, under a right checksum.
    sound = batches(1)[0]
    body = bytearray(sound[21:])
    body[2 + 4 - 1] += 1
    body[36 + 4 - 1] += 1
    wrong = sound[:17] + crc32c.crc32c(bytes(body)).to_bytes(4, "big") + bytes(body)
    valid, quarantine = split_log(wrong + segment(1, base_offset=9))
    assert [row["offset"] for row in valid] == [9, 10, 11, 1000, 1001, 1002]
    assert [row["bytes"] for row in quarantine] == [wrong]


def test_a_long_range_goes_on_from_row_to_row(
    split_log: Callable[[bytes], Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "PIECE_BYTES", 100)
    first, second = batches(2)
    noise = b"\x01" * 250
    _, quarantine = split_log(first + noise + second)
    assert [row["size"] for row in quarantine] == [100, 100, 50]
    assert b"".join(row["bytes"] for row in quarantine) == noise
    assert quarantine[1]["batch_position"] == len(first) + 100


def test_behind_the_last_of_a_thousand_findings_nothing_is_taken_for_good(
    tmp_path: Path,
) -> None:
    data = b"".join(batch[:-1] + b"\x55" for batch in batches(1_010, records=1))
    sound = segment(1, base_offset=1_010)
    last = segment(1, base_offset=2_000)
    valid, quarantine = split_of(
        write_partition(tmp_path / "orders-0", {0: data + sound, 2_000: last})
    )
    assert [row["offset"] for row in valid] == [2000, 2001, 2002]
    assert b"".join(row["bytes"] for row in quarantine) == data + sound


def test_a_file_that_is_gone_is_an_error_of_the_operating_system(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(1)})
    valid, _ = audit(directory).split_records()
    (directory / segment_name(0)).unlink()
    with pytest.raises(FileNotFoundError):
        list(valid)


@st.composite
def damaged_logs(draw: st.DrawFn) -> bytes:
    """Batches of any codec in a row, with bits flipped, bytes taken out and put in."""
    data = bytearray()
    for number in range(draw(st.integers(1, 8))):
        records = [
            (TIMESTAMP + index, b"key", b"v" * 20, ()) for index in range(draw(st.integers(1, 4)))
        ]
        codec: Compression = draw(st.sampled_from(("none", "lz4", "gzip")))
        data += encode_batch(records, base_offset=10 * number, compression=codec)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(("flip", "cut", "insert")))
        if kind == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 100))]
        else:
            data[at:at] = draw(st.binary(min_size=1, max_size=100))
        if not data:
            break
    return bytes(data)


@given(damaged_logs())
@settings(max_examples=60)
def test_every_record_that_can_be_read_is_in_one_of_the_two(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as parent:
        directory = write_partition(
            Path(parent) / "orders-0", {0: data, 1_000: segment(1, base_offset=1_000)}
        )
        result = audit(directory)
        valid, quarantine = (list(table) for table in result.split_records())
        every = list(result.records)
    ranges = [
        (row["file"], row["batch_position"], row["batch_position"] + row["size"])
        for row in quarantine
        if row["bytes"] is not None
    ]

    def is_inside(row: Mapping[str, Any]) -> bool:
        return any(
            file == row["file"] and start <= row["batch_position"] < stop
            for file, start, stop in ranges
        )

    def named(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("file", "batch_position", "offset", "value"))

    kept_out = {named(row) for row in quarantine if row["bytes"] is None}
    good = {named(row) for row in valid}
    assert not good & kept_out
    for row in every:
        assert (named(row) in good) + (named(row) in kept_out) + is_inside(row) == 1
    for file, start, stop in ranges:
        if file.endswith(segment_name(0)):
            bytes_of = next(r["bytes"] for r in quarantine if r["batch_position"] == start)
            assert data[start:stop] == bytes_of


@pytest.mark.shared
@pytest.mark.slow
def test_what_is_good_in_a_damaged_log_passes_every_check(shared: Path) -> None:
    """The planted injuries: a batch of which any record is valid can be read."""
    cases = sorted((shared / "damage" / "cases").iterdir())
    assert cases
    quarantined = 0
    for case in cases:
        valid, quarantine = split_of(case)
        quarantined += len(quarantine)
        assert all(explain(row["reason"]).condemns for row in quarantine)
        assert all(row["offset"] is not None for row in valid)
    assert quarantined
