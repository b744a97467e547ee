"""Checking: what each level notices and what it must not, one rule broken at a time."""

import copy
import json
import mmap
import os
import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import ottla
import pytest
from hypothesis import given
from ottla import (
    CorruptRecordBatchError,
    InvalidRecordError,
    LimitExceededError,
    RecordBatchError,
    TruncatedBatchError,
    UnsupportedCompressionError,
)
from records.crafting import (
    CODECS,
    COMPRESSED,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TIMESTAMP,
    TRANSACTIONAL,
    batch,
    compress,
    compressed_batch,
    entry,
    message,
    patched,
    record,
    records,
    varint,
    wrapper,
)
from support.strategies import DrawnRecord, base_offsets, batches_of_records, compressions
from typing_extensions import Buffer

from benches.data import Compression, encode_batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Level = Literal["crc", "decode", "full"]
LEVELS: tuple[Level, ...] = ("crc", "decode", "full")

MARKER = record(key=b"\0\0\0\x01", value=b"\0\0\0\0\0\x07")


def fault(data: bytes, level: Level | None = None) -> RecordBatchError:
    with pytest.raises(RecordBatchError) as caught:
        ottla.check_batches(data, level=level)
    return caught.value


def control(payload: bytes, *, count: int = 1) -> bytes:
    return batch(
        payload,
        count=count,
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=9,
        producer_epoch=2,
    )


# What the levels notice.

