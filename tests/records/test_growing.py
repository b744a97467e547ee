"""A producer's batch: it grows, says how large it is, and is sent as often as needed."""

from typing import Any

import numpy as np
import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla import NewRecord
from ottla.records import BatchBuilder
from records.crafting import TIMESTAMP
from support.strategies import DrawnRecord, batches_of_records, compressions, nullable_bytes

from benches.data import Compression

ROOM = 1 << 30
PRODUCER: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 10}


def grown(drawn: list[DrawnRecord], max_bytes: int = ROOM) -> BatchBuilder:
    builder = BatchBuilder(max_bytes)
    for record in drawn:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder


def built(drawn: list[DrawnRecord], **fields: Any) -> bytes:
    records = [NewRecord(r.key, r.value, r.timestamp, r.headers) for r in drawn]
    return ottla.build_batch(records, **fields)


def column(values: list[bytes | None], offsets: str = "int32") -> tuple[Any, ...]:
    lengths = [len(value or b"") for value in values]
    ends = np.cumsum([0, *lengths]).astype(offsets)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    return ends, data, np.array([value is not None for value in values], bool)


@given(batches_of_records(), compressions())
def test_it_has_the_bytes_of_a_batch_that_is_built_at_once(
    drawn: list[DrawnRecord], compression: Compression
) -> None:
    builder = grown(drawn)
    assert builder.count == len(drawn)
    assert builder.size_bytes == len(built(drawn))
    assert builder.finish(compression=compression) == built(drawn, compression=compression)


@given(batches_of_records(), st.integers(0, 2000))
def test_it_takes_a_record_only_where_the_whole_batch_fits(
    drawn: list[DrawnRecord], max_bytes: int
) -> None:
    builder, taken = BatchBuilder(max_bytes), list[DrawnRecord]()
    for record in drawn:
        size = builder.append(record.timestamp, record.key, record.value, record.headers)
        expected = len(built([*taken, record]))
        if taken and expected > max_bytes:
            assert size == -1
        else:
            taken.append(record)
            assert size == expected == builder.size_bytes
    assert builder.count == len(taken)
    assert builder.finish() == built(taken)


@given(batches_of_records(), compressions())
def test_it_is_sent_again_with_another_identity(
    drawn: list[DrawnRecord], compression: Compression
) -> None:
    builder = grown(drawn)
    for fields in ({}, PRODUCER, {**PRODUCER, "base_sequence": 0, "is_transactional": True}):
        for codec in (compression, "none"):
            expected = built(drawn, compression=codec, **fields)
            assert builder.finish(compression=codec, **fields) == expected


def test_a_record_behind_a_finish_is_in_the_next() -> None:
    records = [DrawnRecord(TIMESTAMP, None, value) for value in (b"a" * 99, b"b" * 99)]
    builder = grown(records[:1])
    assert builder.finish(compression="lz4") == built(records[:1], compression="lz4")
    builder.append(TIMESTAMP, None, b"b" * 99)
    assert builder.finish(compression="lz4") == built(records, compression="lz4")


def test_another_level_compresses_anew() -> None:
    drawn = [DrawnRecord(TIMESTAMP, None, bytes(range(200)) * 40)]
    builder = grown(drawn)
    for level in (1, 9, None):
        fields: dict[str, Any] = {"compression": "gzip", "compression_level": level}
        assert builder.finish(**fields) == built(drawn, **fields)


@given(batches_of_records(), st.sets(st.integers(0, 25)))
def test_without_some_records_it_is_as_if_they_never_came(
    drawn: list[DrawnRecord], indexes: set[int]
) -> None:
    left = [record for index, record in enumerate(drawn) if index not in indexes]
    builder = grown(drawn)
    others = builder.without(sorted(indexes))
    assert others.count == len(left)
    if left:
        assert others.finish() == built(left)
    assert builder.finish() == built(drawn)


