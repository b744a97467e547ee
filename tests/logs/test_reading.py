"""What a consumer would get of a partition, and what is told of the damage passed over."""

import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ottla
import pyarrow as pa
import pytest
from ottla.logs.reading import Isolation
from ottla.logs.segment import partition_transactions
from support.logs import TIMESTAMP, batches, segment, segment_name, write_partition
from support.transactions import transactional_log

from benches.data import encode_batch


def data(
    *values: bytes, at: int, producer: int = -1, sequence: int = -1, compression: str = "none"
) -> bytes:
    """A batch; of a producer it is part of a transaction."""
    return ottla.build_batch(
        [ottla.NewRecord(value=value, timestamp=TIMESTAMP) for value in values],
        base_offset=at,
        compression=compression,  # type: ignore[arg-type]
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=sequence if producer < 0 else max(sequence, 0),
        is_transactional=producer >= 0,
    )


def marker(kind: str, *, at: int, producer: int) -> bytes:
    return ottla.build_control_batch(
        kind,  # type: ignore[arg-type]
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=TIMESTAMP,
        base_offset=at,
    )


def hurt(batch: bytes) -> bytes:
    """The batch with its last byte changed, which the CRC covers."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes segments, by base offset, as the partition orders-0."""

    def write(segments: dict[int, bytes], *, log_start_offset: int | None = None) -> Path:
        directory = write_partition(tmp_path / "kafka" / "orders-0", segments)
        if log_start_offset is not None:
            checkpoint = f"0\n1\norders 0 {log_start_offset}\n"
            (tmp_path / "kafka" / "log-start-offset-checkpoint").write_text(checkpoint)
        return directory

    return write


def offsets(
    path: Path,
    isolation: Isolation = "read_uncommitted",
    from_offset: int | None = None,
    to_offset: int | None = None,
) -> list[int]:
    """Offsets of the records of a log without damage."""

    def none_expected(damage: ottla.Damage) -> None:
        raise AssertionError(damage)

    records = ottla.read_partition(
        path,
        isolation=isolation,
        from_offset=from_offset,
        to_offset=to_offset,
        on_damage=none_expected,
    )
    found = [record.offset for record in records]
    assert in_columns(path, isolation=isolation, from_offset=from_offset, to_offset=to_offset) == (
        (found, [], records.stopped_by, records.log_end_offset)
    )
    return found


def over_damage(path: Path, **options: int | str) -> tuple[list[int], list[ottla.Damage]]:
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, on_damage=told.append, **options)  # type: ignore[arg-type]
    found = [record.offset for record in records]
    end = (records.stopped_by, records.log_end_offset)
    assert in_columns(path, **options) == (found, told, *end)
    return found, told


def in_columns(
    path: Path, **options: Any
) -> tuple[list[int], list[ottla.Damage], tuple[int, int] | None, int | None]:
    """The same by record batches, each of a few records."""
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, on_damage=told.append, **options)
    tables = map(pa.record_batch, records.batches(batch_bytes=100))
    found = [offset for table in tables for offset in table.column("offset").to_pylist()]
    return found, told, records.stopped_by, records.log_end_offset


def test_a_log_that_grows_while_it_is_read_has_lost_nothing(log: Callable[..., Path]) -> None:
    path = log({0: segment(4)})
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, on_damage=told.append)
    assert next(records).offset == 0
    with (path / segment_name(0)).open("ab") as file:
        file.write(segment(4, base_offset=12))
    (path.parent / "replication-offset-checkpoint").write_text(f"0\n1\n{checkpointed(path)} 24\n")
    assert len([*records]) == 11
    assert told == []


def checkpointed(path: Path) -> str:
    """A partition's directory as a line of a checkpoint names it."""
    return " ".join(path.name.rsplit("-", 1))


def test_segments_are_read_one_after_the_other(log: Callable[..., Path]) -> None:
    path = log({0: segment(4), 12: segment(4, base_offset=12)})
    assert offsets(path) == list(range(24))


