"""Reading batch by batch and record by record: what Kafka's consumer reads, and what it refuses."""

import gzip
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame
import ottla
import pytest
import zstandard
from hypothesis import given
from ottla import (
    CorruptRecordBatchError,
    InvalidRecordError,
    RecordBatchError,
    UnsupportedCompressionError,
)
from ottla._engine import bare_inflate
from records.crafting import (
    CODECS,
    COMPRESSED,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TIMESTAMP,
    TRANSACTIONAL,
    XERIAL_HEADER,
    batch,
    compress,
    compressed_batch,
    entry,
    message,
    patched,
    raw_snappy,
    record,
    records,
    varint,
    with_old_lz4_checksum,
    wrapper,
    xerial,
    xxh32,
)
from support.strategies import DrawnRecord, base_offsets, batches_of_records, compressions

from benches.data import Compression, encode_batch

GOLDEN = Path(__file__).parents[1] / "golden"
HELLO = b"hello hello hello hello"

Plain = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text())


def only(data: bytes) -> ottla.RecordBatch:
    (found,) = ottla.read_batches(data)
    return found


def plain(data: bytes) -> list[Plain]:
    """Every record of every batch, checksums verified, control records too."""
    return [
        (r.offset, r.timestamp, r.key, r.value, r.headers) for r in ottla.read(data, control=True)
    ]


def values(data: bytes) -> list[bytes | None]:
    return [read.value for read in ottla.read(data, control=True)]


def offsets(data: bytes) -> list[int]:
    return [read.offset for read in ottla.read(data, control=True)]


def fault(data: bytes) -> RecordBatchError:
    """What reading everything raises."""
    with pytest.raises(RecordBatchError) as caught:
        plain(data)
    return caught.value


def seen(data: bytes) -> int:
    """How many batches come before the end, or before the framing is refused."""
    count = 0
    for _ in ottla.read_batches(data):
        count += 1
    return count


# Golden bytes: tests/golden tells their stories.


def test_two_golden_records_of_an_idempotent_producer_are_read() -> None:
    data = golden("two-records")
    head = only(data)
    assert (head.position, head.size, head.magic) == (0, 85, 2)
    assert (head.base_offset, head.last_offset, head.record_count) == (0, 1, 2)
    assert (head.producer_id, head.producer_epoch) == (5, 1)
    assert (head.base_sequence, head.last_sequence) == (10, 11)
    assert (head.base_timestamp, head.max_timestamp) == (TIMESTAMP, TIMESTAMP + 7)
    assert (head.partition_leader_epoch, head.crc, head.attributes) == (-1, 0xA78B7650, 0)
    assert (head.compression, head.timestamp_type) == ("none", "create_time")
    assert not head.is_transactional
    assert not head.is_control
    assert head.delete_horizon_ms is None
    assert plain(data) == [
        (0, TIMESTAMP, b"k", b"value", [("h", b"x")]),
        (1, TIMESTAMP + 7, None, None, []),
    ]
    assert [read.sequence for read in head.records()] == [10, 11]
    assert ottla.check_batches(data) == 2


def test_a_golden_record_of_magic_1_is_read() -> None:
    data = golden("magic-1-record")
    head = only(data)
    assert (head.magic, head.base_offset, head.last_offset) == (1, 0, 0)
    assert (head.crc, head.record_count) == (0x10580ED5, None)
    assert (head.timestamp_type, head.max_timestamp) == ("create_time", TIMESTAMP)
    assert plain(data) == [(0, TIMESTAMP, b"k", b"value", [])]
    assert ottla.check_batches(data) == 1


def test_a_golden_record_of_magic_0_is_read_without_a_timestamp() -> None:
    data = golden("magic-0-record")
    head = only(data)
    assert (head.magic, head.crc) == (0, 0x8FAA5588)
    assert (head.timestamp_type, head.max_timestamp) == ("no_timestamp_type", -1)
    assert plain(data) == [(0, -1, b"k", b"value", [])]
    assert ottla.check_batches(data) == 1


def test_a_legacy_batch_reads_as_having_no_producer_and_no_leader() -> None:
    head = only(golden("magic-1-record"))
    assert head.producer_id == head.producer_epoch == head.base_sequence == -1
    assert head.last_sequence == head.partition_leader_epoch == -1
    assert not head.is_transactional
    assert not head.is_control
    assert head.delete_horizon_ms is None
    (read,) = head.records()
    assert (read.sequence, read.control, read.headers) == (-1, None, [])


