"""What a consumer gets of one partition of a Fetch answer."""

from __future__ import annotations

import copy
import pickle
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import ottla
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import CorruptRecordBatchError, RecordBatchError
from ottla.records import BatchBuilder, ConsumerRecord, fetched, join_columns
from records.crafting import (
    CODECS,
    CONTROL,
    LOG_APPEND_TIME,
    TIMESTAMP,
    TRANSACTIONAL,
    batch,
    compress,
    entry,
    message,
    record,
    records,
    wrapper,
)
from records.naive_fetched import Given, naive_fetched

if TYPE_CHECKING:
    from ottla.records import FetchedRecords

COMMIT, ABORT = 1, 0


def transactional(base_offset: int, producer_id: int, count: int = 1, **fields: Any) -> bytes:
    return batch(
        records(count),
        count=count,
        base_offset=base_offset,
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        **fields,
    )


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    return batch(
        record(key=bytes([0, 0, 0, kind]), value=bytes(6)),
        base_offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def plain(base_offset: int, count: int = 1, **fields: Any) -> bytes:
    return batch(records(count), count=count, base_offset=base_offset, **fields)


def rows(found: FetchedRecords) -> list[Given]:
    made = found.records("events", 7)
    assert {(one.topic, one.partition) for one in made} <= {("events", 7)}
    return [
        (
            one.offset,
            one.timestamp_ms,
            one.timestamp_type,
            one.key,
            one.value,
            one.headers,
            one.leader_epoch,
        )
        for one in made
    ]


def offsets(found: FetchedRecords) -> list[int]:
    return [one.offset for one in found.records("events", 0)]


def from_columns(columns: Any) -> list[tuple[Any, ...]]:
    """Rows of joined columns, put together from NumPy's arrays."""

    def parts(column: tuple[Any, ...]) -> list[bytes | None]:
        ends, data, *valid = column
        both = data.tobytes()
        return [
            both[start:end] if not valid or valid[0][row] else None
            for row, (start, end) in enumerate(pairwise(ends))
        ]

    return list(
        zip(
            [columns.topics[index] for index in columns.topic_index],
            columns.partition.tolist(),
            columns.offset.tolist(),
            columns.timestamp_ms.tolist(),
            parts(columns.key),
            parts(columns.value),
            strict=True,
        )
    )


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, int]]]:
    """The bytes of an answer, a position in it or beside it, and aborted transactions."""
    parts: list[bytes] = []
    offset = draw(st.integers(0, 50))
    first = offset
    for kind in draw(
        st.lists(
            st.sampled_from(["plain", "plain", "sparse", "empty", "marker", "legacy", "stale"]),
            max_size=8,
        )
    ):
        count = draw(st.integers(1, 5))
        producer = draw(st.sampled_from([-1, 1, 2]))
        fields: dict[str, Any] = {"base_offset": offset}
        fields["partition_leader_epoch"] = draw(st.integers(-1, 3))
        if producer >= 0:
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 4}
        attributes = draw(st.sampled_from([0, LOG_APPEND_TIME]))
        if producer >= 0 and draw(st.booleans()):
            attributes |= TRANSACTIONAL
        codec = draw(st.sampled_from(CODECS))
        if kind == "marker":
            parts.append(marker(offset, max(producer, 1), draw(st.sampled_from([COMMIT, ABORT]))))
            count = 1
        elif kind == "legacy":
            magic = draw(st.sampled_from([0, 1]))
            inner = b"".join(entry(index, message(magic)) for index in range(count))
            if codec in {"gzip", "snappy", "lz4"} and magic == 1:
                parts.append(wrapper(1, codec, inner, offset=offset + count - 1))
            else:
                parts.append(entry(offset, message(magic, value=None)))
                count = 1
        else:
            deltas = [*range(count)]
            if kind == "sparse":
                deltas = sorted(draw(st.sets(st.integers(0, 9), max_size=4)))
                count = 10
            elif kind == "empty":
                deltas = []
            elif kind == "stale":
                fields["base_offset"] = max(0, offset - draw(st.integers(0, 9)))
            payload = b"".join(
                record(
                    delta,
                    key=draw(st.sampled_from([None, b"", b"key"])),
                    value=draw(st.sampled_from([None, b"", b"value" * 30])),
                    headers=draw(st.sampled_from([(), [(b"h", b"x"), (b"\xff", None)]])),
                )
                for delta in deltas
            )
            parts.append(
                batch(
                    payload if codec == "none" else compress(codec, payload),
                    count=len(deltas),
                    codec=CODECS.index(codec),
                    attributes=attributes,
                    last_offset_delta=count - 1,
                    **fields,
                )
            )
        offset += count
    aborted = draw(
        st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(first, offset + 1)), max_size=4)
    )
    return b"".join(parts), draw(st.integers(max(0, first - 2), offset + 2)), aborted