def test_a_range_of_offsets_may_begin_and_end_inside_batches(log: Callable[..., Path]) -> None:
    path = log({0: segment(4), 12: segment(4, base_offset=12)})
    assert offsets(path, from_offset=13, to_offset=17) == [13, 14, 15, 16]
    assert offsets(path, "read_committed", from_offset=13, to_offset=17) == [13, 14, 15, 16]
    assert offsets(path, to_offset=0) == []
    assert offsets(path, from_offset=24) == []


def test_reading_begins_at_the_log_start_offset(log: Callable[..., Path]) -> None:
    path = log({0: segment(4), 12: segment(4, base_offset=12)}, log_start_offset=14)
    assert offsets(path)[0] == 14
    assert offsets(path, from_offset=2)[0] == 14
    assert offsets(path, from_offset=20)[0] == 20


def test_aborted_records_and_markers_are_left_out_and_others_of_the_producer_are_not(
    log: Callable[..., Path],
) -> None:
    first = (
        data(b"a", at=0, producer=7)
        + data(b"plain", at=1)
        + marker("abort", at=2, producer=7)
        + data(b"b", at=3, producer=7, sequence=1)
        + data(b"c", at=4, producer=8)
    )
    second = (
        marker("commit", at=5, producer=7)
        + data(b"d", at=6, producer=7, sequence=2)
        + marker("abort", at=7, producer=7)
        + marker("commit", at=8, producer=8)
    )
    path = log({0: first, 5: second})
    assert offsets(path) == [0, 1, 3, 4, 6]
    assert offsets(path, "read_committed") == [1, 3, 4]


def test_read_committed_ends_where_an_open_transaction_begins(log: Callable[..., Path]) -> None:
    path = log(
        {
            0: data(b"a", at=0) + data(b"b", at=1, producer=7) + data(b"c", at=2, producer=8),
            3: marker("commit", at=3, producer=8) + data(b"d", at=4),
        }
    )
    records = ottla.read_partition(path, isolation="read_committed")
    stops = [records.stopped_by]
    assert [record.offset for record in records] == [0]
    stops.append(records.stopped_by)
    assert stops == [None, (1, 7)]
    assert next(records, None) is None
    assert offsets(path, "read_committed", from_offset=3) == []
    assert offsets(path, "read_uncommitted") == [0, 1, 2, 4]


def test_what_ends_before_an_open_transaction_is_not_stopped_by_it(
    log: Callable[..., Path],
) -> None:
    path = log({0: data(b"a", b"b", at=0) + data(b"c", at=2, producer=7)})
    records = ottla.read_partition(path, isolation="read_committed", to_offset=2)
    assert [record.offset for record in records] == [0, 1]
    assert records.stopped_by is None


@pytest.mark.parametrize("rolled", [False, True])
def test_behind_an_open_transaction_the_end_of_the_log_is_known(
    rolled: bool, log: Callable[..., Path]
) -> None:
    first = data(b"a", at=0) + data(b"b", at=1, producer=7)
    segments = {0: first + data(b"c", b"d", at=2), 4: hurt(data(b"e", at=4)) + data(b"f", at=5)}
    path = log(segments | ({6: b""} if rolled else {}))
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, isolation="read_committed", on_damage=told.append)
    ends = [records.log_end_offset]
    assert [record.offset for record in records] == [0]
    assert [*ends, records.log_end_offset] == [None, 6]
    assert records.stopped_by == (1, 7)
    assert told == []


def test_an_end_lost_behind_an_open_transaction_is_told(log: Callable[..., Path]) -> None:
    path = log({0: data(b"a", at=0) + data(b"b", at=1, producer=7) + data(b"c", at=2)})
    (path.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, isolation="read_committed", on_damage=told.append)
    assert [record.offset for record in records] == [0]
    (damage,) = told
    assert (damage.first_offset, damage.last_offset, damage.severity) == (3, 8, "error")