# A batch that breaks one rule, the first level that notices, the kind and the record to blame.
BROKEN: dict[str, tuple[Callable[[], bytes], Level, str, int | None]] = {
    "a flipped bit": (lambda: batch(records(2), count=2)[:-1] + b"\1", "crc", "crc-mismatch", None),
    "a size below the header's": (
        lambda: struct.pack(">qiib", 0, 40, 0, 2) + bytes(35),
        "crc",
        "size-too-small",
        None,
    ),
    "a size below any batch's": (
        lambda: struct.pack(">qiib", 0, 13, 0, 2) + bytes(8),
        "crc",
        "size-too-small",
        None,
    ),
    "a magic that was never written": (
        lambda: batch(record())[:16] + b"\x03" + batch(record())[17:],
        "crc",
        "unknown-magic",
        None,
    ),
    "a cut batch": (lambda: batch(record())[:-1], "crc", "truncated-batch", None),
    "a codec that does not exist": (
        lambda: batch(record(), codec=6),
        "decode",
        "unknown-codec",
        None,
    ),
    "a payload its codec refuses": (
        lambda: batch(b"no frame", codec=4),
        "decode",
        "undecodable",
        None,
    ),
    "a negative count": (
        lambda: batch(record(), count=-1, last_offset_delta=0),
        "decode",
        "record-count-negative",
        None,
    ),
    "bytes behind the last record": (
        lambda: batch(record() + b"\0"),
        "decode",
        "trailing-bytes",
        None,
    ),
    "a record that is missing": (
        lambda: batch(records(2), count=3),
        "decode",
        "records-missing",
        2,
    ),
    "a length that leaves the batch": (
        lambda: batch(record(0) + record(1, longer=9), count=2),
        "decode",
        "field-overrun",
        1,
    ),
    "a length that its fields do not fill": (
        lambda: batch(record(0) + record(1, spare=b"\0") + record(2), count=3),
        "decode",
        "record-length-mismatch",
        1,
    ),
    "a negative length": (
        lambda: batch(record(0) + varint(-1) + bytes(9), count=2),
        "decode",
        "field-negative",
        1,
    ),
    "a varint without end": (
        lambda: batch(record(0) + b"\xff" * 9, count=2),
        "decode",
        "varint-too-long",
        1,
    ),
    "a null header key": (
        lambda: batch(
            varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(-1) + varint(-1)
        ),
        "decode",
        "field-negative",
        0,
    ),
    "a legacy value that leaves its record": (
        lambda: patched(entry(0, message(1)), 31, struct.pack(">i", 6)),
        "decode",
        "legacy-overrun",
        None,
    ),
    "a wrapper without a value": (
        lambda: entry(0, message(1, value=None, attributes=1)),
        "decode",
        "wrapper-without-value",
        None,
    ),
    "a wrapper without a record": (
        lambda: wrapper(1, "gzip", b"", offset=0),
        "decode",
        "wrapper-empty",
        None,
    ),
    "a wrapper below its last offset": (
        lambda: wrapper(1, "gzip", entry(3, message(1)), offset=2),
        "decode",
        "wrapper-offset-too-small",
        None,
    ),
    "a wrapper in a wrapper": (
        lambda: wrapper(
            1,
            "gzip",
            entry(0, message(1)) + wrapper(1, "gzip", entry(0, message(1)), offset=1),
            offset=1,
        ),
        "decode",
        "wrapper-nested",
        1,
    ),
    "an inner checksum": (
        lambda: wrapper(
            1, "gzip", entry(0, message(1)) + entry(1, message(1)[:-1] + b"\0"), offset=1
        ),
        "decode",
        "inner-crc-mismatch",
        1,
    ),
    "an inner magic": (
        lambda: wrapper(1, "gzip", entry(0, message(1)) + entry(1, message(0)), offset=1),
        "full",
        "inner-magic-mismatch",
        1,
    ),
    "inner offsets that do not go up": (
        lambda: wrapper(1, "gzip", entry(1, message(1)) + entry(1, message(1)), offset=1),
        "full",
        "offset-delta-out-of-order",
        1,
    ),
    "an offset delta that is not its place's": (
        lambda: batch(record(0) + record(2) + record(2), count=3),
        "full",
        "offset-delta-mismatch",
        1,
    ),
    "a first offset delta that is not 0": (
        lambda: batch(record(1) + record(1), count=2),
        "full",
        "offset-delta-mismatch",
        0,
    ),
    "an offset delta of a thin batch that repeats": (
        lambda: batch(record(1) + record(1), count=2, last_offset_delta=5),
        "full",
        "offset-delta-out-of-order",
        1,
    ),
    "an offset delta of a thin batch that passes the last": (
        lambda: batch(record(1) + record(6), count=2, last_offset_delta=5),
        "full",
        "offset-delta-out-of-order",
        1,
    ),
    "a negative offset delta": (
        lambda: batch(record(-1), count=1, last_offset_delta=5),
        "full",
        "offset-delta-out-of-order",
        0,
    ),
    "a timestamp above the maximum": (
        lambda: batch(
            record(0) + record(1, timestamp_delta=5), count=2, max_timestamp=TIMESTAMP + 4
        ),
        "full",
        "timestamp-above-maximum",
        1,
    ),
    "more records than offsets": (
        lambda: batch(record(0) + record(1), count=2, last_offset_delta=0),
        "full",
        "count-above-offsets",
        None,
    ),
    "a negative last offset delta": (
        lambda: batch(b"", count=0, last_offset_delta=-1),
        "full",
        "last-offset-delta-negative",
        None,
    ),
    "a negative base offset": (
        lambda: batch(record(), base_offset=-1),
        "full",
        "offset-out-of-range",
        None,
    ),
    "a last offset past 64 bits": (
        lambda: batch(record(0), base_offset=2**63 - 1, last_offset_delta=1),
        "full",
        "offset-out-of-range",
        None,
    ),
    "a producer without an epoch": (
        lambda: batch(record(), producer_id=5, producer_epoch=-1, base_sequence=0),
        "full",
        "producer-fields",
        None,
    ),
    "a producer without a sequence": (
        lambda: batch(record(), producer_id=5, producer_epoch=0, base_sequence=-1),
        "full",
        "producer-fields",
        None,
    ),
    "a sequence below -1": (
        lambda: batch(record(), producer_id=5, producer_epoch=0, base_sequence=-2),
        "full",
        "producer-fields",
        None,
    ),
    "a transaction without a producer": (
        lambda: batch(record(), attributes=TRANSACTIONAL),
        "full",
        "transactional-without-producer",
        None,
    ),
    "a control key that is cut": (
        lambda: control(record(key=b"\0\0\0", value=b"\0\0\0\0\0\x07")),
        "full",
        "control-key",
        0,
    ),
    "a control key that is null": (
        lambda: control(record(key=None, value=b"\0\0\0\0\0\x07")),
        "full",
        "control-key",
        0,
    ),
    "a control key of a negative version": (
        lambda: control(record(key=b"\xff\xff\0\x01", value=b"\0\0\0\0\0\x07")),
        "full",
        "control-key",
        0,
    ),
    "a marker with a value that is cut": (
        lambda: control(record(key=b"\0\0\0\x01", value=b"\0\0\0\0\0")),
        "full",
        "control-value",
        0,
    ),
    "a marker of a negative version": (
        lambda: control(record(key=b"\0\0\0\0", value=b"\xff\xff\0\0\0\x07")),
        "full",
        "control-value",
        0,
    ),
    "two markers in a batch": (
        lambda: control(
            MARKER + record(1, key=b"\0\0\0\x01", value=b"\0\0\0\0\0\x07"),
            count=2,
        ),
        "full",
        "control-batch",
        None,
    ),
}