def test_a_golden_commit_marker_is_read() -> None:
    data = golden("commit-marker")
    head = only(data)
    assert head.is_control
    assert head.is_transactional
    assert (head.base_offset, head.size, head.partition_leader_epoch) == (42, 78, 3)
    assert (head.producer_id, head.producer_epoch) == (9, 2)
    assert (head.base_sequence, head.last_sequence) == (-1, -1)
    (marker,) = head.records()
    assert (marker.offset, marker.timestamp) == (42, TIMESTAMP)
    assert (marker.control, marker.coordinator_epoch, marker.sequence) == ("COMMIT", 7, -1)
    assert ottla.check_batches(data) == 1


def test_a_golden_emptied_batch_keeps_its_offsets_and_sequences() -> None:
    data = golden("emptied-batch")
    head = only(data)
    assert (head.base_offset, head.last_offset, head.record_count) == (100, 104, 0)
    assert (head.base_sequence, head.last_sequence) == (10, 14)
    assert (head.base_timestamp, head.max_timestamp) == (-1, TIMESTAMP)
    assert plain(data) == []
    assert ottla.check_batches(data) == 0


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_golden_payload_inflates_to_what_was_compressed(codec: str) -> None:
    data = batch(golden(f"payload-{codec}"), codec=CODECS.index(codec))
    assert bare_inflate(data) == len(HELLO)
    # The text is no record: refused as the same bytes are without a codec, it shows the bytes.
    refused, expected = fault(data), fault(batch(HELLO))
    assert (refused.kind, str(refused)) == (expected.kind, str(expected))


def test_the_golden_lz4_payload_of_magic_0_is_for_magic_0_alone() -> None:
    quirk = golden("payload-lz4-magic-0")
    assert with_old_lz4_checksum(golden("payload-lz4")) == quirk
    assert fault(batch(quirk, codec=3)).kind == "undecodable"
    assert bare_inflate(entry(0, message(0, key=None, value=quirk, attributes=3))) == len(HELLO)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.hex")), ids=lambda path: path.stem)
def test_golden_bytes_have_a_story(path: Path) -> None:
    assert path.with_suffix(".md").read_text().startswith("# ")


# The envelope, as Kafka's in-memory reader has it (`record-batch.md` §1.1).


@pytest.mark.parametrize("size", range(1, 12))
def test_fewer_than_12_bytes_after_a_batch_are_left_alone(size: int) -> None:
    assert seen(batch(record()) + b"\xff" * size) == 1


@pytest.mark.parametrize("declared", [-(2**31), -1, 0, 13])
def test_a_size_below_14_is_refused_even_where_the_rest_is_missing(declared: int) -> None:
    tail = struct.pack(">qi", 1, declared)
    iterator = ottla.read_batches(batch(record()) + tail)
    assert next(iterator).base_offset == 0
    with pytest.raises(CorruptRecordBatchError) as caught:
        next(iterator)
    assert (caught.value.kind, caught.value.error_code) == ("size-too-small", 2)
    assert caught.value.position == len(batch(record()))
    assert list(iterator) == []


@pytest.mark.parametrize("left", range(12, 17))
def test_a_batch_cut_before_its_magic_ends_the_walk(left: int) -> None:
    good = batch(record())
    assert seen(good + good[:left]) == 1


@pytest.mark.parametrize("magic", [-128, -1, 3, 127])
def test_a_magic_kafka_never_wrote_is_refused(magic: int) -> None:
    good = batch(record())
    odd = good[:16] + struct.pack(">b", magic) + good[17:]
    refused = fault(good + odd)
    assert isinstance(refused, CorruptRecordBatchError)
    assert (refused.kind, refused.error_code) == ("unknown-magic", 2)
    assert refused.position == len(good)


def test_an_unknown_magic_is_refused_before_a_cut_is_noticed() -> None:
    assert fault(struct.pack(">qiib", 0, 5000, 0, 9)).kind == "unknown-magic"


@pytest.mark.parametrize("declared", [2**31 - 12, 2**31 - 1])
def test_a_size_that_overflows_with_its_envelope_is_refused(declared: int) -> None:
    assert fault(struct.pack(">qiib", 0, declared, 0, 2)).kind == "size-too-large"


def test_the_largest_size_that_does_not_overflow_is_a_cut_batch() -> None:
    assert seen(struct.pack(">qiib", 0, 2**31 - 13, 0, 2)) == 0


def test_a_batch_that_the_data_cuts_is_left_out() -> None:
    good = batch(records(3), count=3)
    counts = {seen(good + good[:cut]) for cut in range(len(good))}
    assert counts == {1}


def test_no_bytes_are_no_batches() -> None:
    assert list(ottla.read_batches(b"")) == []
    assert list(ottla.read(b"")) == []
    assert ottla.check_batches(b"") == 0
    assert len(ottla.read_columns(b"")) == 0