def test_the_last_offset_asked_for_ends_reading_behind_an_open_transaction(
    log: Callable[..., Path],
) -> None:
    path = log(
        {0: data(b"a", at=0, producer=7) + b"".join(data(b"b", at=at) for at in range(1, 9))}
    )
    records = ottla.read_partition(path, isolation="read_committed", to_offset=4)
    assert list(records) == []
    assert (records.stopped_by, records.log_end_offset) == ((0, 7), None)


def test_a_file_alone_is_read_from_its_beginning(log: Callable[..., Path]) -> None:
    path = log({0: segment(4), 12: segment(4, base_offset=12)}, log_start_offset=14)
    assert offsets(path / segment_name(12)) == list(range(12, 24))


def test_bytes_of_any_name_are_read(tmp_path: Path) -> None:
    (tmp_path / "captured").write_bytes(segment(2, base_offset=40))
    assert offsets(tmp_path / "captured") == list(range(40, 46))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_reaches_over_the_window_is_read(codec: str, log: Callable[..., Path]) -> None:
    values = [bytes([index]) * 1_000_000 for index in range(5)]
    path = log({0: data(b"x", at=0) + data(*values, at=1, compression=codec) + data(b"y", at=6)})
    assert [r.value for r in ottla.read_partition(path)] == [b"x", *values, b"y"]


def test_over_a_batch_with_a_wrong_crc_reading_goes_on(log: Callable[..., Path]) -> None:
    parts = batches(5)
    parts[2] = hurt(parts[2])
    found, told = over_damage(log({0: b"".join(parts)}))
    assert found == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14]
    (damage,) = told
    assert damage == ottla.Damage(
        file=f"orders-0/{segment_name(0)}",
        position=2 * len(parts[0]),
        size=len(parts[2]),
        first_offset=6,
        last_offset=8,
        next_good_offset=9,
        severity="error",
        message="the batch at position 302 has a wrong CRC",
    )
    assert str(damage) == (
        f"orders-0/{segment_name(0)}: the batch at position 302 has a wrong CRC;"
        " offsets 6 to 8 are lost; reading continues at offset 9"
    )


def test_damage_one_after_the_other_is_told_once(log: Callable[..., Path]) -> None:
    parts = batches(6)
    for index in (1, 2):
        parts[index] = hurt(parts[index])
    parts[3] = b"\xff" * 1000
    found, told = over_damage(log({0: b"".join(parts)}))
    assert found == [0, 1, 2, *range(12, 18)]
    assert [(d.first_offset, d.last_offset, d.next_good_offset) for d in told] == [(3, 11, 12)]
    assert told[0].size == len(parts[1]) + len(parts[2]) + 1000


def test_damage_over_the_end_of_a_file_ends_where_the_next_begins(log: Callable[..., Path]) -> None:
    found, told = over_damage(log({0: segment(4)[:-40], 12: segment(4, base_offset=12)}))
    assert found == [*range(9), *range(12, 24)]
    assert [(d.first_offset, d.last_offset, d.next_good_offset) for d in told] == [(9, 11, 12)]
    assert told[0].severity == "error"


def test_a_torn_end_says_what_it_takes(log: Callable[..., Path]) -> None:
    found, told = over_damage(log({0: segment(4)[:-40]}))
    assert found == list(range(9))
    (damage,) = told
    assert (damage.first_offset, damage.last_offset, damage.next_good_offset) == (9, None, None)
    assert damage.severity == "info"
    assert str(damage).endswith("; nothing from offset 9 on can be read")


def test_more_behind_the_last_batch_than_a_killed_broker_leaves_is_loss(
    log: Callable[..., Path],
) -> None:
    path = log({0: segment(4) + b"\xa7" * (2 << 20)})
    found, told = over_damage(path)
    assert found == list(range(12))
    (damage,) = told
    (finding,) = (f for f in ottla.audit(path).findings if f["name"] == "garbage-tail")
    assert damage.severity == finding["severity"] == "error"
    assert (damage.first_offset, damage.last_offset, damage.next_good_offset) == (12, None, None)
    assert "more than one batch of at most 1048588 bytes" in str(damage)