@given(batches_of_records().filter(lambda drawn: len(drawn) > 1), st.data())
def test_split_it_is_two_batches(drawn: list[DrawnRecord], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(drawn) - 1))
    first, second = grown(drawn).split(at)
    assert first.finish() == built(drawn[:at])
    assert second.finish() == built(drawn[at:])


@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_split_that_leaves_a_batch_empty_is_refused(at: int) -> None:
    builder = grown([DrawnRecord(TIMESTAMP, None, b"")] * 2)
    with pytest.raises(ValueError, match=f"at is {at}, expected 1 or more, and less than 2 rec"):
        builder.split(at)


def test_a_part_that_was_split_off_grows_on() -> None:
    drawn = [DrawnRecord(TIMESTAMP + index, None, b"x" * index) for index in range(4)]
    _, second = grown(drawn[:3], max_bytes=len(built(drawn[1:]))).split(1)
    assert second.append(TIMESTAMP + 3, None, b"xxxx") == -1
    assert second.append(TIMESTAMP + 3, None, b"xxx") == len(built(drawn[1:]))
    assert second.finish() == built(drawn[1:])


# Many at once.

ROWS = st.lists(st.tuples(nullable_bytes(), nullable_bytes()), min_size=1, max_size=30)


@given(ROWS, st.data())
def test_rows_of_lists_and_of_columns_become_the_same_batches(
    pairs: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1))
    max_bytes = data.draw(st.integers(60, 1200))
    keys, values = ([*part] for part in zip(*pairs, strict=True))
    times = np.arange(TIMESTAMP, TIMESTAMP + len(pairs))
    sources: list[tuple[Any, Any]] = [
        (keys, values),
        (column(keys), column(values, "int64")),
        (column(keys), values),
    ]
    for source in sources:
        start = 0
        while start < len(rows):
            one, many = BatchBuilder(max_bytes), BatchBuilder(max_bytes)
            taken = many.append_many(times, *source, np.array(rows, np.int64), start)
            for row in rows[start : start + taken]:
                assert one.append(int(times[row]), keys[row], values[row]) > 0
            if start + taken < len(rows):
                row = rows[start + taken]
                assert one.append(int(times[row]), keys[row], values[row]) == -1
            assert taken > 0
            assert many.finish() == one.finish()
            start += taken


def test_all_rows_are_appended_where_none_are_named() -> None:
    values: list[bytes | None] = [b"a", None, b"c"]
    for given_values in (values, column(values)):
        builder = BatchBuilder(ROOM)
        assert builder.append_many(TIMESTAMP, None, given_values, start=1) == 2
        assert builder.append_many(TIMESTAMP, None, given_values, start=3) == 0
        found = [(r.timestamp, r.key, r.value) for r in ottla.read(builder.finish())]
        assert found == [(TIMESTAMP, None, None), (TIMESTAMP, None, b"c")]


def test_rows_may_have_headers() -> None:
    headers = [None, [("h", b"1")], [("i", None), (b"j", b"")]]
    for values in ([b"a", b"b", b"c"], column([b"a", b"b", b"c"])):
        builder = BatchBuilder(ROOM)
        assert builder.append_many(-1, None, values, headers=headers) == 3
        found = [[*r.headers] for r in ottla.read(builder.finish())]
        assert found == [[], [("h", b"1")], [("i", None), ("j", b"")]]


def test_arrow_bitmaps_tell_which_values_are_null() -> None:
    offsets, data, _ = column([b"a", b"b", b"c"])
    builder = BatchBuilder(ROOM)
    bits = np.array([0b0101_0000], np.uint8)
    assert builder.append_many(-1, None, (offsets, data, (bits, 4))) == 3
    assert [r.value for r in ottla.read(builder.finish())] == [b"a", None, b"c"]