def test_batches_of_all_magics_follow_one_another() -> None:
    data = golden("magic-0-record") + golden("magic-1-record") + golden("two-records")
    found = list(ottla.read_batches(data))
    assert [(head.magic, head.position, head.size) for head in found] == [
        (0, 0, 32),
        (1, 32, 40),
        (2, 72, 85),
    ]
    assert values(data) == [b"value", b"value", b"value", None]


@pytest.mark.parametrize("total", range(26, 61))
def test_a_magic_2_batch_without_room_for_its_header_is_refused(total: int) -> None:
    short = batch(b"")[:total]
    short = short[:8] + struct.pack(">i", total - 12) + short[12:]
    refused = fault(short)
    assert isinstance(refused, CorruptRecordBatchError)
    assert (refused.kind, refused.error_code) == ("size-too-small", 2)


def test_a_batch_that_fails_does_not_stop_the_walk() -> None:
    good = batch(records(2), count=2)
    damaged = good[:70] + bytes([good[70] ^ 1]) + good[71:]
    first, second, third = ottla.read_batches(good + damaged + good)
    first.verify()
    with pytest.raises(CorruptRecordBatchError):
        second.verify()
    third.verify()
    assert len(list(third.records())) == 2


# Magic 0 and 1 (`record-batch.md` §2).


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_null_and_empty_differ_in_a_legacy_record(
    magic: int, key: bytes | None, value: bytes | None
) -> None:
    data = entry(4, message(magic, key=key, value=value))
    timestamp = TIMESTAMP if magic else -1
    assert plain(data) == [(4, timestamp, key, value, [])]


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_of_a_legacy_record_is_null(length: int) -> None:
    data = patched(
        entry(0, message(1, key=None, value=None)), 26, struct.pack(">ii", length, length)
    )
    assert plain(data) == [(0, TIMESTAMP, None, None, [])]


def test_bytes_behind_the_value_of_a_legacy_record_are_ignored() -> None:
    data = entry(0, message(1, spare=b"what a later version adds"))
    assert plain(data) == [(0, TIMESTAMP, b"k", b"value", [])]
    assert ottla.check_batches(data) == 1


def test_unknown_attribute_bits_of_a_legacy_record_are_ignored() -> None:
    assert values(entry(0, message(1, attributes=0xF0))) == [b"value"]
    assert only(entry(0, message(0, attributes=LOG_APPEND_TIME))).timestamp_type == (
        "no_timestamp_type"
    )


@pytest.mark.parametrize("position", [26, 31])
def test_a_length_that_leaves_a_legacy_record_is_refused(position: int) -> None:
    data = patched(entry(0, message(1)), position, struct.pack(">i", 1000))
    assert fault(data).kind in {"legacy-overrun", "legacy-too-short"}


@pytest.mark.parametrize("size", range(14, 22))
def test_a_magic_1_body_without_room_for_its_fields_is_refused(size: int) -> None:
    covered = (bytes([1, 0]) + struct.pack(">qi", TIMESTAMP, -1) + bytes(8))[: size - 4]
    data = entry(0, struct.pack(">I", zlib.crc32(covered)) + covered)
    assert fault(data).kind == "legacy-too-short"


def test_an_own_timestamp_type_of_a_plain_magic_1_record_is_kept() -> None:
    data = entry(3, message(1, attributes=LOG_APPEND_TIME, timestamp=77))
    assert only(data).timestamp_type == "log_append_time"
    assert plain(data) == [(3, 77, b"k", b"value", [])]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_flipped_bit_of_a_legacy_record_is_a_wrong_checksum(magic: int) -> None:
    data = entry(0, message(magic))
    damaged = data[:-1] + bytes([data[-1] ^ 4])
    refused = fault(damaged)
    assert (type(refused), refused.kind) == (CorruptRecordBatchError, "crc-mismatch")


# Wrappers (`record-batch.md` §2.1).