@pytest.mark.parametrize("at", [0, 12])
def test_zeros_behind_the_last_batch_are_nothing(at: int, log: Callable[..., Path]) -> None:
    segments = {0: segment(4), 12: segment(4, base_offset=12)}
    segments[at] += b"\0" * 5000
    assert offsets(log(segments)) == list(range(24))


def test_damage_outside_the_range_is_not_told(log: Callable[..., Path]) -> None:
    parts = batches(5)
    for index in (1, 3):
        parts[index] = hurt(parts[index])
    path = log({0: b"".join(parts)})
    assert over_damage(path, from_offset=6, to_offset=9) == ([6, 7, 8], [])
    found, told = over_damage(path, from_offset=4, to_offset=11)
    assert found == [6, 7, 8]
    assert [(d.first_offset, d.last_offset) for d in told] == [(4, 5), (9, 10)]


@pytest.mark.parametrize("wrong", [0, 1, 4, 5, 7, 8, 200, 2**40, -5])
def test_a_wrong_base_offset_takes_its_batch_and_no_other(
    wrong: int, log: Callable[..., Path]
) -> None:
    parts = batches(4)
    parts[2] = wrong.to_bytes(8, "big", signed=True) + parts[2][8:]
    found, told = over_damage(log({0: b"".join(parts), 12: segment(1, base_offset=12)}))
    assert found == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14]
    assert [(d.first_offset, d.last_offset, d.next_good_offset) for d in told] == [(6, 8, 9)]


def test_what_is_in_its_place_is_told_by_the_name_of_the_segment_behind_a_gap(
    log: Callable[..., Path],
) -> None:
    wrong = b"".join([(15).to_bytes(8, "big"), segment(1, base_offset=20)[8:]])
    path = log({0: segment(4), 20: wrong + segment(1, base_offset=23)})
    read, told = over_damage(path)
    assert read == [*range(12), 23, 24, 25]
    (damage,) = told
    assert damage.message == (
        "the batch at position 0 has offsets 15 to 17, but the next one starts at 23"
    )


def misplaced(batch: bytes, wrong: int) -> bytes:
    """The batch with another base offset, which no CRC covers."""
    return wrong.to_bytes(8, "big") + batch[8:]


def transactions_of(path: Path) -> tuple[list[tuple[int, int, int]], tuple[int, int] | None]:
    places = [(bytes(file), int(file.stem)) for file in sorted(path.glob("*.log"))]
    return partition_transactions(places)


@pytest.mark.parametrize("wrong", [2**32 + 1, 2**20, 7])
def test_a_transaction_whose_first_batch_has_a_wrong_base_offset_is_aborted_as_a_whole(
    wrong: int, log: Callable[..., Path]
) -> None:
    path = log(
        {
            0: data(b"a", at=0)
            + misplaced(data(b"b", at=1, producer=7), wrong)
            + data(b"c", at=2, producer=8)
            + data(b"d", at=3, producer=7, sequence=1),
            4: marker("abort", at=4, producer=7)
            + marker("commit", at=5, producer=8)
            + data(b"e", at=6),
        }
    )
    assert transactions_of(path) == ([(7, 1, 4)], None)
    found, told = over_damage(path, isolation="read_committed")
    assert found == [0, 2, 6]
    assert [(d.first_offset, d.last_offset, d.next_good_offset) for d in told] == [(1, 1, 2)]


def test_a_marker_with_a_wrong_base_offset_ends_its_transaction_where_it_is(
    log: Callable[..., Path],
) -> None:
    path = log(
        {
            0: data(b"a", at=0, producer=7)
            + misplaced(marker("abort", at=1, producer=7), 2**32 + 1)
            + data(b"b", at=2, producer=7, sequence=1)
            + marker("commit", at=3, producer=7)
        }
    )
    assert transactions_of(path) == ([(7, 0, 1)], None)
    assert over_damage(path, isolation="read_committed")[0] == [2]