CLASSES: dict[str, type[RecordBatchError]] = {
    "crc-mismatch": CorruptRecordBatchError,
    "inner-crc-mismatch": CorruptRecordBatchError,
    "size-too-small": CorruptRecordBatchError,
    "unknown-magic": CorruptRecordBatchError,
    "truncated-batch": TruncatedBatchError,
    "legacy-overrun": CorruptRecordBatchError,
    "unknown-codec": UnsupportedCompressionError,
    "undecodable": UnsupportedCompressionError,
}

CODES: dict[type[RecordBatchError], int] = {
    CorruptRecordBatchError: 2,
    TruncatedBatchError: 2,
    InvalidRecordError: 87,
    UnsupportedCompressionError: -1,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named_by_the_level_that_knows_it_and_by_those_above(name: str) -> None:
    make, first, kind, record_index = BROKEN[name]
    data = make()
    for level in LEVELS[LEVELS.index(first) :]:
        found = fault(data, level)
        assert type(found) is CLASSES.get(kind, InvalidRecordError)
        assert (found.kind, found.record_index) == (kind, record_index)
        assert found.error_code == CODES[type(found)]
        assert found.position <= len(data)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_not_noticed_below_the_level_that_knows_it(name: str) -> None:
    make, first, _, _ = BROKEN[name]
    data = make()
    for level in LEVELS[: LEVELS.index(first)]:
        assert ottla.check_batches(data, level=level) >= 0


@pytest.mark.parametrize("name", BROKEN)
def test_the_position_of_a_fault_counts_from_the_start_of_the_data(name: str) -> None:
    make, _, _, record_index = BROKEN[name]
    before = batch(records(2), count=2) + compressed_batch(records(2), "lz4", count=2)
    alone, behind = fault(make()), fault(before + make())
    assert behind.position == alone.position + len(before)
    assert (behind.kind, behind.record_index) == (alone.kind, record_index)
    assert f"(position {behind.position})" in str(behind)


@pytest.mark.parametrize("name", [name for name in BROKEN if BROKEN[name][1] == "full"])
def test_what_only_the_full_level_refuses_is_read_as_a_consumer_reads_it(name: str) -> None:
    data = BROKEN[name][0]()
    (head,) = ottla.read_batches(data)
    head.verify()
    count = head.record_count
    assert len(list(head.records())) == (2 if count is None else count)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_records_behind_a_codec_are_held_to_the_same_rules(codec: str) -> None:
    found = fault(compressed_batch(record(0) + record(2), codec, count=2))
    assert (found.kind, found.record_index, found.position) == ("offset-delta-mismatch", 1, 0)
    found = fault(compressed_batch(record(0) + record(1, longer=1), codec, count=2))
    assert (found.kind, found.record_index, found.position) == ("field-overrun", 1, 61)


def test_the_position_of_a_record_that_does_not_parse_is_its_own() -> None:
    first = record(0)
    found = fault(batch(first + record(1, longer=9), count=2))
    assert found.position == 61 + len(first)


def test_zstd_in_a_wrapper_has_the_code_of_a_record_against_the_rules() -> None:
    found = fault(wrapper(1, "zstd", entry(0, message(1)), offset=0))
    assert (type(found), found.kind) == (UnsupportedCompressionError, "unknown-codec")
    assert found.error_code == 87


def test_the_full_level_is_the_default() -> None:
    data = batch(record(0) + record(2), count=2)
    assert fault(data).kind == "offset-delta-mismatch"
    assert ottla.check_batches(data, level="decode") == 2


def test_the_crc_level_counts_what_headers_say() -> None:
    data = batch(b"not a record", count=5) + entry(5, message(1)) + batch(b"", count=0)
    assert ottla.check_batches(data, level="crc") == 6


@pytest.mark.parametrize("codec", CODECS)
def test_the_crc_level_never_looks_inside(codec: str) -> None:
    data = batch(b"\x80" * 40, count=1000, codec=CODECS.index(codec))
    assert ottla.check_batches(data, level="crc") == 1000
    assert fault(data, "decode").kind in {"undecodable", "varint-too-long"}


# What is right.


RIGHT: dict[str, tuple[Callable[[], bytes], int]] = {
    "nothing": (lambda: b"", 0),
    "dense offsets": (lambda: batch(records(5), count=5), 5),
    "a thin batch": (lambda: batch(record(1) + record(4), count=2, last_offset_delta=6), 2),
    "a thin batch of one record at its end": (lambda: batch(record(6), last_offset_delta=6), 1),
    "a thin compressed batch": (
        lambda: batch(
            compress("zstd", record(1) + record(4)), count=2, last_offset_delta=6, codec=4
        ),
        2,
    ),
    "an emptied batch": (lambda: batch(b"", count=0, last_offset_delta=6), 0),
    "timestamps in any order below the maximum": (
        lambda: batch(
            record(0) + record(1, timestamp_delta=-50) + record(2, timestamp_delta=50),
            count=3,
            max_timestamp=TIMESTAMP + 50,
        ),
        3,
    ),
    "a maximum above every timestamp, as the cleaner leaves it": (
        lambda: batch(record(), max_timestamp=TIMESTAMP + 999),
        1,
    ),
    "timestamps of LogAppendTime above the maximum": (
        lambda: batch(
            record(timestamp_delta=99), attributes=LOG_APPEND_TIME, max_timestamp=TIMESTAMP
        ),
        1,
    ),
    "deltas that wrap, as Kafka writes them between the ends of 64 bits": (
        lambda: batch(
            record(0) + record(1, timestamp_delta=-1),
            count=2,
            base_timestamp=-(2**63),
            max_timestamp=2**63 - 1,
        ),
        2,
    ),
    "no timestamp": (lambda: batch(record(), base_timestamp=-1, max_timestamp=-1), 1),
    "a delete horizon above the maximum": (
        lambda: batch(
            record(timestamp_delta=-10),
            attributes=DELETE_HORIZON,
            base_timestamp=TIMESTAMP + 10,
            max_timestamp=TIMESTAMP,
        ),
        1,
    ),
    "a transaction": (
        lambda: batch(
            record(),
            attributes=TRANSACTIONAL,
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
        ),
        1,
    ),
    "a sequence that wraps": (
        lambda: batch(
            records(2), count=2, producer_id=1, producer_epoch=32767, base_sequence=2**31 - 1
        ),
        2,
    ),
    "a sequence of 0 without a producer, as some clients leave it": (
        lambda: batch(record(), base_sequence=0, producer_epoch=0),
        1,
    ),
    "a marker": (lambda: control(MARKER), 1),
    "a control record of a type that is not known": (
        lambda: control(record(key=b"\0\0\0\x63", value=None)),
        1,
    ),
    "a leader change without a producer": (
        lambda: batch(record(key=b"\0\0\0\x02", value=b"anything"), attributes=CONTROL),
        1,
    ),
    "control records of a raft snapshot, several in a batch": (
        lambda: batch(
            record(key=b"\0\0\0\x03") + record(1, key=b"\0\0\0\x04"), count=2, attributes=CONTROL
        ),
        2,
    ),
    "an emptied control batch": (lambda: control(b"", count=0)[:0], 0),
    "the highest offset": (lambda: batch(record(), base_offset=2**63 - 1), 1),
    "the highest epoch of a leader": (lambda: batch(record(), partition_leader_epoch=2**31 - 1), 1),
    "a wrapper with gaps": (
        lambda: wrapper(1, "gzip", entry(0, message(1)) + entry(7, message(1)), offset=107),
        2,
    ),
    "all magics": (
        lambda: (
            entry(0, message(0))
            + wrapper(0, "lz4", entry(1, message(0)) + entry(2, message(0)), offset=2)
            + entry(3, message(1))
            + wrapper(1, "snappy", entry(0, message(1)) + entry(1, message(1)), offset=5)
            + batch(records(2), count=2, base_offset=6)
            + compressed_batch(records(2), "zstd", count=2)
        ),
        10,
    ),
}


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("name", RIGHT)
def test_what_obeys_every_rule_is_accepted(name: str, level: Level) -> None:
    make, count = RIGHT[name]
    assert ottla.check_batches(make(), level=level) == count


@given(batches_of_records(), compressions(), base_offsets())
def test_every_batch_that_is_written_rightly_is_accepted(
    drawn: list[DrawnRecord], compression: Compression, base_offset: int
) -> None:
    plain = [(r.timestamp, r.key, r.value, r.headers) for r in drawn]
    data = encode_batch(plain, base_offset=base_offset, compression=compression)
    for level in LEVELS:
        assert ottla.check_batches(data, level=level) == len(drawn)


# Tails.


@pytest.mark.parametrize("level", LEVELS)
def test_zeros_to_the_end_are_neither_a_cut_nor_damage(level: Level) -> None:
    good = batch(records(2), count=2)
    for size in (1, 11, 12, 16, 17, 61, 4096):
        assert ottla.check_batches(good + bytes(size), level=level) == 2
    assert ottla.check_batches(bytes(5000), level=level) == 0


@pytest.mark.parametrize("size", [12, 17, 100])
def test_one_byte_among_the_zeros_is_damage(size: int) -> None:
    found = fault(batch(record()) + bytes(size) + b"\1" + bytes(20))
    assert (found.kind, found.position) == ("size-too-small", len(batch(record())))


@pytest.mark.parametrize("level", LEVELS)
def test_a_cut_batch_is_told_apart_from_damage(level: Level) -> None:
    good = batch(records(2), count=2)
    # The base offset is 0: fewer bytes cannot be told from the zeros of a preallocated file.
    first = next(index for index, byte in enumerate(good) if byte) + 1
    for cut in range(first, len(good)):
        found = fault(good + good[:cut], level)
        assert type(found) is TruncatedBatchError
        assert (found.kind, found.position) == ("truncated-batch", len(good))


def test_a_cut_batch_says_how_much_is_missing() -> None:
    good = batch(records(2), count=2)
    found = fault(good[:50])
    assert str(found) == (
        f"the buffer ends inside a batch: {len(good)} bytes needed, 50 bytes left (position 0)"
    )


# Errors as objects.


@pytest.mark.parametrize("name", ["a flipped bit", "an inner checksum", "two markers in a batch"])
def test_errors_can_be_pickled_and_copied(name: str) -> None:
    found = fault(BROKEN[name][0]())
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found)):  # noqa: S301
        assert type(again) is type(found)
        assert again.__dict__ == found.__dict__
        assert str(again) == str(found)


