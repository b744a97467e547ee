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
HEADERS = record(headers=[(b"", b"")] * ((1 << 20) + 1))
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


def test_header_keys_that_are_no_text_are_kept_by_strict_alone() -> None:
    decide = deciding(one(record(headers=[(b"\xff", b"v")])), GZIP)
    keys = {
        profile: next(ottla.read(decide(profile).stored)).raw_headers[0][0]
        for profile in ("kafka", "strict")
    }
    assert keys == {"kafka": "\ufffd".encode(), "strict": b"\xff"}


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
        "header-keys",
        "encoders",
        "log-start-offset",
        "stable-offset",
        "unknown-producer",
    }
    assert {row["id"] for row in profile_differences()} == set(ROWS) | elsewhere


def test_every_row_says_what_each_does_and_why() -> None:
    for row in profile_differences():
        assert all(row[part] for part in ("id", "kafka", "strict", "why")), row
