"""Building: what is built is read back equal, and what Kafka's builder refuses is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import ottla
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla import NewRecord
from records.crafting import CODECS, TIMESTAMP
from support.strategies import DrawnRecord, base_offsets, batches_of_records, compressions

from benches.data import Compression, encode_batch

RECORD = NewRecord(timestamp=TIMESTAMP, key=b"k", value=b"v")
PRODUCER: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 10}


def new(drawn: list[DrawnRecord]) -> list[NewRecord]:
    return [NewRecord(r.key, r.value, r.timestamp, r.headers) for r in drawn]


def only(data: bytes) -> ottla.RecordBatch:
    (found,) = ottla.read_batches(data)
    found.verify()
    return found


def read_back(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in ottla.read(data)]


# From records.


@given(batches_of_records(), compressions(), base_offsets())
def test_a_batch_of_records_is_read_back_equal(
    drawn: list[DrawnRecord], compression: Compression, base_offset: int
) -> None:
    data = ottla.build_batch(new(drawn), base_offset=base_offset, compression=compression)
    assert [
        (r.offset, DrawnRecord(r.timestamp, r.key, r.value, tuple(r.headers)))
        for r in ottla.read(data)
    ] == list(enumerate(drawn, base_offset))
    assert ottla.check_batches(data) == len(drawn)


@given(batches_of_records(), base_offsets())
def test_a_plain_batch_has_the_bytes_of_an_independent_encoder(
    drawn: list[DrawnRecord], base_offset: int
) -> None:
    plain = [(r.timestamp, r.key, r.value, r.headers) for r in drawn]
    assert ottla.build_batch(
        new(drawn), base_offset=base_offset, partition_leader_epoch=0
    ) == encode_batch(plain, base_offset=base_offset)


def test_the_fields_of_a_batch_are_those_asked_for() -> None:
    data = ottla.build_batch(
        [RECORD, RECORD],
        base_offset=100,
        partition_leader_epoch=7,
        is_transactional=True,
        delete_horizon_ms=TIMESTAMP + 9,
        **PRODUCER,
    )
    head = only(data)
    assert (head.base_offset, head.last_offset, head.partition_leader_epoch) == (100, 101, 7)
    assert (head.producer_id, head.producer_epoch, head.base_sequence) == (5, 1, 10)
    assert head.is_transactional
    assert head.delete_horizon_ms == TIMESTAMP + 9
    assert [r.timestamp for r in head.records()] == [TIMESTAMP, TIMESTAMP]
    assert ottla.check_batches(data) == 2


def test_log_append_time_is_the_time_of_every_record() -> None:
    head = only(ottla.build_batch([RECORD], log_append_time_ms=77))
    assert (head.timestamp_type, head.max_timestamp) == ("log_append_time", 77)
    assert [r.timestamp for r in head.records()] == [77]


def test_given_offset_deltas_make_a_thin_batch_and_others_count_on() -> None:
    given_deltas = [NewRecord(offset_delta=2), NewRecord(), NewRecord(offset_delta=7)]
    data = ottla.build_batch(given_deltas, base_offset=10)
    assert [r.offset for r in ottla.read(data)] == [12, 13, 17]
    assert only(data).last_offset == 17
    assert ottla.check_batches(data) == 3


def test_header_keys_may_be_text_or_bytes() -> None:
    data = ottla.build_batch([NewRecord(headers=[("ä", b"x"), (b"\xff", None), ("", b"")])])
    (read,) = ottla.read(data)
    assert read.raw_headers == [("ä".encode(), b"x"), (b"\xff", None), (b"", b"")]


def test_records_may_come_from_an_iterator() -> None:
    assert ottla.check_batches(ottla.build_batch(NewRecord(value=b"x") for _ in range(5))) == 5


@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("lz4", 17), ("zstd", 22), ("zstd", -5)])
def test_a_compression_level_is_taken(codec: Compression, level: int) -> None:
    data = ottla.build_batch([RECORD] * 50, compression=codec, compression_level=level)
    assert ottla.check_batches(data) == 50


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no records": (lambda: ottla.build_batch([]), "no records"),
    "a negative timestamp": (
        lambda: ottla.build_batch([RECORD, NewRecord(timestamp=-2)]),
        "record 1: timestamp -2, expected 0 or more, or -1 for none",
    ),
    "an offset delta that repeats": (
        lambda: ottla.build_batch([NewRecord(offset_delta=1), NewRecord(offset_delta=1)]),
        "record 1: offset delta 1, expected 2 to",
    ),
    "a negative offset delta": (
        lambda: ottla.build_batch([NewRecord(offset_delta=-1)]),
        "record 0: offset delta -1",
    ),
    "a producer without an epoch": (
        lambda: ottla.build_batch([RECORD], producer_id=5, base_sequence=0),
        "producer id 5 with producer epoch -1, expected 0 or more",
    ),
    "a producer without a sequence": (
        lambda: ottla.build_batch([RECORD], producer_id=5, producer_epoch=0),
        "producer id 5 with base sequence -1, expected 0 or more",
    ),
    "a transaction without a producer": (
        lambda: ottla.build_batch([RECORD], is_transactional=True),
        "transactional batch without a producer id",
    ),
    "a marker without a producer": (
        lambda: ottla.build_control_batch(
            "commit", producer_id=-1, producer_epoch=0, coordinator_epoch=0, timestamp=0
        ),
        "marker without a producer id",
    ),
    "a codec that does not exist": (
        lambda: ottla.build_batch([RECORD], compression="brotli"),  # type: ignore[arg-type]
        "'none', 'gzip', 'snappy', 'lz4' or 'zstd', not 'brotli'",
    ),
    "a level that does not exist": (
        lambda: ottla.build_batch([RECORD], compression="gzip", compression_level=10),
        "level 10 for gzip, expected 1 to 9",
    ),
    "a level for a codec without": (
        lambda: ottla.build_batch([RECORD], compression="snappy", compression_level=1),
        "level 1 for snappy, which has no levels",
    ),
    "headers in magic 1": (
        lambda: ottla.build_message_set([NewRecord(headers=[("h", b"x")])], magic=1),
        "record 0: headers with magic 1, which has none; use magic 2",
    ),
    "zstd in magic 1": (
        lambda: ottla.build_message_set(
            [RECORD],
            magic=1,
            compression="zstd",  # type: ignore[arg-type]
        ),
        "zstd with magic 1, expected magic 2",
    ),
    "a message set of magic 2": (
        lambda: ottla.build_message_set([RECORD], magic=2),  # type: ignore[arg-type]
        "magic 2, expected 0 or 1",
    ),
    "an empty message set": (lambda: ottla.build_message_set([], magic=1), "no records"),
    "a marker of another kind": (
        lambda: ottla.build_control_batch(
            "prepare",  # type: ignore[arg-type]
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=0,
        ),
        "prepare",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kafkas_builder_refuses_is_a_value_error_that_says_why(name: str) -> None:
    build, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        build()


def test_text_as_a_value_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="found str; encode it first"):
        ottla.build_batch([NewRecord(value="text")])  # type: ignore[arg-type]


# Control batches.


@pytest.mark.parametrize(("kind", "name"), [("commit", "COMMIT"), ("abort", "ABORT")])
def test_a_marker_is_read_back(kind: Any, name: str) -> None:
    data = ottla.build_control_batch(
        kind, producer_id=9, producer_epoch=2, coordinator_epoch=7, timestamp=5, base_offset=42
    )
    (marker,) = ottla.read(data, control=True)
    assert (marker.offset, marker.timestamp) == (42, 5)
    assert (marker.control, marker.coordinator_epoch) == (name, 7)
    assert only(data).base_sequence == -1
    assert len(data) == 78
    assert ottla.check_batches(data) == 1


# Magic 0 and 1.


@given(
    batches_of_records(max_size=8),
    st.sampled_from([0, 1]),
    st.sampled_from(CODECS[:4]),
    st.integers(0, 2**40),
)
def test_a_message_set_is_read_back_equal(
    drawn: list[DrawnRecord], magic: Any, codec: Any, base_offset: int
) -> None:
    rows = [NewRecord(r.key, r.value, r.timestamp) for r in drawn]
    data = ottla.build_message_set(rows, magic=magic, compression=codec, base_offset=base_offset)
    assert read_back(data) == [
        (base_offset + index, r.timestamp if magic else -1, r.key, r.value)
        for index, r in enumerate(drawn)
    ]
    assert {head.magic for head in ottla.read_batches(data)} == {magic}
    assert ottla.check_batches(data) == len(drawn)


# From columns.

VALUES: list[bytes | None] = [b"one", b"", None, b"four" * 40, b"5"]
TIMES = np.arange(TIMESTAMP, TIMESTAMP + 5)


def numpy_column(parts: list[bytes], offset_type: Any) -> tuple[Any, Any]:
    offsets = np.zeros(len(parts) + 1, offset_type)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


@given(batches_of_records(), compressions(), st.sampled_from([np.int32, np.int64]))
def test_numpy_columns_are_built_as_their_records_are(
    drawn: list[DrawnRecord], compression: Compression, offset_type: Any
) -> None:
    data = ottla.build_batch_from_columns(
        np.array([r.timestamp for r in drawn], np.int64),
        None,
        numpy_column([r.value or b"" for r in drawn], offset_type),
        compression=compression,
        base_offset=3,
        **PRODUCER,
    )
    rows = [NewRecord(None, r.value or b"", r.timestamp) for r in drawn]
    assert data == ottla.build_batch(rows, compression=compression, base_offset=3, **PRODUCER)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(VALUES, pa.binary()),
        pa.array(VALUES, pa.large_binary()),
        pa.array(VALUES, pa.binary_view()),
        pa.array([b"before", None, *VALUES, b"behind"], pa.binary())[2:7],
        pa.array([None] * 9 + [*VALUES, None], pa.large_binary())[9:14],
        VALUES,
    ],
    ids=["binary", "large", "view", "sliced", "sliced large", "list"],
)
def test_arrow_columns_with_nulls_are_read_back_equal(column: Any) -> None:
    data = ottla.build_batch_from_columns(TIMES, column, column)
    assert read_back(data) == [
        (index, TIMESTAMP + index, value, value) for index, value in enumerate(VALUES)
    ]


def test_text_of_arrow_is_written_as_utf_8() -> None:
    text = pa.array(["ä", None, "b"], pa.string())
    data = ottla.build_batch_from_columns(TIMES[:3], None, text)
    assert [r.value for r in ottla.read(data)] == ["ä".encode(), None, b"b"]


def test_numpy_columns_take_a_mask_of_what_is_there() -> None:
    column = (*numpy_column([b"a", b"bb", b""], np.int32), np.array([True, False, True]))
    data = ottla.build_batch_from_columns(TIMES[:3], column, None)
    assert [(r.key, r.value) for r in ottla.read(data)] == [(b"a", None), (None, None), (b"", None)]


def test_columns_of_nothing_but_nulls_are_built() -> None:
    data = ottla.build_batch_from_columns(TIMES, None, pa.array([None] * 5, pa.binary()))
    assert [(r.key, r.value) for r in ottla.read(data)] == [(None, None)] * 5


GOOD = numpy_column([b"a", b"bb"], np.int32)
WRONG_COLUMNS: dict[str, tuple[Any, Any, type[Exception]]] = {
    "fewer values than timestamps": (TIMES[:3], GOOD, ValueError),
    "offsets behind the data": (TIMES[:2], (GOOD[0] + 5, GOOD[1]), ValueError),
    "negative offsets": (TIMES[:2], (GOOD[0] - 1, GOOD[1]), ValueError),
    "offsets that go down": (TIMES[:2], (GOOD[0][::-1].copy(), GOOD[1]), ValueError),
    "no row": (TIMES[:0], (GOOD[0][:1], GOOD[1]), ValueError),
    "no offsets": (TIMES[:0], (GOOD[0][:0], GOOD[1]), ValueError),
    "a negative timestamp": (np.array([0, -2]), GOOD, ValueError),
    "timestamps with a stride": (np.arange(4)[::2], GOOD, ValueError),
    "timestamps of 32 bits": (np.arange(2, dtype=np.int32), GOOD, TypeError),
    "offsets of floats": (TIMES[:2], (GOOD[0].astype(float), GOOD[1]), TypeError),
    "data of 16 bits": (TIMES[:2], (GOOD[0], GOOD[1].astype(np.int16)), TypeError),
}


@pytest.mark.parametrize("name", WRONG_COLUMNS)
def test_columns_that_do_not_fit_are_refused(name: str) -> None:
    timestamps, values, error = WRONG_COLUMNS[name]
    with pytest.raises(error):
        ottla.build_batch_from_columns(timestamps, None, values)


def test_a_column_longer_than_the_timestamps_is_refused() -> None:
    with pytest.raises(ValueError, match="as many rows as there are timestamps"):
        ottla.build_batch_from_columns(TIMES[:1], None, GOOD)