def test_errors_are_value_errors_of_one_tree() -> None:
    found = fault(b"x" * 40)
    assert isinstance(found, ottla.OttlaError)
    assert isinstance(found, ValueError)


def test_a_message_says_what_was_found_and_what_was_expected() -> None:
    messages = {name: str(fault(BROKEN[name][0]())) for name in BROKEN}
    assert messages["an offset delta that is not its place's"] == (
        "record 1: offset delta 2, expected 1 (position 0)"
    )
    assert messages["a magic that was never written"] == "magic 3, expected 0, 1 or 2 (position 0)"
    assert messages["more records than offsets"] == (
        "2 records, but the last offset delta allows at most 1 (position 57)"
    )


# What goes in.


def mapped(data: bytes, directory: Path) -> mmap.mmap:
    path = directory / "segment.log"
    path.write_bytes(data)
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def test_every_bytes_like_object_is_taken(tmp_path: Path) -> None:
    data = batch(records(3), count=3)
    array = np.frombuffer(data, np.uint8)
    buffers: list[Buffer | NDArray[Any]] = [
        data,
        bytearray(data),
        memoryview(data),
        memoryview(b"x" + data)[1:],
        mapped(data, tmp_path),
        array,
        array.view(np.int8),
        np.repeat(array, 2)[::2],
    ]
    for given_as in buffers:
        assert ottla.check_batches(given_as) == 3
        assert len(ottla.read_columns(given_as)) == 3
        assert [read.offset for read in ottla.read(given_as)] == [0, 1, 2]