def test_an_open_transaction_begins_at_its_first_batch_whatever_base_offset_that_says(
    log: Callable[..., Path],
) -> None:
    far = misplaced(data(b"b", at=1, producer=7), 2**32 + 1)
    path = log({0: data(b"a", at=0) + far + data(b"c", at=2) + data(b"d", at=3, producer=7)})
    assert transactions_of(path) == ([], (1, 7))
    assert over_damage(path, isolation="read_committed")[0] == [0]


def test_batches_that_came_before_begin_no_transaction_again(log: Callable[..., Path]) -> None:
    first = data(b"a", at=0, producer=7) + marker("commit", at=1, producer=7)
    again = data(b"a", at=0, producer=7)
    path = log({0: first + again + data(b"b", at=2) + data(b"c", at=3)})
    assert transactions_of(path) == ([], None)
    assert over_damage(path, isolation="read_committed")[0] == [0, 2, 3]


def test_a_wrong_base_offset_takes_its_batch_and_no_other_from_committed_records(
    tmp_path: Path,
) -> None:
    wrong = 0
    for seed in range(60):
        rng = random.Random(seed)
        path = transactional_log(tmp_path / str(seed), rng)
        committed, _ = over_damage(path, isolation="read_committed")
        file = rng.choice(sorted(path.glob("*.log")))
        whole = bytearray(file.read_bytes())
        followed = list(ottla.read_batches(bytes(whole)))[:-1]
        if not followed:
            continue
        batch = rng.choice(followed)
        whole[batch.position + rng.randrange(8)] ^= 1 << rng.randrange(8)
        file.write_bytes(whole)
        lost = range(batch.base_offset, batch.last_offset + 1)
        found, _ = over_damage(path, isolation="read_committed")
        assert found == [offset for offset in committed if offset not in lost], seed
        wrong += 1
    assert wrong > 30


def test_of_a_batch_that_cannot_be_read_to_its_end_the_first_records_are_given(
    log: Callable[..., Path],
) -> None:
    records = [(TIMESTAMP, b"key", b"value", ()) for _ in range(4)]
    whole = encode_batch(records, base_offset=0)
    # One more is announced than there is; with its CRC made anew only its end is wrong.
    claimed = whole[:57] + (5).to_bytes(4, "big") + whole[61:]
    claimed = claimed[:23] + (4).to_bytes(4, "big") + claimed[27:]
    sealed = claimed[:17] + crc32c(claimed[21:]).to_bytes(4, "big") + claimed[21:]
    found, told = over_damage(log({0: sealed + segment(1, base_offset=5)}))
    assert found == [0, 1, 2, 3, 5, 6, 7]
    assert [(d.first_offset, d.last_offset, d.next_good_offset) for d in told] == [(4, 4, 5)]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_without_a_callback_damage_is_a_warning(log: Callable[..., Path]) -> None:
    parts = batches(3)
    parts[1] = hurt(parts[1])
    path = log({0: b"".join(parts)})
    with pytest.warns(ottla.DamageWarning, match="offsets 3 to 5 are lost") as caught:
        assert len(list(ottla.read_partition(path))) == 6
    (warning,) = caught
    assert isinstance(warning.message, ottla.DamageWarning)
    assert warning.message.damage.next_good_offset == 6


def test_reading_can_go_on_after_a_warning_that_was_raised(log: Callable[..., Path]) -> None:
    parts = batches(3)
    parts[1] = hurt(parts[1])
    records = ottla.read_partition(log({0: b"".join(parts)}))
    found: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", ottla.DamageWarning)
        with pytest.raises(ottla.DamageWarning):
            found.extend(record.offset for record in records)
    found.extend(record.offset for record in records)
    assert found == [0, 1, 2, 6, 7, 8]