def same_as_naive(
    data: bytes, position: int, aborted: list[tuple[int, int]] | None, *, check_crcs: bool = True
) -> None:
    expected = naive_fetched(data, position, aborted or [], check_crcs=check_crcs)
    found = fetched(data, position, aborted, check_crcs)
    assert rows(found) == expected.records
    assert len(found) == len(expected.records)
    assert found.next_position == expected.position
    assert found.leader_epoch == expected.leader_epoch
    assert (found.error and found.error.kind) == expected.fault
    columns = join_columns([("a", 3, found)])
    assert from_columns(columns) == [
        ("a", 3, offset, timestamp, key, value)
        for offset, timestamp, _, key, value, _, _ in expected.records
    ]


@given(answers())
def test_an_answer_is_what_a_consumer_makes_of_it_record_by_record(
    answer: tuple[bytes, int, list[tuple[int, int]]],
) -> None:
    data, position, aborted = answer
    same_as_naive(data, position, None)
    same_as_naive(data, position, aborted)
    same_as_naive(data[: len(data) * 2 // 3], position, aborted)


@given(answers(), st.data())
def test_damage_is_met_where_it_is_and_what_is_before_it_is_given(
    answer: tuple[bytes, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    whole, position, aborted = answer
    if not whole:
        return
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    same_as_naive(damaged, position, aborted)
    same_as_naive(damaged, position, aborted, check_crcs=False)


@given(st.binary(max_size=200), st.integers(-(2**63), 2**63 - 1))
def test_any_bytes_are_an_answer(data: bytes, position: int) -> None:
    found = fetched(data, position, [(1, 2)])
    assert found.next_position >= position
    assert len(found.records("t", 0)) == len(found) == len(join_columns([("t", 0, found)]))


@given(answers(), st.data())
def test_the_first_records_and_the_others_are_all(
    answer: tuple[bytes, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    whole, position, aborted = answer
    found = fetched(whole, position, aborted)
    left, taken = found, list[Given]()
    while len(left):
        first, rest = left.split(data.draw(st.integers(1, 4)))
        part = rows(first)
        taken += part
        assert from_columns(join_columns([("t", 0, first)])) == [
            ("t", 0, row[0], row[1], row[3], row[4]) for row in part
        ]
        if len(rest):
            assert first.next_position == part[-1][0] + 1
            assert first.leader_epoch == part[-1][-1]
            assert first.error is None
        left = rest
    assert taken == rows(found)
    assert left.next_position == found.next_position
    assert left.leader_epoch == found.leader_epoch


# Transactions.


def test_the_records_of_an_aborted_transaction_are_left_out_up_to_its_marker() -> None:
    data = b"".join(
        (
            transactional(0, 1, 2),
            transactional(2, 2),
            plain(3),
            marker(4, 1, ABORT),
            transactional(5, 1),
            marker(6, 2, COMMIT),
            marker(7, 1, COMMIT),
        )
    )
    found = fetched(data, 0, [(1, 0)])
    assert offsets(found) == [2, 3, 5]
    assert found.next_position == 8
    assert offsets(fetched(data, 0)) == [0, 1, 2, 3, 5]


def test_a_producer_that_aborts_twice_is_left_out_twice() -> None:
    data = b"".join(
        (
            transactional(0, 1),
            marker(1, 1, ABORT),
            transactional(2, 1),
            marker(3, 1, COMMIT),
            transactional(4, 1),
            marker(5, 1, ABORT),
        )
    )
    assert offsets(fetched(data, 0, [(1, 4), (1, 0)])) == [2]


def test_an_aborted_transaction_at_the_end_leaves_the_position_behind_it() -> None:
    found = fetched(transactional(10, 1, 5), 10, [(1, 10)])
    assert (len(found), found.next_position) == (0, 15)


def test_a_transaction_that_began_before_the_answer_is_left_out_from_its_first_batch() -> None:
    assert offsets(fetched(transactional(10, 1), 10, [(1, 3)])) == []


def test_records_outside_transactions_of_an_aborting_producer_are_given() -> None:
    data = plain(0, producer_id=1, producer_epoch=0, base_sequence=0) + transactional(1, 1)
    assert offsets(fetched(data, 0, [(1, 0)])) == [0]


def test_a_control_batch_that_compaction_emptied_ends_nothing() -> None:
    emptied = batch(
        b"",
        count=0,
        last_offset_delta=0,
        base_offset=1,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=1,
    )
    data = transactional(0, 1) + emptied + transactional(2, 1)
    found = fetched(data, 0, [(1, 0)])
    assert (offsets(found), found.next_position) == ([], 3)


# Places.


def test_a_position_is_behind_what_compaction_took() -> None:
    data = batch(record(1) + record(4), count=2, last_offset_delta=9, base_offset=20)
    assert offsets(fetched(data, 22)) == [24]
    assert fetched(data, 22).next_position == 30
    assert fetched(data, 25).next_position == 30


def test_records_before_the_position_are_left_out_of_each_kind_of_batch() -> None:
    inner = b"".join(entry(index, message(1)) for index in range(3))
    kinds = {
        "plain": plain(5, 3),
        "compressed": batch(compress("lz4", records(3)), count=3, codec=3, base_offset=5),
        "wrapper": wrapper(1, "gzip", inner, offset=7),
        "entries": b"".join(entry(offset, message(0)) for offset in (5, 6, 7)),
    }
    for data in kinds.values():
        assert offsets(fetched(data, 6)) == [6, 7]
        assert offsets(fetched(data, 8)) == []
        assert fetched(data, 8).next_position == 8


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    data = plain(0) + plain(1)
    found = fetched(data[:-1], 0)
    assert (offsets(found), found.next_position, found.error) == ([0], 1, None)
    assert fetched(b"", 7).next_position == 7


def test_a_corrupt_batch_is_an_error_behind_the_records_before_it() -> None:
    data = plain(0, 2) + plain(2, 2)[:-1] + b"!" + plain(4)
    found = fetched(data, 0)
    assert offsets(found) == [0, 1]
    assert found.next_position == 2
    assert isinstance(found.error, CorruptRecordBatchError)
    assert found.error.position >= len(plain(0, 2))
    first, rest = found.split(1)
    assert first.error is None
    assert isinstance(rest.error, CorruptRecordBatchError)


def test_checksums_are_not_looked_at_where_nobody_wants_it() -> None:
    data = plain(0, 2)
    damaged = data[:17] + bytes(4) + data[21:]
    assert isinstance(fetched(damaged, 0).error, RecordBatchError)
    found = fetched(damaged, 0, check_crcs=False)
    assert (offsets(found), found.error) == ([0, 1], None)


def test_what_inflates_to_much_is_read_over_several_fetches() -> None:
    noise = random.Random(7).randbytes(1 << 18)
    many = compress("zstd", record(value=noise + bytes(40 << 20)))
    data = b"".join(batch(many, codec=4, base_offset=offset) for offset in range(4))
    found = fetched(data, 0)
    assert (offsets(found), found.next_position, found.error) == ([0, 1], 2, None)
    found = fetched(data, 2)
    assert (offsets(found), found.next_position, found.error) == ([2, 3], 4, None)


# Records.

RECORD = ConsumerRecord("t", 1, 5, TIMESTAMP, "create_time", b"k", None, [("h", b"x")], 3)


def test_a_record_is_equal_to_one_with_the_same_fields() -> None:
    data = batch(
        record(key=b"k", value=None, headers=[(b"h", b"x")]), base_offset=5, max_timestamp=TIMESTAMP
    )
    (found,) = fetched(data, 0).records("t", 1)
    assert found == RECORD
    assert hash(found) == hash(RECORD)
    assert found != ConsumerRecord("t", 1, 5)
    assert found != ("t", 1, 5)  # type: ignore[comparison-overlap]
    assert copy.copy(found) == found
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - made here
    assert repr(found) == (
        f"ConsumerRecord(topic='t', partition=1, offset=5, timestamp_ms={TIMESTAMP}, "
        "timestamp_type='create_time', key=b'k', value=None, headers=(('h', b'x'),), "
        "leader_epoch=3)"
    )


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        RECORD.offset = 6  # type: ignore[misc]


def test_a_record_gets_another_key_and_value() -> None:
    found = RECORD.with_parts("k", {"a": 1})
    assert (found.key, found.value) == ("k", {"a": 1})
    assert found.with_parts(b"k", None) == RECORD


def test_a_timestamp_type_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="is 'sent', expected no_timestamp_type, create_time or"):
        ConsumerRecord("t", 1, 5, 0, "sent")  # type: ignore[arg-type]


# Columns.


def test_partitions_are_joined_in_order() -> None:
    one, two = fetched(plain(0, 2), 0), fetched(plain(7, 3), 8)
    columns = join_columns([("a", 0, one), ("b", 4, two), ("a", 1, one.split(1)[1])])
    assert len(columns) == 5
    assert columns.topics == ("a", "b")
    assert columns.topic_index.tolist() == [0, 0, 1, 1, 0]
    assert columns.partition.tolist() == [0, 0, 4, 4, 1]
    assert columns.offset.tolist() == [0, 1, 8, 9, 1]
    numbers = (columns.topic_index, columns.partition, columns.offset, columns.timestamp_ms)
    assert [column.dtype for column in numbers] == [np.int32, np.int32, np.int64, np.int64]
    assert not any(column.flags.writeable for column in numbers)


def test_columns_outlive_what_they_came_from() -> None:
    value = join_columns([("a", 0, fetched(plain(0, 2), 0))]).value
    assert value[1].tobytes() == b"value 0value 1"


def test_columns_are_tables_of_arrow_and_polars() -> None:
    data = batch(record(key=None) + record(1, key=b"k", value=None), count=2)
    columns = join_columns([("a", 3, fetched(data, 0))])
    expected = {
        "topic": ["a", "a"],
        "partition": [3, 3],
        "offset": [0, 1],
        "timestamp_ms": [TIMESTAMP, TIMESTAMP],
        "key": [None, b"k"],
        "value": [b"v", None],
    }
    table = pa.table(columns)
    table.validate(full=True)
    assert table.to_pydict() == expected
    assert pl.DataFrame(columns).to_dict(as_series=False) == expected


def test_no_records_are_an_empty_table() -> None:
    for parts in ([], [("a", 0, fetched(b"", 0))]):
        columns = join_columns(parts)
        assert (len(columns), from_columns(columns)) == (0, [])
        assert pa.table(columns).num_rows == 0


def test_columns_go_into_the_batches_of_a_producer_as_they_are() -> None:
    data = batch(record(key=None) + record(1, key=b"k", value=None), count=2)
    columns = join_columns([("a", 3, fetched(data, 0))])
    builder = BatchBuilder(1 << 20)
    assert builder.append_many(columns.timestamp_ms, columns.key, columns.value) == 2
    again = ottla.read(builder.finish())
    assert [(r.key, r.value) for r in again] == [(None, b"v"), (b"k", None)]


def test_joined_columns_are_equal_if_their_rows_are() -> None:
    one, two = fetched(plain(0, 2), 0), fetched(plain(2), 2)
    both = join_columns([("a", 0, one), ("b", 1, two)])
    assert both == join_columns([("a", 0, one), ("b", 1, two)])
    # A topic without a row is none of them.
    assert both == join_columns([("c", 0, fetched(b"", 0)), ("a", 0, one), ("b", 1, two)])
    others: list[list[tuple[str, int, FetchedRecords]]] = [
        [("a", 0, one)],
        [("a", 0, one), ("a", 1, two)],
        [("a", 0, one), ("b", 2, two)],
        [("a", 0, one), ("b", 1, fetched(plain(3), 3))],
        [("a", 0, one), ("b", 1, fetched(batch(record(key=None), base_offset=2), 2))],
        [("a", 0, one), ("b", 1, fetched(batch(record(value=None), base_offset=2), 2))],
    ]
    for other in others:
        assert both != join_columns(other)


def test_joined_columns_say_how_many_there_are() -> None:
    columns = join_columns([("a", 0, fetched(plain(0, 2), 0)), ("b", 0, fetched(plain(0), 0))])
    assert repr(columns) == "<FetchedColumns of 3 records of 2 topics>"


def test_pickled_columns_that_were_changed_are_refused_by_what_is_wrong() -> None:
    columns = join_columns([("a", 0, fetched(plain(0, 2), 0))])
    restore, state = columns.__reduce__()
    assert restore(*state) == columns
    (topics, numbers, key, value) = state

    def changed(topics: Any = topics, numbers: Any = numbers, key: Any = key) -> None:
        with pytest.raises(ValueError, match="not the columns of fetched records: "):
            restore(topics, numbers, key, value)

    changed(topics=[])
    changed(numbers=(numbers[0][:-1], *numbers[1:]))
    changed(numbers=(*numbers[:3], numbers[3] + bytes(8)))
    changed(key=(key[0][:-8], *key[1:]))
    changed(key=(key[0][:8] + b"\xff" * 8 + key[0][16:], *key[1:]))
    changed(key=(key[0], key[1][:-1], key[2]))
    changed(key=(key[0], key[1], b"\2" + key[2][1:]))
    changed(key=(key[0], key[1], key[2][1:]))
