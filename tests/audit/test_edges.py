"""Edges of the audit's rules: the last that is in order, and the first that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ottla
import pytest
from records.crafting import TIMESTAMP, batch, compress, entry, message, record
from support import small_log
from support.logs import segment, write_log_directory, write_partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOISE = b"\xa5\x5a\x96" * 100
ZEROS = bytes(200)


def log_of(tmp_path: Path, data: bytes, base_offset: int = 0) -> Path:
    return write_partition(tmp_path / "orders-0", {base_offset: data})


def found(path: Path, name: str) -> Sequence[Mapping[str, Any]]:
    return [row for row in ottla.audit(path).findings if row["name"] == name]


# The files beside a log that ends at 24.

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize(("offset", "beyond"), [(24, []), (25, [(24, 24)])])
def test_a_checkpoint_may_have_the_end_of_its_log_and_no_more(
    tmp_path: Path, name: str, offset: int, beyond: list[tuple[int, int]]
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / name).write_text(f"0\n1\norders 0 {offset}\n")
    rows = found(path, "checkpoint-mismatch")
    assert [(row["first_offset"], row["last_offset"]) for row in rows] == beyond


@pytest.mark.parametrize(("start", "beyond"), [(24, []), (25, [25])])
def test_an_epoch_may_start_at_the_end_of_its_log_and_not_beyond(
    tmp_path: Path, start: int, beyond: list[int]
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / "orders-0" / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {start}\n")
    rows = found(path, "epoch-checkpoint-mismatch")
    assert [row["first_offset"] for row in rows] == beyond


# Where a log begins.


def started_at(tmp_path: Path, base_offset: int, first: int, log_start: int | None) -> Path:
    """A log whose first file is named for an offset and begins with another."""
    path = tmp_path / "kafka"
    write_partition(path / "orders-0", {base_offset: segment(4, base_offset=first)})
    (path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    if log_start is not None:
        (path / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {log_start}\n")
        epochs = f"0\n1\n0 {max(base_offset, log_start)}\n"
        (path / "orders-0" / "leader-epoch-checkpoint").write_text(epochs)
    return path


@pytest.mark.parametrize(
    ("first", "log_start", "missing"),
    [
        (12, None, []),
        (15, None, [(12, 14)]),
        (15, 14, [(12, 14)]),
        (15, 15, []),
    ],
)
def test_a_gap_at_the_log_start_is_told_unless_records_up_to_it_were_deleted(
    tmp_path: Path, first: int, log_start: int | None, missing: list[tuple[int, int]]
) -> None:
    rows = found(started_at(tmp_path, 12, first, log_start), "offset-gap")
    assert [(row["first_offset"], row["last_offset"]) for row in rows] == missing


@pytest.mark.parametrize(
    ("log_start", "gaps"),
    [
        (None, [("retention", 0, 11)]),
        (11, [("retention", 0, 10), ("tier-boundary", 11, 11)]),
        (12, [("retention", 0, 11)]),
        (13, [("retention", 0, 11), ("delete-records", 12, 12)]),
        (99, [("retention", 0, 11), ("delete-records", 12, 23)]),
    ],
)
def test_offsets_below_the_log_start_are_accounted_for_to_the_last(
    tmp_path: Path, log_start: int | None, gaps: list[tuple[str, int, int]]
) -> None:
    result = ottla.audit(started_at(tmp_path, 12, 12, log_start))
    assert [(g["cause"], g["first_offset"], g["last_offset"]) for g in result.gaps] == gaps


@pytest.mark.parametrize(
    ("log_start", "epoch_start", "cause"),
    [(13, 13, "delete-records"), (13, 12, "wrong-checkpoint"), (13, 20, "delete-records")],
)
def test_records_below_a_log_start_are_rightly_withheld_where_the_leader_epochs_begin_with_it(
    tmp_path: Path, log_start: int, epoch_start: int, cause: str
) -> None:
    path = started_at(tmp_path, 12, 12, log_start)
    epochs = path / "orders-0" / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n1\n0 {epoch_start}\n")
    result = ottla.audit(path)
    assert [gap["cause"] for gap in result.gaps if gap["last_offset"] == 12] == [cause]
    is_told = [row["name"] for row in result.findings] == ["unexplained-log-start"]
    assert is_told == (cause == "wrong-checkpoint")


@pytest.mark.parametrize(("first", "outside"), [(12, []), (11, [(11, 13)])])
def test_a_batch_below_the_name_of_its_file_is_out_of_its_segment(
    tmp_path: Path, first: int, outside: list[tuple[int, int]]
) -> None:
    data = segment(1, base_offset=first) + segment(3, base_offset=20)
    rows = found(log_of(tmp_path, data, 12), "out-of-segment")
    assert [(row["first_offset"], row["last_offset"]) for row in rows] == outside


# Epochs and timestamps.


def test_a_batch_of_a_wrong_epoch_between_others_counts_neither_for_nor_against_them(
    tmp_path: Path,
) -> None:
    epochs = (3, 3, 9, 3, 3)
    data = b"".join(
        batch(record(), base_offset=offset, partition_leader_epoch=epoch)
        for offset, epoch in enumerate(epochs)
    )
    result = ottla.audit(log_of(tmp_path, data))
    assert [(row["leader_epoch"], row["batches"]) for row in result.epochs if row["batches"]] == [
        (3, 5)
    ]
    (fault,) = (row for row in result.findings if row["name"] == "leader-epoch-fault")
    assert (fault["first_offset"], fault["found"]) == (2, "9")


@pytest.mark.parametrize("is_thin", [False, True], ids=["dense", "thin"])
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("timestamp", "maximum", "is_told"),
    [(-1, -1, False), (-5, -1, False), (-5, 0, True), (5, 5, False), (5, 6, True)],
)
def test_a_maximum_of_no_timestamp_needs_no_record_that_has_it(
    tmp_path: Path, timestamp: int, maximum: int, codec: int, *, is_told: bool, is_thin: bool
) -> None:
    payload = record(0) + record(1)
    data = batch(
        compress("gzip", payload) if codec else payload,
        count=2,
        codec=codec,
        base_timestamp=timestamp,
        max_timestamp=maximum,
        last_offset_delta=5 if is_thin else None,
    )
    rows = found(log_of(tmp_path, data), "timestamp-suspect")
    told = [row for row in rows if "later than any of its records" in row["message"]]
    assert bool(told) == is_told


# What is found behind damage.


def one(base_offset: int, value: bytes = b"v", **fields: int) -> bytes:
    """A batch of ten offsets and ten records, the first with a value."""
    rest = b"".join(record(index) for index in range(1, 10))
    payload = record(0, value=value) + rest
    return batch(payload, count=10, base_offset=base_offset, max_timestamp=TIMESTAMP, **fields)


def hurt(data: bytes) -> bytes:
    """The same batch with a bit of its last record flipped."""
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def read_on(tmp_path: Path, data: bytes) -> list[int]:
    """Base offsets of the batches that an audit finds sound."""
    rows = ottla.audit(log_of(tmp_path, data)).batches
    return [row["base_offset"] for row in rows if row["is_valid"]]


@pytest.mark.parametrize(("attributes", "is_read"), [(0, True), (0x40, True), (0x80, False)])
def test_a_batch_with_a_reserved_attribute_is_not_taken_for_one_behind_damage(
    tmp_path: Path, attributes: int, *, is_read: bool
) -> None:
    data = one(0) + NOISE + one(20, attributes=attributes) + one(30) + one(40)
    assert read_on(tmp_path, data) == [0, *([20] if is_read else []), 30, 40]


@pytest.mark.parametrize(("attributes", "is_read"), [(0x08, True), (0x10, False)])
def test_a_message_with_a_reserved_attribute_is_not_taken_for_one_behind_damage(
    tmp_path: Path, attributes: int, *, is_read: bool
) -> None:
    def old(offset: int, bits: int = 0) -> bytes:
        return entry(offset, message(1, timestamp=5, attributes=bits))

    data = old(0) + NOISE + old(2, attributes) + old(3) + old(4)
    assert read_on(tmp_path, data) == [0, *([2] if is_read else []), 3, 4]


def test_a_batch_that_ends_the_offsets_before_damage_is_none_behind_it(tmp_path: Path) -> None:
    stale = batch(record(), base_offset=9)
    data = one(0) + NOISE + stale + ZEROS + NOISE + one(10) + one(20)
    assert read_on(tmp_path, data) == [0, 10, 20]


def test_a_batch_whose_end_the_next_one_repeats_is_not_taken_behind_damage(tmp_path: Path) -> None:
    overlapping = batch(record(), base_offset=39)
    data = one(0) + NOISE + one(30) + overlapping + one(40) + one(50)
    assert read_on(tmp_path, data) == [0, 39, 40, 50]


def test_of_two_batches_that_fit_alike_the_first_is_taken(tmp_path: Path) -> None:
    data = one(0) + NOISE + one(30) + ZEROS + NOISE + one(50) + ZEROS + NOISE
    assert read_on(tmp_path, data) == [0, 30, 50]


def holding(inner: int) -> bytes:
    """A damaged batch with another in a value, behind sound ones; the batch after it is gone."""
    return one(0) + hurt(one(10, value=one(inner) + ZEROS)) + NOISE


@pytest.mark.parametrize("inner", [10, 15, 20])
def test_a_batch_in_a_value_yields_to_one_that_others_follow(tmp_path: Path, inner: int) -> None:
    assert read_on(tmp_path, holding(inner) + one(30) + one(40)) == [0, 30, 40]


def test_a_batch_in_a_value_with_offsets_of_the_damaged_one_is_never_taken(tmp_path: Path) -> None:
    assert read_on(tmp_path, holding(15) + one(30) + ZEROS + NOISE) == [0, 30]


@pytest.mark.parametrize("inner", [15, 25])
def test_a_torn_batch_hides_no_batch_of_the_log_in_its_value(tmp_path: Path, inner: int) -> None:
    holder = one(10, value=one(inner) + ZEROS + bytes(range(256)) * 10)
    path = log_of(tmp_path, one(0) + holder[:-100])
    result = ottla.audit(path)
    assert [row["name"] for row in result.findings] == ["truncated-tail"]
    assert result.summary.batches == 1


def test_what_is_lost_behind_a_log_is_said_of_its_tail_and_of_no_fault_before(
    tmp_path: Path,
) -> None:
    hurt = bytearray(small_log.batch(12))
    hurt[-1] ^= 1
    small_log.write_orders(
        tmp_path, second=[small_log.batch(9), bytes(hurt), small_log.batch(15)[:40]]
    )
    (tmp_path / ".kafka_cleanshutdown").unlink()
    rows = {row["name"]: row for row in ottla.audit(tmp_path).findings}
    tail = rows["truncated-tail"]["message"]
    assert "prove that offsets 12 to 17 were there and are lost" in tail
    assert rows["truncated-tail"]["severity"] == "error"
    assert (rows["crc-mismatch"]["first_offset"], rows["crc-mismatch"]["last_offset"]) == (12, 14)
    assert "prove" not in rows["crc-mismatch"]["message"]