def inner(magic: int, given_offsets: list[int]) -> bytes:
    return b"".join(
        entry(offset, message(magic, value=b"value %d" % index, timestamp=TIMESTAMP + index))
        for index, offset in enumerate(given_offsets)
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_inner_offsets_of_magic_0_are_absolute(codec: str) -> None:
    data = wrapper(0, codec, inner(0, [7, 9, 12]), offset=12)
    head = only(data)
    assert (head.base_offset, head.last_offset, head.compression) == (7, 12, codec)
    assert [(o, t, v) for o, t, _, v, _ in plain(data)] == [
        (7, -1, b"value 0"),
        (9, -1, b"value 1"),
        (12, -1, b"value 2"),
    ]
    assert ottla.check_batches(data) == 3


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_inner_offsets_of_magic_1_count_back_from_the_wrappers(codec: str) -> None:
    data = wrapper(1, codec, inner(1, [0, 1, 2]), offset=102)
    assert only(data).base_offset == 100
    assert [(o, t) for o, t, *_ in plain(data)] == [
        (100, TIMESTAMP),
        (101, TIMESTAMP + 1),
        (102, TIMESTAMP + 2),
    ]


def test_a_compacted_wrapper_of_magic_1_keeps_the_gaps_between_its_offsets() -> None:
    assert offsets(wrapper(1, "gzip", inner(1, [0, 4, 5]), offset=105)) == [100, 104, 105]
    # The cleaner took the first records: the inner offsets no longer begin at 0.
    assert offsets(wrapper(1, "gzip", inner(1, [3, 5]), offset=105)) == [103, 105]


def test_a_wrapper_at_offset_0_counts_from_0_as_old_librdkafka_wrote_it() -> None:
    assert offsets(wrapper(1, "gzip", inner(1, [0, 1, 2]), offset=0)) == [0, 1, 2]


def test_a_wrapper_below_its_last_inner_offset_is_refused() -> None:
    refused = fault(wrapper(1, "gzip", inner(1, [0, 1, 2]), offset=1))
    assert isinstance(refused, InvalidRecordError)
    assert (refused.kind, refused.error_code) == ("wrapper-offset-too-small", 87)


def test_log_append_time_of_a_wrapper_is_the_time_of_every_record() -> None:
    data = wrapper(
        1, "gzip", inner(1, [0, 1]), offset=1, attributes=LOG_APPEND_TIME, timestamp=TIMESTAMP + 50
    )
    assert only(data).timestamp_type == "log_append_time"
    assert [t for _, t, *_ in plain(data)] == [TIMESTAMP + 50] * 2


def test_the_last_entry_of_a_wrapper_may_be_cut() -> None:
    whole = inner(1, [0, 1, 2])
    one = len(whole) // 3
    for cut in range(2 * one, 3 * one):
        assert values(wrapper(1, "gzip", whole[:cut], offset=1)) == [b"value 0", b"value 1"]


def test_a_wrapper_without_an_entry_is_refused() -> None:
    for entries in (b"", inner(1, [0])[:-1], b"\0" * 11):
        refused = fault(wrapper(1, "gzip", entries, offset=0))
        assert (type(refused), refused.kind) == (InvalidRecordError, "wrapper-empty")


def test_a_wrapper_without_a_value_is_refused() -> None:
    refused = fault(entry(0, message(1, key=None, value=None, attributes=1)))
    assert (type(refused), refused.kind) == (InvalidRecordError, "wrapper-without-value")


def test_an_inner_entry_below_14_bytes_is_corrupt() -> None:
    refused = fault(wrapper(1, "gzip", inner(1, [0]) + entry(1, b"x" * 13), offset=1))
    assert (type(refused), refused.kind) == (CorruptRecordBatchError, "size-too-small")


def test_an_inner_record_with_a_wrong_checksum_is_corrupt_and_named() -> None:
    entries = bytearray(inner(1, [0, 1, 2]))
    entries[len(entries) // 3 + 12] ^= 1
    refused = fault(wrapper(1, "gzip", bytes(entries), offset=2))
    assert (type(refused), refused.kind) == (CorruptRecordBatchError, "inner-crc-mismatch")
    assert refused.record_index == 1


def test_a_wrapper_inside_a_wrapper_is_refused() -> None:
    nested = wrapper(1, "gzip", inner(1, [0]), offset=0)
    refused = fault(wrapper(1, "gzip", nested, offset=0))
    assert (type(refused), refused.kind) == (InvalidRecordError, "wrapper-nested")
    assert refused.record_index == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_came_with_magic_2(magic: int) -> None:
    refused = fault(wrapper(magic, "zstd", inner(magic, [0]), offset=0))
    assert isinstance(refused, UnsupportedCompressionError)
    assert (refused.kind, refused.error_code) == ("unknown-codec", 87)


def test_a_key_of_a_wrapper_is_stepped_over() -> None:
    assert values(wrapper(1, "snappy", inner(1, [0]), offset=0, key=b"key")) == [b"value 0"]


# Header flags of magic 2 (`record-batch.md` §3).


def test_log_append_time_is_the_time_of_every_record() -> None:
    data = batch(records(3), count=3, attributes=LOG_APPEND_TIME, max_timestamp=TIMESTAMP + 900)
    assert only(data).timestamp_type == "log_append_time"
    assert [t for _, t, *_ in plain(data)] == [TIMESTAMP + 900] * 3


def test_a_delete_horizon_stands_in_the_base_timestamp_and_deltas_count_from_it() -> None:
    horizon = TIMESTAMP + 86_400_000
    payload = record(timestamp_delta=-86_400_000, value=None)
    data = batch(
        payload, attributes=DELETE_HORIZON, base_timestamp=horizon, max_timestamp=TIMESTAMP
    )
    head = only(data)
    assert head.delete_horizon_ms == head.base_timestamp == horizon
    assert [t for _, t, *_ in plain(data)] == [TIMESTAMP]
    assert ottla.check_batches(data) == 1


def test_unknown_attribute_bits_are_kept_and_change_nothing() -> None:
    data = batch(records(2), count=2, attributes=0xFF80)
    head = only(data)
    assert head.attributes == 0xFF80
    assert (head.compression, head.is_control, head.is_transactional) == ("none", False, False)
    assert ottla.check_batches(data) == 2


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused_when_records_are_asked_for(codec: int) -> None:
    data = batch(records(1), codec=codec)
    head = only(data)
    assert head.compression == "unknown"
    head.verify()
    with pytest.raises(UnsupportedCompressionError) as caught:
        head.records()
    assert (caught.value.kind, caught.value.error_code) == ("unknown-codec", -1)


def test_a_negative_producer_id_counts_as_none() -> None:
    data = batch(records(1), producer_id=-5, attributes=0)
    assert only(data).producer_id == -5
    assert ottla.check_batches(data) == 1


@pytest.mark.parametrize(
    ("base_sequence", "count", "sequences"),
    [
        (0, 3, [0, 1, 2]),
        (2**31 - 2, 3, [2**31 - 2, 2**31 - 1, 0]),
        (2**31 - 1, 2, [2**31 - 1, 0]),
    ],
)
def test_sequences_wrap_to_0_after_the_largest(
    base_sequence: int, count: int, sequences: list[int]
) -> None:
    data = batch(
        records(count), count=count, producer_id=1, producer_epoch=0, base_sequence=base_sequence
    )
    head = only(data)
    assert [read.sequence for read in head.records()] == sequences
    assert head.last_sequence == sequences[-1]


def test_a_thin_batch_is_read_with_its_gaps() -> None:
    payload = record(1, value=b"b") + record(4, value=b"e")
    data = batch(payload, count=2, last_offset_delta=6, base_offset=10)
    head = only(data)
    assert (head.base_offset, head.last_offset, head.record_count) == (10, 16, 2)
    assert offsets(data) == [11, 14]


def test_offsets_wrap_on_hostile_input_as_javas_do() -> None:
    head = only(batch(records(1), base_offset=2**63 - 1, last_offset_delta=1))
    assert head.last_offset == -(2**63)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_payload_of_an_emptied_batch_is_not_looked_into(codec: str) -> None:
    data = batch(b"anything at all", count=0, last_offset_delta=3, codec=CODECS.index(codec))
    assert plain(data) == []


@pytest.mark.parametrize("count", [-1, -(2**31)])
def test_a_negative_record_count_is_refused_when_records_are_asked_for(count: int) -> None:
    head = only(batch(records(1), count=count, last_offset_delta=0))
    assert head.record_count == count
    with pytest.raises(InvalidRecordError) as caught:
        head.records()
    assert (caught.value.kind, caught.value.error_code) == ("record-count-negative", 87)


# Records of magic 2 (`record-batch.md` §4).


@given(batches_of_records(), compressions(), base_offsets())
def test_every_record_is_read_as_it_was_written(
    drawn: list[DrawnRecord], compression: Compression, base_offset: int
) -> None:
    data = encode_batch(
        [(r.timestamp, r.key, r.value, r.headers) for r in drawn],
        base_offset=base_offset,
        compression=compression,
    )
    assert only(data).compression == compression
    assert plain(data) == [
        (base_offset + index, r.timestamp, r.key, r.value, list(r.headers))
        for index, r in enumerate(drawn)
    ]


def test_any_record_attributes_are_read() -> None:
    assert values(batch(record(attributes=0xFF))) == [b"v"]


@pytest.mark.parametrize("null", [-1, -2, -(2**31)])
def test_any_negative_length_of_a_record_is_null(null: int) -> None:
    body = b"\0\0\0" + varint(null) + varint(null) + varint(1) + varint(1) + b"h" + varint(null)
    assert plain(batch(varint(len(body)) + body)) == [
        (0, TIMESTAMP, None, None, [("h", None)]),
    ]


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_varints_may_be_longer_than_needed(width: int) -> None:
    fields = [varint(value, width=width) for value in (0, 0, 1)]
    body = b"\0" + b"".join(fields) + b"k" + varint(1, width=width) + b"v" + varint(0, width=width)
    assert plain(batch(varint(len(body), width=width) + body)) == [(0, TIMESTAMP, b"k", b"v", [])]


def test_high_bits_of_the_last_byte_of_a_varint_are_lost_as_in_kafka() -> None:
    body = b"\0\0" + b"\x82\x80\x80\x80\x70" + varint(-1) + varint(-1) + varint(0)
    assert offsets(batch(varint(len(body)) + body, base_offset=4)) == [5]


def test_a_timestamp_delta_may_take_ten_bytes() -> None:
    data = batch(record(timestamp_delta=-(2**63)), base_timestamp=-1, max_timestamp=2**63 - 1)
    assert [t for _, t, *_ in plain(data)] == [2**63 - 1]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"\x80" * 5, "varint-too-long"),
        (b"\x80" * 3, "field-overrun"),
        (varint(-1) + bytes(20), "field-negative"),
        (varint(2) + b"\0" + b"\0", "field-overrun"),
        (record(longer=1) + b"\0", "record-length-mismatch"),
        (record(longer=-1), "field-overrun"),
        (record(spare=b"\0"), "record-length-mismatch"),
        (record(longer=50), "field-overrun"),
        (record() + b"\0", "trailing-bytes"),
        (record(header_count=-1), "field-negative"),
        (record(header_count=1), "field-overrun"),
        (
            varint(7) + b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(-1),
            "field-negative",
        ),
        (varint(5) + b"\0\0\0" + varint(30) + varint(-1), "field-overrun"),
        (b"", "records-missing"),
    ],
)
def test_a_record_that_breaks_the_format_is_refused(codec: str, payload: bytes, kind: str) -> None:
    refused = fault(compressed_batch(payload, codec))
    assert isinstance(refused, InvalidRecordError)
    assert (refused.kind, refused.error_code) == (kind, 87)