CALLS: dict[str, Callable[..., object]] = {
    "check_batches": ottla.check_batches,
    "read_batches": ottla.read_batches,
    "read_columns": ottla.read_columns,
    "read": lambda data: list(ottla.read(data)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrong", [None, 5, [1, 2], object()])
def test_what_holds_no_bytes_is_a_type_error(call: str, wrong: object) -> None:
    with pytest.raises(TypeError, match=f"bytes-like object, found {type(wrong).__name__}$"):
        CALLS[call](wrong)


@pytest.mark.parametrize("call", CALLS)
def test_text_is_a_type_error_that_says_what_to_do(call: str) -> None:
    with pytest.raises(TypeError, match="found str; encode it first"):
        CALLS[call]("text")


def test_a_level_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"crc.*decode.*full.*deep"):
        ottla.check_batches(b"", level="deep")  # type: ignore[arg-type]


# Bounds.

MAX_BATCH_BYTES = 64 << 20


def of_size(size: int, *, last_offset_delta: int = 0) -> bytes:
    """A batch of so many bytes, one record in it."""
    around = len(batch(record(value=bytes(size - 100)))) - (size - 100)
    data = batch(record(value=bytes(size - around)), last_offset_delta=last_offset_delta)
    assert len(data) == size
    return data


def test_a_batch_of_more_than_64_mib_is_refused() -> None:
    # A thin batch: the rules judge it, not the kernels.
    found = fault(of_size(MAX_BATCH_BYTES + 1, last_offset_delta=1), "decode")
    assert type(found) is LimitExceededError
    assert (found.kind, found.error_code) == ("batch-too-large", 10)


def test_an_ordinary_batch_of_more_than_64_mib_is_refused_too() -> None:
    assert fault(of_size(MAX_BATCH_BYTES + 1), "decode").kind == "batch-too-large"


def test_a_batch_of_64_mib_is_accepted() -> None:
    assert ottla.check_batches(of_size(MAX_BATCH_BYTES, last_offset_delta=1)) == 1
    assert ottla.check_batches(of_size(MAX_BATCH_BYTES)) == 1


# The kernels.

_PROGRAM = """
import sys, json, ottla
from ottla._engine import kernel_level
from records.test_checking import corpus
if sys.argv[1] != kernel_level():
    sys.exit(75)
answers = []

for data in corpus():
    for level in ("crc", "decode", "full"):
        try:
            answers.append(ottla.check_batches(data, level=level))
        except ottla.RecordBatchError as error:
            answers.append([error.kind, error.position, error.record_index])
    try:
        answers.append([column.tolist() for column in ottla.read_columns(data).numbers()])
    except ottla.RecordBatchError as error:
        answers.append([error.kind, error.position, error.record_index])
json.dump(answers, sys.stdout)
"""


def corpus() -> list[bytes]:
    """Logs of all shapes and mutants of them, the same every time."""
    chance = random.Random(20)
    logs = [make() for make, *_ in BROKEN.values()] + [make() for make, _ in RIGHT.values()]
    for count in (1, 2, 7, 8, 9, 33, 100):
        for size in (0, 1, 55, 56, 63, 64, 65, 127, 128, 200, 1000, 9000):
            drawn = [
                (
                    TIMESTAMP + index * chance.randrange(1, 20_000),
                    chance.choice([None, b"", b"key", bytes(chance.randrange(70))]),
                    bytes(chance.randrange(256) for _ in range(min(size, 70)))
                    + bytes(max(size - 70, 0)),
                    (("h", b"x" * chance.randrange(5)),) * chance.choice([0, 0, 0, 1, 3]),
                )
                for index in range(count)
            ]
            codec = chance.choice(CODECS_OF_CORPUS)
            logs.append(encode_batch(drawn, base_offset=chance.randrange(2**40), compression=codec))
    whole = logs[-40:]
    logs.append(b"".join(whole))
    for _ in range(300):
        mutant = bytearray(chance.choice(whole))
        for _ in range(chance.choice([1, 1, 2, 5])):
            position = chance.randrange(21, len(mutant))
            mutant[position] = chance.choice([0, 0x7F, 0x80, 0xFF, mutant[position] ^ 1])
        data = bytes(mutant)
        logs.append(patched(data, 21, data[21:22]) if chance.random() < 0.8 else data)
    return logs


CODECS_OF_CORPUS: tuple[Compression, ...] = (
    "none",
    "none",
    "none",
    "gzip",
    "snappy",
    "lz4",
    "zstd",
)


def answers_of(kernels: str, root: Path) -> bytes | None:
    """What the engine says of the corpus with these kernels; `None` where there are none."""
    paths = os.pathsep.join((str(root), str(root / "tests"), *sys.path))
    environment = {**os.environ, "OTTLA_KERNELS": kernels, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, kernels], env=environment, capture_output=True, check=False
    )
    assert done.returncode in {0, 75}, done.stderr.decode()
    return done.stdout if done.returncode == 0 else None


