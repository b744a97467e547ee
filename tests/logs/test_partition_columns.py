"""A partition as columns of NumPy: what iteration gives, a bounded piece at a time."""

import gc
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import ottla
import pyarrow as pa
import pytest
from support.logs import segment, write_partition

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
PARTITIONS = sorted(path for path in DATA.iterdir() if path.is_dir() and "-" in path.name)
MIB = 1 << 20


def rows_of(columns: ottla.Columns) -> list[tuple[Any, ...]]:
    """Rows put together from the numbers and their bytes, as the fields of records are."""
    data = columns.inflated

    def parts(positions: Any, lengths: Any) -> list[bytes | None]:
        return [
            None if length < 0 else data[position : position + length]
            for position, length in zip(positions.tolist(), lengths.tolist(), strict=True)
        ]

    keys = parts(columns.header_key_position, columns.header_key_length)
    values = parts(columns.header_value_position, columns.header_value_length)
    headers = [
        [*zip(keys[start:end], values[start:end], strict=True)]
        for start, end in pairwise(columns.header_offsets.tolist())
    ]
    return [
        *zip(
            columns.offset.tolist(),
            columns.timestamp.tolist(),
            parts(columns.key_position, columns.key_length),
            parts(columns.value_position, columns.value_length),
            headers,
            strict=True,
        )
    ]


@pytest.mark.parametrize("path", PARTITIONS, ids=lambda path: path.name)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("batch_bytes", [1, 1000, MIB])
def test_the_columns_have_what_iteration_gives(
    path: Path, isolation: Any, batch_bytes: int
) -> None:
    by_one = ottla.read_partition(path, isolation=isolation)
    expected = [(r.offset, r.timestamp, r.key, r.value, r.raw_headers) for r in by_one]
    by_chunk = ottla.read_partition(path, isolation=isolation)
    chunks = by_chunk.columns(batch_bytes=batch_bytes)
    assert [row for chunk in chunks for row in rows_of(chunk)] == expected
    assert (by_chunk.stopped_by, by_chunk.log_end_offset) == (
        (by_one.stopped_by, by_one.log_end_offset)
    )


ODD = [
    ottla.NewRecord(b"k", b"v", headers=[("h", b"x"), (b"\xff", None), ("h", b"")]),
    ottla.NewRecord(None, None, timestamp=1_500_000_000_123),
    ottla.NewRecord(b"", b"v" * 100, headers=[("", None)]),
]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A partition with a record without time, some with headers, and one of nulls."""
    return write_partition(tmp_path / "orders-0", {0: ottla.build_batch(ODD)})


def test_chunks_are_equal_to_columns_of_the_same_records(odd: Path) -> None:
    (chunk,) = ottla.read_partition(odd).columns()
    same = ottla.read_columns(ottla.build_batch(ODD, compression="lz4"))
    assert chunk == same
    assert hash(chunk) == hash(same)
    assert same == chunk
    assert chunk != ottla.read_columns(ottla.build_batch(ODD[:2]))
    assert repr(chunk) == "<Columns of 3 records>"


@pytest.mark.parametrize("headers", [False, True])
def test_a_chunk_is_a_table_of_arrow_as_columns_are(odd: Path, *, headers: bool) -> None:
    (chunk,) = ottla.read_partition(odd).columns(headers=headers)
    table = pa.table(chunk)
    assert table.validate(full=True) is None
    assert table.equals(pa.table(ottla.read_columns(ottla.build_batch(ODD), headers=headers)))


@pytest.mark.parametrize("headers", [False, True])
def test_a_chunk_can_be_pickled(odd: Path, *, headers: bool) -> None:
    (chunk,) = ottla.read_partition(odd).columns(headers=headers)
    again = pickle.loads(pickle.dumps(chunk))  # noqa: S301 - made here
    assert again == chunk
    assert rows_of(again) == rows_of(chunk)
    assert pa.table(again).equals(pa.table(chunk))


def test_a_pickled_chunk_that_was_changed_is_refused_by_what_is_wrong(odd: Path) -> None:
    (chunk,) = ottla.read_partition(odd).columns()
    restore, (data, numbers, headers) = chunk.__reduce__()
    assert restore(data, numbers, headers) == chunk
    for wrong in (
        [numbers[0][:-1], *numbers[1:]],
        [numbers[0][:-8], *numbers[1:]],
        [*numbers[:5], numbers[5][:-4] + b"\xff\xff\xff\x7f"],
        [*numbers[:2], b"\xff" * 4 + numbers[2][4:], *numbers[3:]],
    ):
        with pytest.raises(ValueError, match="not the columns of records: "):
            restore(data, wrong, headers)


def test_arrays_outlive_the_chunk_and_the_partition(odd: Path) -> None:
    (chunk,) = ottla.read_partition(odd).columns()
    numbers, offsets, table = chunk.numbers(), chunk.header_offsets, pa.table(chunk)
    del chunk
    gc.collect()
    _ = [np.full(size, 0x5A, np.uint8) for size in (64, 4096, MIB) for _ in range(50)]
    assert numbers[0].tolist() == [0, 1, 2]
    assert offsets.tolist() == [0, 3, 3, 4]
    assert table.column("value").to_pylist() == [b"v", None, b"v" * 100]


def test_chunks_go_on_where_others_have_stopped_and_keep_to_the_offsets_asked_for() -> None:
    records = ottla.read_partition(DATA / "orders-0", from_offset=3, to_offset=80)
    assert next(records).offset == 3
    chunk = next(records.columns(batch_bytes=1))
    assert chunk.offset.tolist() == [4]
    (batch,) = pa.table(next(records.batches(batch_bytes=1))).column("offset").to_pylist()
    assert batch == 5
    rest = [offset for chunk in records.columns() for offset in chunk.offset.tolist()]
    assert rest == [*range(6, 80)]
    assert [*records.columns()] == []


def test_damage_is_told_between_the_chunks(tmp_path: Path) -> None:
    whole = segment(4)
    path = write_partition(tmp_path / "orders-0", {0: whole[:-1] + b"!"})
    told: list[ottla.Damage] = []
    chunks = [*ottla.read_partition(path, on_damage=told.append).columns()]
    assert [offset for chunk in chunks for offset in chunk.offset.tolist()] == [*range(9)]
    assert [damage.first_offset for damage in told] == [9]


def test_memory_is_that_of_a_chunk_however_long_the_partition_is(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(400, records=50, value_size=100)})
    sizes, most = list[int](), 0
    for chunk in ottla.read_partition(path).columns(batch_bytes=50_000):
        sizes.append(len(chunk))
        most = max(most, len(chunk.inflated) + 32 * len(chunk))
    assert sum(sizes) == 20_000
    assert all(300 < size < 500 for size in sizes[:-1])
    assert most < 60_000


@pytest.mark.parametrize("batch_bytes", [0, (64 << 20) + 1, 1 << 70])
def test_a_size_out_of_range_is_refused_by_name(odd: Path, batch_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"batch_bytes is {batch_bytes}, expected [01] to [0-9]+"):
        ottla.read_partition(odd).columns(batch_bytes=batch_bytes)