def test_fewer_records_than_counted_are_refused() -> None:
    refused = fault(batch(records(2), count=3))
    assert (refused.kind, refused.record_index) == ("records-missing", 2)


def test_more_records_than_counted_are_refused_before_the_last_is_given() -> None:
    iterator = only(batch(records(3), count=2)).records()
    assert next(iterator).value == b"value 0"
    with pytest.raises(InvalidRecordError, match="left after the last record"):
        next(iterator)
    assert list(iterator) == []


def test_offset_deltas_in_any_order_are_read() -> None:
    payload = record(5, value=b"a") + record(0, value=b"b") + record(5, value=b"c")
    assert offsets(batch(payload, count=3, base_offset=10)) == [15, 10, 15]


def test_header_keys_that_are_not_utf_8_have_replacement_characters_and_raw_bytes() -> None:
    data = batch(record(headers=[(b"\xff", b"\xfe"), (b"h", None)]))
    ((read,),) = (list(head.records()) for head in ottla.read_batches(data))
    assert read.raw_headers == [(b"\xff", b"\xfe"), (b"h", None)]
    assert read.headers == [("�", b"\xfe"), ("h", None)]


def test_changing_the_headers_given_does_not_change_the_record() -> None:
    (read,) = only(batch(record(headers=[(b"h", b"x")]))).records()
    read.raw_headers.clear()
    read.headers.clear()
    assert read.raw_headers == [(b"h", b"x")]
    assert read.headers == [("h", b"x")]


