"""The table of differences between the profiles: every row, in both columns."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import ottla
import pytest
from ottla._engine import profile_differences
from records.crafting import (
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch,
    compress,
    entry,
    message,
    patched,
    record,
    wrapper,
)

NOW = 1_700_000_000_000
Decide = Callable[[str], ottla.Verdict]
Answer = tuple[int, list[int]]


def deciding(records: bytes, config: dict[str, Any] | None = None, **request: Any) -> Decide:
    settings = ottla.TopicConfig(**(config or {}))
    return lambda profile: ottla.validate(records, settings, now_ms=NOW, profile=profile, **request)


def one(payload: bytes, **header: Any) -> bytes:
    return batch(payload, **{"base_timestamp": NOW, "max_timestamp": NOW} | header)


LEGACY: dict[str, Any] = {"api_version": None}
BROKER: dict[str, Any] = {"api_version": None, "origin": "coordinator"}
GZIP = {"compression_type": "gzip"}
PLAIN = {"compression_type": "uncompressed"}
FORMAT_1 = {"message_format_version": "0.10.0"}
ENDLESS = b"\x80" * 6 + b"\0" * 6
INNER = bytearray(entry(0, message(1, timestamp=NOW)))
INNER[12] ^= 1
KEY_TOO_LONG = patched(entry(0, message(1, timestamp=NOW)), 26, struct.pack(">i", 1000))
TEXT = b"no" * (20 << 20)
# Each with an empty name and an empty value.
HEADER_COUNT = (1 << 20) + 1
HEADERS = record(header_count=HEADER_COUNT, spare=bytes(2 * HEADER_COUNT))
MARKER = ottla.build_control_batch(
    "commit", producer_id=5, producer_epoch=0, coordinator_epoch=1, timestamp=NOW
)
CUT_MARKER = batch(
    record(key=b"\0\0\0\1", value=b"\0\0\0"),
    attributes=TRANSACTIONAL | 0x20,
    producer_id=5,
    producer_epoch=0,
)
EMPTY = batch(b"", count=0, last_offset_delta=9)
EMPTY_GZIP = batch(compress("gzip", b""), count=0, last_offset_delta=9, codec=1)
LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
# Two stored blocks, a value in halves, and between them a block that inflates to nothing.
PAUSED = b"".join(
    (
        LZ4_HEADER,
        struct.pack("<I", 1 << 31 | 8) + record(value=b"hello")[:8],
        struct.pack("<I", 1) + b"\0",
        struct.pack("<I", 1 << 31 | len(record(value=b"hello")) - 8) + record(value=b"hello")[8:],
        bytes(4),
    )
)

ROWS: dict[str, tuple[Decide, Answer, Answer]] = {
    "offset-deltas": (deciding(one(record(1), last_offset_delta=0)), (0, []), (87, [0])),
    "record-lengths": (
        deciding(one(compress("gzip", record(longer=1)), codec=1)),
        (0, []),
        (87, [0]),
    ),
    "structure-unnamed": (deciding(one(record(header_count=-1))), (87, []), (87, [0])),
    "length-varint": (deciding(one(ENDLESS)), (-1, []), (87, [0])),
    "payload-undecodable": (deciding(one(b"no gzip", codec=1)), (-1, []), (87, [])),
    "header-keys": (deciding(one(record(headers=[(b"\xff", b"v")]))), (0, []), (87, [0])),
    "client-framing": (
        deciding(one(compress("gzip", record()) + b"tail", codec=1)),
        (0, []),
        (87, []),
    ),
    "client-records": (deciding(one(record(attributes=0x80))), (0, []), (87, [0])),
    "stream-pauses": (deciding(one(PAUSED, codec=3)), (0, []), (87, [0])),
    "codec-unknown": (deciding(one(record(), codec=6)), (-1, []), (87, [])),
    "decompression-bomb": (
        deciding(
            one(compress("zstd", record(value=TEXT)), codec=4),
            {"max_message_bytes": 1 << 30},
        ),
        (0, []),
        (87, []),
    ),
    "header-count": (
        deciding(one(HEADERS), {"max_message_bytes": 1 << 30}),
        (0, []),
        (87, [0]),
    ),
    "batch-too-short": (
        deciding(one(record())[:8] + struct.pack(">i", 28) + one(record())[12:40]),
        (-1, []),
        (87, []),
    ),
    "size-overflow": (
        deciding(one(record())[:8] + struct.pack(">i", 2**31 - 1) + one(record())[12:]),
        (-1, []),
        (87, []),
    ),
    "negative-timestamp": (
        deciding(one(record(), base_timestamp=-9), GZIP | {"message_timestamp_after_max_ms": NOW}),
        (-1, []),
        (87, [0]),
    ),
    "timestamp-overflow": (
        deciding(
            one(record(timestamp_delta=NOW), base_timestamp=2**63 - 1),
            {"message_timestamp_after_max_ms": 2**63 - 1},
        ),
        (0, []),
        (87, [0]),
    ),
    "log-append-time-flag": (
        deciding(one(record(), attributes=LOG_APPEND_TIME)),
        (0, []),
        (32, [0]),
    ),
    "transactional-without-producer": (
        deciding(one(record(), attributes=TRANSACTIONAL), transactional_id="t"),
        (0, []),
        (87, []),
    ),
    "producer-epoch": (
        deciding(one(record(), producer_id=5, base_sequence=0)),
        (0, []),
        (87, []),
    ),
    "negative-producer-id": (deciding(one(record(), producer_id=-5), GZIP), (-1, []), (87, [])),
    "legacy-lengths": (deciding(KEY_TOO_LONG, **LEGACY), (-1, []), (87, [0])),
    "legacy-positions": (
        deciding(
            entry(0, message(1, timestamp=NOW)) + entry(1, message(1, key=None, timestamp=NOW)),
            {"cleanup_policy": "compact"},
            **LEGACY,
        ),
        (87, [0]),
        (87, [1]),
    ),
    "inner-records": (
        deciding(wrapper(1, "gzip", bytes(INNER), offset=0, timestamp=NOW), **LEGACY),
        (2, []),
        (2, [0]),
    ),
    "control-record": (deciding(CUT_MARKER, **BROKER), (-1, []), (87, [0])),
    "coordinator-range": (
        deciding(one(record(), last_offset_delta=4), base_offset=10, **BROKER),
        (0, []),
        (87, []),
    ),
    "negative-offset": (deciding(EMPTY, **BROKER), (-1, []), (87, [])),
    "offset-overflow": (
        deciding(one(record() + record(1), count=2), GZIP, base_offset=2**63 - 1),
        (-1, []),
        (87, [1]),
    ),
    "empty-rebuild": (
        deciding(
            EMPTY_GZIP,
            PLAIN | {"message_timestamp_type": "LogAppendTime"},
            base_offset=100,
            **BROKER,
        ),
        (-1, []),
        (0, []),
    ),
    "format-downgrade": (
        deciding(one(record(headers=[(b"h", b"v")])), FORMAT_1, **LEGACY),
        (-1, []),
        (87, [0]),
    ),
    "replica-offsets": (
        deciding(one(record()) * 2, api_version=None, origin="replication", leader_epoch=9),
        (-1, []),
        (87, []),
    ),
}


def answer(verdict: ottla.Verdict) -> Answer:
    return verdict.error, [error.batch_index for error in verdict.record_errors]


@pytest.mark.parametrize("row", ROWS)
def test_row_of_the_table_holds_in_both_profiles(row: str) -> None:
    decide, kafka, strict = ROWS[row]
    assert kafka != strict
    assert answer(decide("kafka")) == kafka
    assert answer(decide("strict")) == strict


def test_a_record_that_kafka_keeps_without_reading_its_lengths_is_refused_by_strict() -> None:
    decide = deciding(KEY_TOO_LONG, FORMAT_1, **LEGACY)
    assert answer(decide("kafka")) == (0, [])
    with pytest.raises(ottla.RecordBatchError):
        ottla.check_batches(decide("kafka").stored, level="full")
    assert answer(decide("strict")) == (87, [0])


def test_offsets_that_leave_64_bits_are_refused_by_strict_in_a_batch_that_is_kept() -> None:
    for base_offset, kafka, strict in ((2**63 - 2, 0, 0), (2**63 - 1, 0, 87)):
        decide = deciding(one(record() + record(1), count=2), base_offset=base_offset)
        assert answer(decide("kafka")) == (kafka, [])
        assert answer(decide("strict")) == (strict, [])
    wrapped = deciding(one(record() + record(1), count=2), base_offset=2**63 - 1)("kafka")
    assert (wrapped.base_offset, wrapped.last_offset) == (2**63 - 1, -(2**63))


def test_an_empty_batch_is_rebuilt_to_nothing_on_a_create_time_topic() -> None:
    for profile in ("kafka", "strict"):
        verdict = deciding(EMPTY_GZIP, PLAIN, base_offset=100, **BROKER)(profile)
        assert (verdict.error, verdict.stored) == (0, b"")


@pytest.mark.parametrize("magic", [0, 1])
def test_kafka_describes_an_inner_record_of_another_magic_and_fails_over_its_lengths(
    magic: int,
) -> None:
    other = message(1 - magic, timestamp=NOW)
    value = len(b"value") + 4
    too_long = other[:-value] + struct.pack(">i", 1000) + other[4 - value :]
    for inner, kafka in ((other, (87, [0])), (too_long, (-1, []))):
        data = wrapper(magic, "gzip", entry(0, inner), offset=0, timestamp=NOW)
        decide = deciding(data, **LEGACY)
        assert answer(decide("kafka")) == kafka
        assert decide("kafka").metrics["InvalidMagicNumberRecordsPerSec"] == 1
        assert answer(decide("strict")) == (87, [0])


@pytest.mark.parametrize("codec", [0, 1])
def test_a_marker_whose_key_is_null_is_an_internal_error_of_kafka(codec: int) -> None:
    payload = compress("gzip", record(key=None)) if codec else record(key=None)
    marker = one(
        payload, codec=codec, attributes=TRANSACTIONAL | 0x20, producer_id=5, producer_epoch=0
    )
    for config in ({}, GZIP, PLAIN):
        decide = deciding(marker, config, **BROKER)
        assert answer(decide("kafka")) == (-1, [])
        assert answer(decide("strict")) == (87, [0])


def test_header_keys_that_are_no_text_are_replaced_by_kafka_where_it_writes_anew() -> None:
    records = one(record(headers=[(b"\xff", b"v")]))
    keys = [
        next(ottla.read(deciding(records, config)("kafka").stored)).raw_headers[0][0]
        for config in ({}, GZIP)
    ]
    assert keys == [b"\xff", "\ufffd".encode()]


def test_kafka_rebuilds_with_the_encoders_of_its_jvm() -> None:
    decide = deciding(one(record(value=b"hello hello hello")), {"compression_type": "zstd"})
    kafka, strict = decide("kafka").stored, decide("strict").stored
    assert kafka.endswith(b"\1\0\0"), "an empty last block, as zstd-jni flushes what it closes"
    assert not strict.endswith(b"\1\0\0")
    assert [r.value for r in ottla.read(kafka)] == [r.value for r in ottla.read(strict)]


def test_log_start_offset_is_told_beside_every_refusal_of_strict_alone() -> None:
    decide = deciding(one(record()), {"max_message_bytes": 10})
    assert decide("kafka").log_start_offset == -1
    assert decide("strict").log_start_offset == 0


def test_every_row_of_the_table_is_tested() -> None:
    elsewhere = {
        "encoders",
        "log-start-offset",
        "stable-offset",
        "unknown-producer",
        # Of requests, in tests/plane.
        "error-messages",
        "old-clients",
        "request-wide",
    }
    assert {row["id"] for row in profile_differences()} == set(ROWS) | elsewhere


def test_every_row_says_what_each_does_and_why() -> None:
    for row in profile_differences():
        assert all(row[part] for part in ("id", "kafka", "strict", "why")), row