@pytest.fixture(scope="module")
def portable_answers(root: Path) -> bytes:
    """What the portable kernels say, which every machine has."""
    answers = answers_of("portable", root)
    assert answers
    return answers


def test_the_corpus_of_the_kernels_breaks_every_kind_of_rule(portable_answers: bytes) -> None:
    faults = [answer[0] for answer in json.loads(portable_answers) if isinstance(answer, list)]
    assert len({kind for kind in faults if isinstance(kind, str)}) > 20


@pytest.mark.parametrize("kernels", ["sse42", "bmi2", "avx512", "arm64"])
def test_kernels_give_the_results_of_the_portable_ones(
    kernels: str, root: Path, portable_answers: bytes
) -> None:
    answers = answers_of(kernels, root)
    if answers is None:
        pytest.skip(f"this CPU has no {kernels}")
    assert answers == portable_answers


# What each level needs of a CPU, as Linux names it; a foreign architecture has none of them.
FLAGS = {
    "portable": set[str](),
    "arm64": {"crc32"},
    "sse42": {"sse4_2", "pclmulqdq"},
    "bmi2": {"sse4_2", "pclmulqdq", "bmi1", "bmi2", "abm", "popcnt"},
    "avx512": {"bmi2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "vpclmulqdq"},
}
CPUINFO = Path("/proc/cpuinfo")


@pytest.mark.skipif(not CPUINFO.exists(), reason="needs /proc/cpuinfo: Linux alone")
@pytest.mark.parametrize("asked", FLAGS)
def test_the_level_that_is_reported_is_one_that_this_cpu_runs(asked: str) -> None:
    lines = [line.partition(":") for line in CPUINFO.read_text().splitlines()]
    has = {
        flag
        for name, _, flags in lines
        if name.strip() in {"flags", "Features"}
        for flag in flags.split()
    }
    done = subprocess.run(
        [sys.executable, "-c", "from ottla._engine import kernel_level; print(kernel_level())"],
        env={**os.environ, "OTTLA_KERNELS": asked, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    reported = done.stdout.strip()
    assert has >= FLAGS[reported]
    if has >= FLAGS[asked]:
        assert reported == asked


def test_a_kernel_that_does_not_exist_is_refused_on_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ottla"],
        env={**os.environ, "OTTLA_KERNELS": "fast", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"OTTLA_KERNELS is portable, sse42, bmi2, avx512 or arm64, not 'fast'" in done.stderr