def test_what_is_called_for_damage_may_read_too_but_not_by_the_same_iterator(
    log: Callable[..., Path],
) -> None:
    parts = batches(3)
    parts[1] = hurt(parts[1])
    path = log({0: b"".join(parts)})
    inside: list[list[int]] = []

    def read_too(_: ottla.Damage) -> None:
        inside.append(over_damage(path)[0])
        with pytest.raises(RuntimeError, match="already in use"):
            next(records)

    records = ottla.read_partition(path, on_damage=read_too)
    assert [record.offset for record in records] == [0, 1, 2, 6, 7, 8]
    assert inside == [[0, 1, 2, 6, 7, 8]]


def test_a_log_that_is_read_while_it_changes_ends_in_an_error_of_the_system(
    log: Callable[..., Path],
) -> None:
    path = log({0: segment(2), 6: segment(2, base_offset=6)})
    records = ottla.read_partition(path)
    assert next(records).offset == 0
    (path / segment_name(6)).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(records)
    assert caught.value.filename == bytes(path / segment_name(6))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_segments_that_retention_deletes_while_they_are_read_are_told_with_their_offsets(
    isolation: Isolation, log: Callable[..., Path]
) -> None:
    path = log({base: segment(4, base_offset=base) for base in (0, 12, 24, 36)})
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, isolation=isolation, on_damage=told.append)
    assert next(records).offset == 0
    for base in (0, 12, 24):
        (path / segment_name(base)).unlink()
    assert [record.offset for record in records] == [*range(1, 12), *range(36, 48)]
    (damage,) = told
    assert (damage.first_offset, damage.last_offset, damage.next_good_offset) == (12, 35, 36)
    assert (damage.file, damage.severity) == (f"orders-0/{segment_name(12)}", "error")
    assert damage.message == "deleted while the log was read"


def test_segments_deleted_before_the_offsets_asked_for_are_not_told(
    log: Callable[..., Path],
) -> None:
    first = data(b"a", at=0, producer=7) + marker("abort", at=1, producer=7)
    path = log({0: first, 2: data(b"b", at=2), 3: data(b"c", at=3)})
    told: list[ottla.Damage] = []
    records = ottla.read_partition(
        path, isolation="read_committed", from_offset=3, on_damage=told.append
    )
    for base in (0, 2):
        (path / segment_name(base)).unlink()
    assert [record.offset for record in records] == [3]
    assert told == []


def test_transactions_are_followed_over_segments_that_are_deleted_meanwhile(
    log: Callable[..., Path],
) -> None:
    path = log(
        {
            0: data(b"a", at=0),
            1: data(b"b", at=1, producer=7),
            2: marker("commit", at=2, producer=7) + data(b"c", at=3, producer=8),
            4: marker("abort", at=4, producer=8) + data(b"d", at=5),
        }
    )
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, isolation="read_committed", on_damage=told.append)
    assert next(records).offset == 0
    for base in (0, 1):
        (path / segment_name(base)).unlink()
    assert [record.offset for record in records] == [5]
    assert [(damage.first_offset, damage.last_offset) for damage in told] == [(1, 1)]


def test_a_log_of_which_no_listed_segment_is_left_ends_where_it_was_read(
    log: Callable[..., Path],
) -> None:
    path = log({0: segment(4), 12: segment(4, base_offset=12)})
    told: list[ottla.Damage] = []
    records = ottla.read_partition(path, on_damage=told.append)
    assert next(records).offset == 0
    (path / segment_name(24)).write_bytes(segment(4, base_offset=24))
    for base in (0, 12):
        (path / segment_name(base)).unlink()
    assert [record.offset for record in records] == list(range(1, 12))
    (damage,) = told
    assert (damage.first_offset, damage.last_offset, damage.severity) == (12, None, "error")


