"""Columns: the same records as iteration gives, in NumPy and through Arrow's interface."""

import gc
import pickle
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import ottla
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla import CorruptRecordBatchError, InvalidRecordError
from records.crafting import (
    COMPRESSED,
    CONTROL,
    LOG_APPEND_TIME,
    TIMESTAMP,
    TRANSACTIONAL,
    batch,
    compressed_batch,
    entry,
    message,
    record,
    records,
    varint,
    wrapper,
)
from support.strategies import base_offsets, batches_of_records, compressions

from benches.data import Compression, encode_batch

Row = tuple[int, int, bytes | None, bytes | None]

MARKER = batch(
    record(key=b"\0\0\0\x01", value=b"\0\0\0\0\0\x07"),
    attributes=CONTROL | TRANSACTIONAL,
    producer_id=9,
    producer_epoch=2,
)


def iterated(data: bytes) -> list[Row]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in ottla.read(data)]


def from_numbers(data: bytes, columns: ottla.Columns) -> list[Row]:
    """Rows put together from the numbers, the data and the inflated payloads."""
    both = data + columns.inflated

    def part(position: int, length: int) -> bytes | None:
        return None if length < 0 else both[position : position + length]

    return [
        (offset, timestamp, part(key, key_length), part(value, value_length))
        for offset, timestamp, key, key_length, value, value_length in zip(
            *(column.tolist() for column in columns.numbers()), strict=True
        )
    ]


Headers = list[tuple[bytes, bytes | None]]


def headers_from_numbers(data: bytes, columns: ottla.Columns) -> list[Headers]:
    """Headers of each row, put together as `from_numbers` does."""
    both = data + columns.inflated
    numbers = zip(
        columns.header_key_position.tolist(),
        columns.header_key_length.tolist(),
        columns.header_value_position.tolist(),
        columns.header_value_length.tolist(),
        strict=True,
    )
    pairs = [
        (both[key : key + size], None if length < 0 else both[value : value + length])
        for key, size, value, length in numbers
    ]
    return [pairs[start:end] for start, end in pairwise(columns.header_offsets.tolist())]


