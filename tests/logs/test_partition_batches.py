"""A partition as record batches of Arrow: what iteration gives, a bounded piece at a time."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import ottla
import polars as pl
import pyarrow as pa
import pytest
from support.logs import segment, write_partition

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
PARTITIONS = sorted(path for path in DATA.iterdir() if path.is_dir() and "-" in path.name)
MIB = 1 << 20


def rows_of(records: ottla.PartitionRecords, batch_bytes: int) -> list[tuple[Any, ...]]:
    """Rows of the raw table, as the fields of records are."""
    table = pa.table(records.batches(raw=True, batch_bytes=batch_bytes))
    columns = [table.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value")]
    headers = [
        [(header["key"], header["value"]) for header in row]
        for row in table.column("headers").to_pylist()
    ]
    return [*zip(*columns, headers, strict=True)]


@pytest.mark.parametrize("path", PARTITIONS, ids=lambda path: path.name)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("batch_bytes", [1, 1000, MIB])
def test_the_raw_table_has_what_iteration_gives(
    path: Path, isolation: Any, batch_bytes: int
) -> None:
    by_one = ottla.read_partition(path, isolation=isolation)
    expected = [(r.offset, r.timestamp, r.key, r.value, r.raw_headers) for r in by_one]
    by_batch = ottla.read_partition(path, isolation=isolation)
    assert rows_of(by_batch, batch_bytes) == expected
    assert (by_batch.stopped_by, by_batch.log_end_offset) == (
        (by_one.stopped_by, by_one.log_end_offset)
    )


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A partition with a record without time, one with headers, and one of nulls."""
    rows = [
        ottla.NewRecord(b"k", b"v", headers=[("h", b"x"), (b"\xff", None), ("h", b"")]),
        ottla.NewRecord(None, None, timestamp=1_500_000_000_123),
    ]
    return write_partition(tmp_path / "orders-0", {0: ottla.build_batch(rows)})


def test_timestamps_are_timestamps_and_headers_lists_of_structs(odd: Path) -> None:
    table = pa.table(ottla.read_partition(odd))
    assert table.schema.field("timestamp").type == pa.timestamp("ms", "UTC")
    time = datetime(2017, 7, 14, 2, 40, 0, 123_000, timezone.utc)
    header = {"key": "h", "value": b"x"}
    assert table.to_pylist() == [
        {
            "offset": 0,
            "timestamp": None,
            "key": b"k",
            "value": b"v",
            "headers": [header, {"key": "\ufffd", "value": None}, {"key": "h", "value": b""}],
        },
        {"offset": 1, "timestamp": time, "key": None, "value": None, "headers": []},
    ]


def test_the_raw_table_has_the_numbers_and_bytes_of_the_log(odd: Path) -> None:
    table = pa.table(ottla.read_partition(odd).batches(raw=True))
    assert table.schema.field("timestamp").type == pa.int64()
    assert table.column("timestamp").to_pylist() == [-1, 1_500_000_000_123]
    keys = [header["key"] for header in table.column("headers").to_pylist()[0]]
    assert keys == [b"h", b"\xff", b"h"]


def test_polars_and_duckdb_read_a_partition_as_it_is() -> None:
    frame = pl.DataFrame(ottla.read_partition(DATA / "orders-0"))
    assert frame["offset"].to_list() == [*range(85)]
    records = ottla.read_partition(DATA / "orders-0")  # noqa: F841 - DuckDB finds it by its name
    found = duckdb.sql('select count(*), max("offset") from records').fetchall()
    assert found == [(85, 84)]


def test_a_stream_goes_on_where_iteration_has_stopped() -> None:
    records = ottla.read_partition(DATA / "orders-0")
    assert [next(records).offset, next(records).offset] == [0, 1]
    batches = records.batches(batch_bytes=200)
    (first,) = pa.table(next(batches)).column("offset").to_pylist()[:1]
    assert first == 2
    rest = pa.table(records).column("offset").to_pylist()
    assert rest[-1] == 84
    assert len(pa.table(records)) == 0


def test_a_schema_is_known_before_anything_is_read(odd: Path) -> None:
    batches = ottla.read_partition(odd).batches()
    assert pa.schema(batches).names == ["offset", "timestamp", "key", "value", "headers"]
    assert len(pa.table(batches)) == 2


def test_a_partition_without_records_is_a_table_without_rows(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: b""})
    table = pa.table(ottla.read_partition(path))
    assert (len(table), table.num_columns) == (0, 5)


def test_batches_are_about_as_large_as_asked_for(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(400, records=50, value_size=100)})
    sizes = [len(batch) for batch in ottla.read_partition(path).batches(batch_bytes=50_000)]
    assert sum(sizes) == 20_000
    assert all(300 < size < 500 for size in sizes[:-1])


@pytest.mark.parametrize("batch_bytes", [0, (64 << 20) + 1])
def test_a_size_out_of_range_is_refused_by_name(odd: Path, batch_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"batch_bytes is {batch_bytes}, expected 1 to 67108864"):
        ottla.read_partition(odd).batches(batch_bytes=batch_bytes)


def test_what_a_caller_raises_for_damage_ends_the_stream(tmp_path: Path) -> None:
    whole = segment(4)
    path = write_partition(tmp_path / "orders-0", {0: whole[:-1] + b"!"})

    def refuse(damage: ottla.Damage) -> None:
        raise LookupError(damage.message)

    with pytest.raises(LookupError, match="CRC"):
        list(ottla.read_partition(path, on_damage=refuse).batches())
    with pytest.raises(OSError, match="CRC"):
        pa.table(ottla.read_partition(path, on_damage=refuse))


def test_a_stream_that_is_read_where_damage_is_told_is_an_error_and_no_crash(
    tmp_path: Path,
) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(4)[:-1] + b"!"})
    told: list[object] = []

    def read_another(_: ottla.Damage) -> None:
        batches = ottla.read_partition(DATA / "orders-0").batches()
        told.extend(pa.record_batch(batch).num_rows for batch in batches)
        with pytest.raises(
            OSError, match="such as on_damage, progress or read_at: iterate over its batches there"
        ):
            pa.table(ottla.read_partition(DATA / "orders-0"))

    records = ottla.read_partition(path, on_damage=read_another)
    assert [record.offset for record in records] == [*range(9)]
    assert told == [85]


@pytest.mark.slow
def test_more_than_two_gib_are_streamed_in_batches_of_some_mib(tmp_path: Path) -> None:
    value = bytes(10 * MIB)
    batches = [
        ottla.build_batch([ottla.NewRecord(value=value)], base_offset=offset, compression="zstd")
        for offset in range(210)
    ]
    path = write_partition(tmp_path / "orders-0", {0: b"".join(batches)})
    total = rows = 0
    stream = pa.RecordBatchReader.from_stream(ottla.read_partition(path))
    for batch in stream:
        assert batch.nbytes < 12 * MIB
        total += batch.nbytes
        rows += batch.num_rows
    assert rows == 210
    assert total > 2 << 30