def test_what_goes_from_a_log_whose_broker_stopped_is_an_error_of_the_system(
    log: Callable[..., Path],
) -> None:
    path = log({base: segment(4, base_offset=base) for base in (0, 12, 24)})
    (path.parent / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    records = ottla.read_partition(path)
    assert next(records).offset == 0
    for base in (0, 12):
        (path / segment_name(base)).unlink()
    with pytest.raises(FileNotFoundError):
        list(records)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kafka", "kafka holds 2 partitions: give one of them, such as orders-0"),
        ("notes.txt", "notes.txt: no record batch in its 380 bytes"),
        ("empty", "empty is neither a partition directory nor a segment"),
        (f"kafka/orders-0/{segment_name(0, 'index')}", "is neither a partition"),
    ],
)
def test_what_is_no_partition_is_refused(name: str, message: str, tmp_path: Path) -> None:
    for partition in ("orders-0", "orders-1"):
        write_partition(tmp_path / "kafka" / partition, {0: segment(1)})
    (tmp_path / "notes.txt").write_text("Remember the milk.\n" * 20)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ottla.NotAPartitionError, match=message):
        ottla.read_partition(tmp_path / name)


def test_a_path_that_leads_nowhere_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ottla.read_partition(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"isolation": "serializable"}, "isolation is 'serializable', not one of"),
        ({"from_offset": -1}, "from_offset is -1"),
        ({"to_offset": 2**63}, "to_offset is"),
    ],
)
def test_arguments_out_of_range_are_refused(
    options: dict[str, object], message: str, log: Callable[..., Path]
) -> None:
    with pytest.raises(ValueError, match=message):
        ottla.read_partition(log({0: segment(1)}), **options)  # type: ignore[arg-type]


def damaged_at(parts: Sequence[bytes], place: int) -> bytes:
    whole = bytearray(b"".join(parts))
    whole[place] ^= 0x40
    return bytes(whole)


def test_whatever_byte_is_damaged_every_other_batch_is_read_and_the_rest_is_told(
    log: Callable[..., Path],
) -> None:
    parts = [
        *batches(2),
        data(b"g", b"h", at=6, compression="gzip"),
        data(b"i", at=8, compression="lz4"),
        *batches(2, base_offset=9),
    ]
    path = log({0: b"".join(parts)})
    size = sum(map(len, parts))
    first, rest = len(parts[0]), len(parts[-1])
    for place in range(first, size - rest):
        (path / segment_name(0)).write_bytes(damaged_at(parts, place))
        found, told = over_damage(path)
        lost = {
            offset
            for damage in told
            if damage.first_offset is not None and damage.last_offset is not None
            for offset in range(damage.first_offset, damage.last_offset + 1)
        }
        assert sorted([*found, *lost]) == list(range(15)), place
        assert len(lost) <= 3, place


def test_what_the_audit_has_beyond_a_consumer_is_what_no_consumer_gets(
    log: Callable[..., Path],
) -> None:
    repeated = data(b"d", b"e", at=3)
    misplaced = bytearray(data(b"f", at=5))
    misplaced[:8] = (2**40).to_bytes(8, "big")
    path = log(
        {
            0: data(b"a", b"b", at=0)
            + data(b"c", at=2, producer=7)
            + repeated
            + repeated
            + bytes(misplaced)
            + marker("commit", at=6, producer=7)
            + data(b"g", at=7)
        },
        log_start_offset=1,
    )
    found = [(r.offset, r.value) for r in ottla.read_partition(path, on_damage=lambda _: None)]
    assert found == [(1, b"b"), (2, b"c"), (3, b"d"), (4, b"e"), (7, b"g")]
    rows = list(ottla.audit(path).records)
    held = [(row["offset"], row["value"]) for row in rows if row["control"] is None]
    for record in found:
        held.remove(record)
    assert held == [(0, b"a"), (3, b"d"), (4, b"e"), (2**40, b"f")]
    assert [row["offset"] for row in rows if row["control"]] == [6]