def from_arrow(data: bytes) -> list[Row]:
    table = pa.table(ottla.read_columns(data, views=True))
    assert table.validate(full=True) is None
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def mixed() -> bytes:
    """Every kind of batch, one of each."""
    return b"".join(
        (
            entry(0, message(0, key=None)),
            wrapper(0, "lz4", entry(1, message(0)) + entry(2, message(0, value=None)), offset=2),
            entry(3, message(1, value=b"")),
            wrapper(1, "snappy", entry(0, message(1)) + entry(1, message(1)), offset=5),
            batch(records(9), count=9, base_offset=6),
            MARKER,
            *(compressed_batch(records(5), codec, count=5) for codec in COMPRESSED),
            batch(records(40), count=40, base_offset=100),
            batch(record(1) + record(4), count=2, last_offset_delta=6),
            batch(b"", count=0, last_offset_delta=4),
            batch(record(timestamp_delta=9), attributes=LOG_APPEND_TIME, max_timestamp=TIMESTAMP),
            batch(record(headers=[(b"h", b"x")], value=bytes(5000))),
        )
    )


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches of any codec, plain ones among them, some legacy, some control."""
    parts: list[bytes] = []
    for kind in draw(
        st.lists(st.sampled_from(["modern", "modern", "legacy", "marker"]), max_size=5)
    ):
        if kind == "marker":
            parts.append(MARKER)
            continue
        drawn = draw(batches_of_records(max_size=12))
        if kind == "modern":
            plain = [(r.timestamp, r.key, r.value, r.headers) for r in drawn]
            compression: Compression = draw(compressions())
            parts.append(
                encode_batch(plain, base_offset=draw(base_offsets()), compression=compression)
            )
        else:
            magic = draw(st.sampled_from([0, 1]))
            entries = b"".join(
                entry(index, message(magic, key=r.key, value=r.value, timestamp=r.timestamp))
                for index, r in enumerate(drawn)
            )
            codec = draw(st.sampled_from(["gzip", "snappy", "lz4", None]))
            parts.append(
                wrapper(magic, codec, entries, offset=len(drawn) - 1) if codec else entries
            )
    return b"".join(parts)


@given(logs())
def test_numbers_and_views_are_the_records_that_iteration_gives(data: bytes) -> None:
    expected = iterated(data)
    assert from_numbers(data, ottla.read_columns(data)) == expected
    assert from_arrow(data) == expected
    # One object gives both, whichever it read first.
    assert from_numbers(data, ottla.read_columns(data, views=True)) == expected
    numbers_first = ottla.read_columns(data)
    assert len(numbers_first) == len(expected)
    assert pa.table(numbers_first).num_rows == len(expected)


@given(logs())
def test_headers_are_those_that_iteration_gives(data: bytes) -> None:
    expected = [record.raw_headers for record in ottla.read(data)]
    columns = ottla.read_columns(data)
    assert headers_from_numbers(data, columns) == expected
    assert columns.header_count.tolist() == [len(headers) for headers in expected]
    # Whatever was read before, and whatever Arrow is given.
    for views in (False, True):
        columns = ottla.read_columns(data, views=views, headers=True)
        table = pa.table(columns)
        assert table.validate(full=True) is None
        pairs = [
            [(header["key"], header["value"]) for header in row]
            for row in table.column("headers").to_pylist()
        ]
        assert pairs == expected
        assert table.drop_columns("headers").equals(pa.table(ottla.read_columns(data)))
        assert headers_from_numbers(data, columns) == expected


def test_every_kind_of_batch_becomes_rows_in_log_order() -> None:
    data = mixed()
    expected = iterated(data)
    assert len(expected) == 1 + 2 + 1 + 2 + 9 + 20 + 40 + 2 + 1 + 1
    assert from_numbers(data, ottla.read_columns(data)) == expected
    assert from_arrow(data) == expected


# Headers.


HEADED = (
    record(0, headers=[(b"h", b"x"), (b"i", None)]) + record(1) + record(2, headers=[(b"", b"")])
)


@pytest.mark.parametrize("codec", ["none", *COMPRESSED])
def test_headers_of_a_row_are_found_by_its_offsets(codec: str) -> None:
    data = batch(records(1)) + compressed_batch(HEADED, codec, count=3)
    columns = ottla.read_columns(data)
    assert columns.header_count.tolist() == [0, 2, 0, 1]
    assert columns.header_offsets.tolist() == [0, 0, 2, 2, 3]
    assert columns.header_key_length.tolist() == [1, 1, 0]
    assert columns.header_value_length.tolist() == [1, -1, 0]
    both = data + columns.inflated
    assert [both[at : at + 1] for at in columns.header_key_position[:2]] == [b"h", b"i"]
    assert both[columns.header_value_position[0]] == ord("x")


def test_headers_have_the_promised_types_and_cannot_be_written() -> None:
    columns = ottla.read_columns(batch(HEADED, count=3))
    arrays: list[np.ndarray[Any, Any]] = [
        columns.header_count,
        columns.header_offsets,
        columns.header_key_position,
        columns.header_key_length,
        columns.header_value_position,
        columns.header_value_length,
    ]
    types = [np.int32, np.int32, np.uint32, np.int32, np.uint32, np.int32]
    assert [array.dtype for array in arrays] == types
    assert [array.shape for array in arrays] == [(3,), (4,), (3,), (3,), (3,), (3,)]
    assert not any(array.flags.writeable for array in arrays)


def test_headers_outlive_the_columns_and_the_data() -> None:
    columns = ottla.read_columns(bytearray(compressed_batch(HEADED, "zstd", count=3)))
    offsets, lengths = columns.header_offsets, columns.header_value_length
    del columns
    churned()
    assert (offsets.tolist(), lengths.tolist()) == ([0, 2, 2, 3], [1, -1, 0])


@pytest.mark.parametrize("data", [b"", MARKER, batch(b"", count=0), batch(records(2), count=2)])
def test_rows_without_headers_have_none(data: bytes) -> None:
    columns = ottla.read_columns(data)
    assert columns.header_count.tolist() == [0] * len(columns)
    assert columns.header_offsets.tolist() == [0] * (len(columns) + 1)
    assert columns.header_key_position.size == 0
    table = pa.table(ottla.read_columns(data, headers=True))
    assert table.column("headers").to_pylist() == [[]] * len(columns)


def test_arrow_has_headers_where_they_are_asked_for() -> None:
    schema = pa.table(ottla.read_columns(mixed(), headers=True)).schema
    assert schema.names == ["offset", "timestamp", "key", "value", "headers"]
    header = pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())])
    assert schema.field("headers").type == pa.list_(pa.field("element", header))
    assert not schema.field("headers").nullable
    assert "headers" not in pa.table(ottla.read_columns(mixed())).schema.names


def test_polars_and_duckdb_read_headers() -> None:
    log = ottla.read_columns(batch(HEADED, count=3), headers=True)
    expected = [
        [{"key": b"h", "value": b"x"}, {"key": b"i", "value": None}],
        [],
        [{"key": b"", "value": b""}],
    ]
    assert pl.DataFrame(log)["headers"].to_list() == expected
    assert duckdb.sql("SELECT headers FROM log").fetchall() == [(row,) for row in expected]


def test_columns_are_equal_if_their_headers_are_too() -> None:
    data = batch(HEADED, count=3)
    one = ottla.read_columns(data)
    assert one == ottla.read_columns(data, views=True, headers=True)
    assert one == ottla.read_columns(compressed_batch(HEADED, "lz4", count=3))
    assert hash(one) == hash(ottla.read_columns(compressed_batch(HEADED, "lz4", count=3)))
    for other in (
        record(0, headers=[(b"h", b"x"), (b"i", b"")])
        + record(1)
        + record(2, headers=[(b"", b"")]),
        record(0, headers=[(b"h", b"x")]) + record(1) + record(2, headers=[(b"", b"")]),
        record(0, headers=[(b"h", b"x"), (b"i", None)]) + record(1) + record(2),
    ):
        assert one != ottla.read_columns(batch(other, count=3))


@pytest.mark.parametrize("headers", [False, True])
def test_pickled_columns_show_headers_where_they_did(*, headers: bool) -> None:
    columns = ottla.read_columns(batch(HEADED, count=3), headers=headers)
    again = pickle.loads(pickle.dumps(columns))  # noqa: S301 - made here
    assert again == columns
    assert pa.table(again).equals(pa.table(columns))
    assert repr(again) == f"<Columns of 3 records{' with headers' if headers else ''}>"
    assert ("i&#x27;, None" in again._repr_html_()) is headers


# NumPy.


def test_columns_have_the_promised_types() -> None:
    columns = ottla.read_columns(mixed())
    numbers = columns.numbers()
    assert [column.dtype for column in numbers] == [
        np.int64,
        np.int64,
        np.uint32,
        np.int32,
        np.uint32,
        np.int32,
    ]
    assert {column.shape for column in numbers} == {(len(columns),)}
    named: list[np.ndarray[Any, Any]] = [
        columns.offset,
        columns.timestamp,
        columns.key_position,
        columns.key_length,
        columns.value_position,
        columns.value_length,
    ]
    for left, right in zip(numbers, named, strict=True):
        assert np.array_equal(left, right)


def test_arrays_cannot_be_written() -> None:
    for column in ottla.read_columns(mixed()).numbers():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True


def churned() -> None:
    """Take and fill memory, so that what was freed too early holds something else."""
    gc.collect()
    for size in (64, 4096, 1 << 20):
        _ = [np.full(size, 0x5A, np.uint8) for _ in range(50)]


def test_arrays_outlive_the_columns_and_the_data() -> None:
    data = bytearray(mixed())
    expected = from_numbers(bytes(data), ottla.read_columns(bytes(data)))
    columns = ottla.read_columns(data)
    numbers, inflated, copy = columns.numbers(), columns.inflated, bytes(data)
    del columns, data
    churned()
    both = copy + inflated
    rows = [
        (o, t, None if kl < 0 else both[k : k + kl], None if vl < 0 else both[v : v + vl])
        for o, t, k, kl, v, vl in zip(*(column.tolist() for column in numbers), strict=True)
    ]
    assert rows == expected


def test_arrow_outlives_the_columns_and_the_data() -> None:
    expected = iterated(mixed())
    columns = ottla.read_columns(bytearray(mixed()), views=True)
    table = pa.table(columns)
    window = table.column("value").slice(5, 7)
    del columns
    churned()
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    del table
    churned()
    assert window.to_pylist() == [value for *_, value in expected[5:12]]


def test_nulls_have_length_minus_1_and_empty_has_0() -> None:
    payload = record(0, key=None, value=b"") + record(1, key=b"", value=None)
    for data in (batch(payload, count=2), compressed_batch(payload, "gzip", count=2)):
        columns = ottla.read_columns(data)
        assert columns.key_length.tolist() == [-1, 0]
        assert columns.value_length.tolist() == [0, -1]
        table = pa.table(columns)
        assert table.column("key").to_pylist() == [None, b""]
        assert table.column("value").to_pylist() == [b"", None]


def test_positions_of_plain_batches_are_those_of_the_data() -> None:
    data = batch(record(key=b"the key", value=b"the value"))
    columns = ottla.read_columns(data)
    assert columns.key_position.tolist() == [data.index(b"the key")]
    assert columns.value_position.tolist() == [data.index(b"the value")]
    assert columns.inflated == b""


def test_positions_of_inflated_payloads_count_on_behind_the_data() -> None:
    first, second = record(value=b"first"), record(value=b"second")
    data = b"".join(
        (
            compressed_batch(first, "zstd"),
            batch(record(value=b"plain")),
            compressed_batch(second, "gzip"),
        )
    )
    columns = ottla.read_columns(data)
    assert columns.inflated == first + second
    assert columns.value_position.tolist() == [
        len(data) + first.index(b"first"),
        data.index(b"plain"),
        len(data) + len(first) + second.index(b"second"),
    ]


def test_an_inner_set_of_a_wrapper_is_inflated_too() -> None:
    entries = entry(0, message(1, value=b"inside"))
    data = wrapper(1, "gzip", entries, offset=0)
    columns = ottla.read_columns(data)
    assert columns.inflated == entries
    assert columns.value_position.tolist() == [len(data) + entries.index(b"inside")]


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize(
    "data", [b"", bytes(4000), MARKER, batch(b"", count=0), batch(record())[:-1], b"\0" * 5]
)
def test_data_without_a_record_give_zero_rows(data: bytes, *, views: bool) -> None:
    columns = ottla.read_columns(data, views=views)
    assert len(columns) == 0
    assert [column.size for column in columns.numbers()] == [0] * 6
    assert pa.table(columns).num_rows == 0
    assert pl.DataFrame(columns).height == 0


def test_control_batches_are_left_out() -> None:
    data = batch(records(2), count=2) + MARKER + batch(records(2), count=2, base_offset=3)
    assert ottla.read_columns(data).offset.tolist() == [0, 1, 3, 4]
    assert from_arrow(data) == iterated(data)


def test_a_cut_last_batch_is_left_out() -> None:
    good = batch(records(3), count=3)
    for cut in range(len(good)):
        assert len(ottla.read_columns(good + good[:cut])) == 3


# Faults.


FAULTY = {
    "a wrong checksum": batch(records(2), count=2)[:-1] + b"\1",
    "a record too long": batch(record(0) + record(1, longer=5), count=2),
    "a compressed record too long": compressed_batch(
        record(0) + record(1, longer=5), "lz4", count=2
    ),
    "a varint without end": batch(record(0) + b"\xff" * 9, count=2),
    "a negative count": batch(record(), count=-1, last_offset_delta=0),
    "a nested wrapper": wrapper(
        1, "gzip", wrapper(1, "gzip", entry(0, message(1)), offset=0), offset=0
    ),
}


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("name", FAULTY)
def test_what_a_consumer_refuses_is_refused_at_the_same_place(name: str, *, views: bool) -> None:
    before = batch(records(3), count=3)
    with pytest.raises((CorruptRecordBatchError, InvalidRecordError)) as caught:
        ottla.read_columns(before + FAULTY[name] + before, views=views)
    with pytest.raises(type(caught.value)) as expected:
        ottla.check_batches(before + FAULTY[name] + before, level="decode")
    assert caught.value.kind == expected.value.kind
    assert caught.value.position == expected.value.position
    assert caught.value.record_index == expected.value.record_index


def test_offset_deltas_in_any_order_become_rows() -> None:
    payload = record(5, value=b"a") + record(0, value=b"b") + record(5, value=b"c")
    assert ottla.read_columns(batch(payload, count=3, base_offset=10)).offset.tolist() == [
        15,
        10,
        15,
    ]


def test_varints_longer_than_needed_become_rows() -> None:
    body = b"\0" + varint(0, width=3) * 2 + varint(1, width=2) + b"k" + varint(1) + b"v" + b"\0"
    assert from_arrow(batch(varint(len(body)) + body)) == [(0, TIMESTAMP, b"k", b"v")]


# Arrow.


def sizes() -> Iterator[bytes]:
    """Values around the 12 bytes that a view holds itself, and some longer."""
    for size in (0, 1, 4, 11, 12, 13, 16, 100, 5000):
        yield bytes(index % 256 for index in range(size))


SIZED = b"".join(
    record(index, key=content[::-1], value=content) for index, content in enumerate(sizes())
)


@pytest.fixture(params=["none", *COMPRESSED])
def sized_log(request: pytest.FixtureRequest) -> bytes:
    """Two batches of these values."""
    count = len(list(sizes()))
    return compressed_batch(SIZED, request.param, count=count) * 2


def test_the_schema_is_offset_timestamp_key_value() -> None:
    schema = pa.table(ottla.read_columns(mixed(), views=True)).schema
    assert schema.names == ["offset", "timestamp", "key", "value"]
    assert schema.types == [pa.int64(), pa.int64(), pa.binary_view(), pa.binary_view()]
    assert [field.nullable for field in schema] == [False, False, True, True]


def test_pyarrow_reads_columns(sized_log: bytes) -> None:
    assert from_arrow(sized_log) == iterated(sized_log)


def test_polars_reads_columns(sized_log: bytes) -> None:
    frame = pl.DataFrame(ottla.read_columns(sized_log, views=True))
    assert frame.schema == {
        "offset": pl.Int64,
        "timestamp": pl.Int64,
        "key": pl.Binary,
        "value": pl.Binary,
    }
    assert frame.rows() == iterated(sized_log)


def test_duckdb_reads_columns(sized_log: bytes) -> None:
    log = ottla.read_columns(sized_log, views=True)
    found: list[Any] = duckdb.sql('SELECT "offset", timestamp, key, value FROM log').fetchall()
    assert found == iterated(sized_log)
    assert len(log) == len(found)


def test_duckdb_aggregates_over_columns_with_nulls() -> None:
    log = ottla.read_columns(mixed(), views=True)
    counted = duckdb.sql("SELECT count(*), count(key), count(value) FROM log").fetchall()
    expected = iterated(mixed())
    assert counted == [
        (
            len(log),
            sum(key is not None for _, _, key, _ in expected),
            sum(value is not None for *_, value in expected),
        )
    ]


def test_the_stream_can_be_taken_more_than_once() -> None:
    columns = ottla.read_columns(mixed(), views=True)
    assert pa.table(columns).equals(pa.table(columns))


def test_long_values_are_not_copied_out_of_the_data() -> None:
    data = batch(record(value=b"x" * 100_000))
    before = pa.total_allocated_bytes()
    column = pa.table(ottla.read_columns(data, views=True)).column("value").chunk(0)
    buffers = [buffer for buffer in column.buffers() if buffer is not None]
    assert pa.total_allocated_bytes() - before < 10_000
    assert [buffer.size for buffer in buffers if buffer.size >= 100_000] == [len(data)]


def test_a_window_of_the_rows_is_a_window_of_the_records() -> None:
    data = mixed()
    expected = iterated(data)
    columns = ottla.read_columns(data)
    for start, stop in ((0, 0), (3, 17), (len(expected) - 1, len(expected))):
        assert columns.offset[start:stop].tolist() == [row[0] for row in expected[start:stop]]
        table = pa.table(columns).slice(start, stop - start)
        assert table.column("value").to_pylist() == [row[3] for row in expected[start:stop]]


def test_many_rows_are_as_many_as_the_records() -> None:
    payload = b"".join(record(index, value=struct.pack(">i", index)) for index in range(20_000))
    data = batch(payload, count=20_000) + compressed_batch(payload, "lz4", count=20_000)
    columns = ottla.read_columns(data)
    assert np.array_equal(columns.offset, np.tile(np.arange(20_000), 2))
    both = np.frombuffer(data + columns.inflated, np.uint8)
    quads = both[columns.value_position[:, None] + np.arange(4, dtype=np.uint32)]
    values = quads.astype(np.uint32) @ np.array([1 << 24, 1 << 16, 1 << 8, 1], np.uint32)
    assert np.array_equal(values, np.tile(np.arange(20_000), 2))