def test_a_record_is_read_while_the_next_is_damaged() -> None:
    iterator = only(batch(record(0) + varint(-1), count=2)).records()
    assert next(iterator).offset == 0
    with pytest.raises(InvalidRecordError) as caught:
        next(iterator)
    assert caught.value.record_index == 1


# Codecs (`record-batch.md` §7).


def inflated_values(payload: bytes, codec: str) -> list[bytes | None]:
    return values(batch(payload, count=3, codec=CODECS.index(codec)))


THREE = records(3)
THREE_VALUES: list[bytes | None] = [b"value 0", b"value 1", b"value 2"]
HALF = len(THREE) // 2


def lz4_frame(**options: Any) -> bytes:
    frame: bytes = lz4.frame.compress(
        THREE, **{"block_linked": False, "store_size": False, **options}
    )
    return frame


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_codec_is_read(codec: str) -> None:
    assert inflated_values(compress(codec, THREE), codec) == THREE_VALUES


def lz4_of_linked_blocks() -> bytes:
    descriptor = bytes([lz4_frame()[4] & ~0x20]) + lz4_frame()[5:6]
    return lz4_frame()[:4] + descriptor + bytes([xxh32(descriptor) >> 8 & 0xFF]) + lz4_frame()[7:]


def gzip_with(flags: int, extra: bytes) -> bytes:
    plain_gzip = compress("gzip", THREE)
    return plain_gzip[:3] + bytes([flags]) + plain_gzip[4:10] + extra + plain_gzip[10:]


def gzip_with_header_checksum() -> bytes:
    head = compress("gzip", THREE)[:3] + b"\x02" + compress("gzip", THREE)[4:10]
    checksum = struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + checksum + compress("gzip", THREE)[10:]