BAD_ROWS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a row that is not there": (
        (-1, None, [b"a"], np.array([0, 1])),
        {},
        "row 1 of a column that has 1",
    ),
    "a row of a column that is not there": (
        (-1, None, column([b"a"]), np.array([0, 1])),
        {},
        "row 1 of a column that has 1",
    ),
    "a negative row": (
        (-1, None, column([b"a"]), np.array([0, -1])),
        {},
        "of a column that has 1",
    ),
    "offsets beyond the data": (
        (-1, None, (np.array([0, 1, 9], np.int32), np.zeros(5, np.uint8))),
        {},
        "row 1 from 1 to 9, expected within 5 bytes",
    ),
    "offsets that go back": (
        (-1, None, (np.array([0, 4, 2]), np.zeros(5, np.uint8))),
        {},
        "row 1 from 4 to 2, expected within 5 bytes",
    ),
    "a negative offset": (
        (-1, None, (np.array([0, 4, -2]), np.zeros(5, np.uint8))),
        {},
        "row 1 from 4 to -2",
    ),
    "a timestamp": (
        (np.array([0, -2]), None, column([b"a", b"b"])),
        {},
        "record 1: timestamp -2, expected 0 or more, or -1 for none",
    ),
    "columns of different lengths": (
        (np.array([0, 1]), [b"k"], None),
        {},
        "keys has 1 rows, expected 2 as timestamps",
    ),
    "headers of another length": (
        (5, None, [b"k"]),
        {"headers": []},
        "headers has 0 rows, expected 1 as values",
    ),
    "an unknown number of rows": ((5, None, None), {}, "how many rows there are is not known"),
}


@pytest.mark.parametrize(("rows", "named", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_rows_that_cannot_be_written_are_named_and_none_is(
    rows: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    builder = grown([DrawnRecord(TIMESTAMP, None, b"before")])
    before = builder.finish()
    with pytest.raises(ValueError, match=message):
        builder.append_many(*rows, **named)
    assert builder.count == 1
    assert builder.finish() == before


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ((-2, None, None), ValueError, "timestamp -2, expected 0 or more, or -1 for none"),
        ((2**63, None, None), ValueError, "timestamp_ms is 9223372036854775808, expected -9"),
        (("now", None, None), TypeError, "timestamp_ms is <class 'str'>, expected an int"),
        ((0, "key", None), TypeError, "key: expected a bytes-like object, found str; encode it"),
        ((0, None, 5), TypeError, "value: expected a bytes-like object, found int"),
        ((0, None, None, [("h", "v")]), TypeError, "headers are pairs .* found str; encode it"),
        ((0, None, None, [("h",)]), TypeError, "headers are pairs of key"),
        ((0, None, None, 7), TypeError, "headers are pairs of key"),
    ],
)
def test_a_record_that_cannot_be_written_is_refused_by_name(
    record: Any, error: type[Exception], message: str
) -> None:
    builder = BatchBuilder(ROOM)
    with pytest.raises(error, match=message):
        builder.append(*record)
    assert builder.count == 0


def test_any_bytes_like_object_is_copied_at_once() -> None:
    value = bytearray(b"before")
    builder = BatchBuilder(ROOM)
    builder.append(-1, memoryview(b"key"), value)
    value[:] = b"behind"
    assert [(r.key, r.value) for r in ottla.read(builder.finish())] == [(b"key", b"before")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_transactional": True}, "transactional batch without a producer id"),
        ({"producer_id": 1}, "producer id 1 with producer epoch -1"),
        ({"producer_id": 1, "producer_epoch": 0}, "base sequence -1, expected 0 or more"),
        ({"compression": "brotli"}, "compression is 'none'"),
        ({"compression": "gzip", "compression_level": 77}, "level 77 for gzip"),
    ],
)
def test_fields_that_no_batch_can_have_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grown([DrawnRecord(-1, None, None)]).finish(**fields)


def test_no_records_are_no_batch() -> None:
    with pytest.raises(ValueError, match="no records"):
        BatchBuilder(ROOM).finish()