READABLE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip of two members": (
        "gzip",
        lambda: compress("gzip", THREE[:HALF]) + compress("gzip", THREE[HALF:]),
    ),
    "gzip with garbage behind it": ("gzip", lambda: compress("gzip", THREE) + b"garbage"),
    "gzip with a name": ("gzip", lambda: gzip_with(8, b"name\0")),
    "gzip with a comment": ("gzip", lambda: gzip_with(16, b"comment\0")),
    "gzip with an extra field": ("gzip", lambda: gzip_with(4, b"\x02\0ab")),
    "gzip with a header checksum": ("gzip", gzip_with_header_checksum),
    "gzip with a time": ("gzip", lambda: gzip.compress(THREE, mtime=1_700_000_000)),
    "gzip stored": ("gzip", lambda: gzip.compress(THREE, compresslevel=0)),
    "snappy raw": ("snappy", lambda: raw_snappy(THREE)),
    "snappy in small chunks": ("snappy", lambda: xerial(THREE, block_size=7)),
    "snappy of two streams": ("snappy", lambda: xerial(THREE[:HALF]) + xerial(THREE[HALF:])),
    "snappy with 3 bytes behind it": ("snappy", lambda: xerial(THREE) + b"abc"),
    # Only where a header stands inside a stream does snappy-java look at its version.
    "snappy of version 0": ("snappy", lambda: XERIAL_HEADER[:8] + bytes(8) + xerial(THREE)[16:]),
    "snappy of version 2": (
        "snappy",
        lambda: XERIAL_HEADER[:8] + struct.pack(">ii", 2, 1) + xerial(THREE)[16:],
    ),
    "lz4 with block checksums": ("lz4", lambda: lz4_frame(block_checksum=True)),
    "lz4 with a content checksum": ("lz4", lambda: lz4_frame(content_checksum=True)),
    "lz4 with a content size": ("lz4", lambda: lz4_frame(store_size=True)),
    "lz4 of blocks of 4 MiB": ("lz4", lambda: lz4_frame(block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "lz4 with garbage behind it": ("lz4", lambda: lz4_frame() + b"garbage"),
    "lz4 with a wrong content checksum": (
        "lz4",
        lambda: lz4_frame(content_checksum=True)[:-4] + b"\0\0\0\0",
    ),
    "zstd of two frames": (
        "zstd",
        lambda: compress("zstd", THREE[:HALF]) + compress("zstd", THREE[HALF:]),
    ),
    "zstd with a checksum": (
        "zstd",
        lambda: zstandard.ZstdCompressor(write_checksum=True).compress(THREE),
    ),
    "zstd without a content size": (
        "zstd",
        lambda: zstandard.ZstdCompressor(write_content_size=False).compress(THREE),
    ),
}


@pytest.mark.parametrize("name", READABLE)
def test_a_payload_that_kafka_reads_is_read(name: str) -> None:
    codec, payload = READABLE[name]
    assert inflated_values(payload(), codec) == THREE_VALUES


def flipped(data: bytes, position: int) -> bytes:
    position %= len(data)
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


REFUSED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip with a wrong trailer": ("gzip", lambda: flipped(compress("gzip", THREE), -6)),
    "gzip with a wrong size": ("gzip", lambda: flipped(compress("gzip", THREE), -1)),
    "gzip with a cut trailer": ("gzip", lambda: compress("gzip", THREE)[:-1]),
    "gzip with a wrong header": ("gzip", lambda: b"\0" + compress("gzip", THREE)[1:]),
    "gzip of nothing": ("gzip", lambda: b""),
    "snappy of nothing": ("snappy", lambda: b""),
    "snappy of two streams, the second of version 0": (
        "snappy",
        lambda: xerial(THREE[:HALF]) + XERIAL_HEADER[:8] + bytes(8) + xerial(THREE[HALF:])[16:],
    ),
    "snappy with a chunk that is cut": ("snappy", lambda: xerial(THREE)[:-1]),
    "snappy with garbage behind it": ("snappy", lambda: xerial(THREE) + b"garbage"),
    "lz4 without its end mark": ("lz4", lambda: lz4_frame()[:-4]),
    "lz4 with the old header checksum": ("lz4", lambda: with_old_lz4_checksum(lz4_frame())),
    "lz4 of linked blocks": ("lz4", lz4_of_linked_blocks),
    "lz4 with a wrong block checksum": ("lz4", lambda: flipped(lz4_frame(block_checksum=True), -6)),
    "lz4 of nothing": ("lz4", lambda: b""),
    "zstd with a byte behind it": ("zstd", lambda: compress("zstd", THREE) + b"\0"),
    "zstd that is cut": ("zstd", lambda: compress("zstd", THREE)[:-1]),
    "zstd of another magic": ("zstd", lambda: b"\0" + compress("zstd", THREE)[1:]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_payload_that_its_codec_refuses_is_refused(name: str) -> None:
    codec, payload = REFUSED[name]
    data = batch(payload(), count=3, codec=CODECS.index(codec))
    refused = fault(data)
    assert isinstance(refused, UnsupportedCompressionError)
    assert (refused.kind, refused.error_code, refused.position) == ("undecodable", -1, 61)


def test_an_empty_zstd_payload_ends_before_its_first_record() -> None:
    refused = fault(batch(b"", codec=4))
    assert (type(refused), refused.kind) == (InvalidRecordError, "records-missing")


def test_magic_0_takes_either_lz4_header_checksum_and_magic_1_only_the_right_one() -> None:
    def wrapped(magic: int, *, is_old: bool) -> bytes:
        frame = compress("lz4", inner(magic, [0]))
        if is_old:
            frame = with_old_lz4_checksum(frame)
        return entry(0, message(magic, key=None, value=frame, attributes=3))

    for data in (
        wrapped(0, is_old=True),
        wrapped(0, is_old=False),
        wrapped(1, is_old=False),
    ):
        assert values(data) == [b"value 0"]
    assert fault(wrapped(1, is_old=True)).kind == "undecodable"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_payloads_of_more_than_one_block_are_read(codec: str) -> None:
    payload = b"".join(
        record(index, value=bytes([index % 7]) * 997 + struct.pack(">i", index))
        for index in range(400)
    )
    data = compressed_batch(payload, codec, count=400)
    assert offsets(data) == list(range(400))
    assert values(data)[399] == bytes([399 % 7]) * 997 + struct.pack(">i", 399)


# Control records (`record-batch.md` §8).


def marker(
    kind: int, *, key: bytes | None = None, value: bytes = b"\0\0\0\0\0\x07", producer_id: int = 9
) -> bytes:
    return batch(
        record(key=struct.pack(">hh", 0, kind) if key is None else key, value=value),
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=2,
    )


@pytest.mark.parametrize(
    ("kind", "name", "epoch"),
    [
        (0, "ABORT", 7),
        (1, "COMMIT", 7),
        (2, "LEADER_CHANGE", None),
        (3, "SNAPSHOT_HEADER", None),
        (4, "SNAPSHOT_FOOTER", None),
        (5, "KRAFT_VERSION", None),
        (6, "KRAFT_VOTERS", None),
        (7, "UNKNOWN", None),
        (-1, "UNKNOWN", None),
    ],
)
def test_control_records_tell_their_type(kind: int, name: str, epoch: int | None) -> None:
    (read,) = only(marker(kind)).records()
    assert (read.control, read.coordinator_epoch) == (name, epoch)


def test_later_versions_and_longer_markers_are_read_as_the_first() -> None:
    data = marker(0, key=struct.pack(">hh", 5, 1) + b"more", value=b"\0\x03\0\0\0\x08more")
    (read,) = only(data).records()
    assert (read.control, read.coordinator_epoch) == ("COMMIT", 8)


def test_control_records_are_given_only_to_those_who_ask() -> None:
    data = batch(records(2), count=2) + marker(1)
    assert [r.control for r in ottla.read(data)] == [None, None]
    assert [r.control for r in ottla.read(data, control=True)] == [None, None, "COMMIT"]


def test_a_record_outside_a_control_batch_is_no_control_record_whatever_its_key() -> None:
    (read,) = only(batch(record(key=b"\0\0\0\x01", value=b"\0\0\0\0\0\x07"))).records()
    assert (read.control, read.coordinator_epoch) == (None, None)


# The objects themselves.


def test_objects_are_frozen_and_name_themselves() -> None:
    head = only(golden("two-records"))
    (first, _) = head.records()
    assert repr(head) == ("RecordBatch(position=0, size=85, magic=2, offsets=0..1, producer_id=5)")
    assert repr(first) == (
        f"Record(offset=0, timestamp={TIMESTAMP}, key=b'k', value=b'value', headers=[('h', b'x')])"
    )
    for frozen, name in ((head, "crc"), (first, "key")):
        with pytest.raises(AttributeError):
            setattr(frozen, name, 1)


def test_records_can_be_read_again() -> None:
    head = only(batch(records(3), count=3))
    assert [r.offset for r in head.records()] == [r.offset for r in head.records()] == [0, 1, 2]


def test_a_batch_outlives_the_data_it_was_read_from() -> None:
    data = bytearray(batch(records(3), count=3))
    head = next(ottla.read_batches(data))
    data[:] = bytes(len(data))
    del data
    head.verify()
    assert [r.value for r in head.records()] == THREE_VALUES
