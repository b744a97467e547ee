"""Batches that real consumers do not read alike: what a leader says of them, and what an audit.

The batches and what four consumers made of them were taken from a broker of 4.4.0.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import lz4.frame
import ottla
import pytest
from records.crafting import (
    COMPRESSED,
    batch,
    compress,
    compressed_batch,
    entry,
    message,
    record,
    xerial,
    xxh32,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "odd-batches.jsonl.gz"
NOW = 1_700_000_000_000
ANY_TIME = ottla.TopicConfig(message_timestamp_after_max_ms=2**63 - 1)
CLIENTS = {
    "java 4.4.0": "Java",
    "confluent-kafka 2.16.1": "librdkafka",
    "aiokafka 0.14.0": "aiokafka",
    "kafka-python 3.0.12": "kafka-python",
}
# The records to blame, where it is not the payload that is at fault.
CULPRITS = {
    "header key not utf-8": [0],
    "header key surrogate": [0],
    "record attributes 255": [0],
    "key length -2": [0],
    "deltas all 0": [1, 2],
    # Java's consumer stops behind the block of nothing, inside a record.
    "lz4 empty block inside": [5],
}
# What strict refuses although every consumer reads it, with its error.
REFUSED_BESIDES = {"append time flag": 32}
# Refused by another rule than that of the clients.
OTHERWISE = {"deltas all 0", "lz4 empty block inside"}


def cases() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt") as lines:
        return [json.loads(line) for line in lines]


CASES = cases()
TAKEN = [case for case in CASES if case["broker"]["4.4.0"] == 0]


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


def stopped(case: dict[str, Any]) -> list[str]:
    """Return the clients that did not deliver every record and go on."""
    count = case["java_reads"]["4.4.0"][0]
    return [
        name
        for consumer, name in CLIENTS.items()
        if (seen := case["consumers"].get(consumer))
        and (seen.get("aborts") or seen["error"] or not seen["goes_on"] or seen["records"] != count)
    ]


def decided(data: bytes, profile: str, version: str | None = None) -> ottla.Verdict:
    return ottla.validate(data, ANY_TIME, now_ms=NOW, profile=profile, kafka_version=version)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_kafka_answers_as_its_releases_do(case: dict[str, Any]) -> None:
    data = base64.b64decode(case["in"])
    for release, code in case["broker"].items():
        assert decided(data, "kafka", release).error == code, release


@pytest.mark.parametrize("case", TAKEN, ids=names(TAKEN))
def test_strict_refuses_what_stops_any_consumer_and_nothing_else(case: dict[str, Any]) -> None:
    verdict = decided(base64.b64decode(case["in"]), "strict")
    if case["name"] in REFUSED_BESIDES:
        assert verdict.error == REFUSED_BESIDES[case["name"]]
        return
    assert verdict.error == (87 if stopped(case) else 0)
    culprits = [error.batch_index for error in verdict.record_errors]
    assert culprits == CULPRITS.get(case["name"], [])
    if stopped(case) and case["name"] not in OTHERWISE:
        told = " ".join([verdict.error_message or "", *(e.message for e in verdict.record_errors)])
        assert [name for name in CLIENTS.values() if name in told] == stopped(case)


@pytest.mark.parametrize("case", TAKEN, ids=names(TAKEN))
def test_the_audit_names_the_clients_that_stop(case: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "odd-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(base64.b64decode(case["in"]))
    rows = ottla.audit(directory).findings
    found = [row for row in rows if row["name"] == "consumers-differ"]
    clients = [] if case["name"] in OTHERWISE else stopped(case)
    assert [row["found"] for row in found] == ([", ".join(clients)] if clients else [])
    for row in found:
        assert row["severity"] == "warning"
        assert row["record_index"] == (
            CULPRITS[case["name"]][0] if case["name"] in CULPRITS else None
        )
        assert row["expected"] == "a batch that every client reads"
        assert all(client in row["message"] for client in clients)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_what_java_reads_is_read_here(case: dict[str, Any]) -> None:
    batches = list(ottla.read_batches(base64.b64decode(case["in"])))
    for found, expected in zip(batches, case["java_reads"]["4.4.0"], strict=True):
        if isinstance(expected, int):
            assert len(list(found.records())) == expected
        else:
            with pytest.raises(ottla.RecordBatchError):
                list(found.records())


ODD_RECORDS = {
    "attributes": record(1, attributes=0x80),
    "null key": b"\x14\x00\x00\x02\x03\x08" + b"last" + b"\x00",
    "null value": record(1, key=b"k", value=None)[:-2] + b"\x05\x00",
    "null header value": record(1, headers=[(b"h", None)])[:-1] + b"\x05",
    "header key": record(1, headers=[(b"h", b"v"), (b"\xff\xfe", b"v")]),
    "long header key": record(1, headers=[(b"h" * 70 + b"\xe9", b"v")]),
}


@pytest.mark.parametrize("codec", ["none", *COMPRESSED])
@pytest.mark.parametrize("odd", ODD_RECORDS)
def test_strict_names_the_record_that_stops_consumers(codec: str, odd: str) -> None:
    payload = record() + ODD_RECORDS[odd] + record(2)
    if codec == "none":
        data = batch(payload, count=3, base_timestamp=NOW, max_timestamp=NOW)
    else:
        data = compressed_batch(payload, codec, count=3)
    assert decided(data, "kafka").error == 0
    verdict = decided(data, "strict")
    assert (verdict.error, [e.batch_index for e in verdict.record_errors]) == (87, [1])
    # Records written anew have neither these attributes nor these lengths.
    target = "gzip" if codec == "none" else "uncompressed"
    config = ottla.TopicConfig(compression_type=target)
    again = ottla.validate(data, config, now_ms=NOW)
    assert again.error == (87 if "header key" in odd else 0)


@pytest.mark.parametrize(
    "key", [b"", b"a", b"header-key", b"\x7f" * 63, b"x" * 64, "ключ".encode(), "é".encode() * 40]
)
def test_text_of_any_kind_is_a_header_key(key: bytes) -> None:
    payload = b"".join(record(n, headers=[(key, b"\xff"), (b"b", None)]) for n in range(3))
    for data in (
        batch(payload, count=3, base_timestamp=NOW, max_timestamp=NOW),
        compressed_batch(payload, "zstd", count=3),
    ):
        verdict = decided(data, "strict")
        assert (verdict.error, verdict.is_rebuilt) == (0, False)


def test_a_payload_that_is_written_anew_may_have_any_framing() -> None:
    halves = compress("gzip", record()) + compress("gzip", record(1))
    data = batch(halves, count=2, codec=1, base_timestamp=NOW, max_timestamp=NOW)
    assert decided(data, "strict").error == 87
    for codec in ("uncompressed", "zstd"):
        config = ottla.TopicConfig(compression_type=codec)
        verdict = ottla.validate(data, config, now_ms=NOW)
        assert (verdict.error, verdict.is_rebuilt) == (0, True)
        assert len(list(ottla.read(verdict.stored))) == 2


def test_zeros_behind_a_gzip_member_stop_nobody() -> None:
    for tail, error in ((bytes(40), 0), (b"\0\0\1", 87), (b"\x1f\x8b\x08" + bytes(7), 87)):
        payload = compress("gzip", record()) + tail
        data = batch(payload, codec=1, base_timestamp=NOW, max_timestamp=NOW)
        assert decided(data, "kafka").error == 0
        assert decided(data, "strict").error == error


def test_an_lz4_content_checksum_is_verified_where_there_is_one() -> None:
    for broken in (False, True):
        frame = bytearray(
            lz4.frame.compress(
                record(), content_checksum=True, block_linked=False, store_size=False
            )
        )
        if broken:
            frame[-1] ^= 1
        data = batch(bytes(frame), codec=3, base_timestamp=NOW, max_timestamp=NOW)
        assert decided(data, "strict").error == (87 if broken else 0)


@pytest.mark.parametrize(("size", "error"), [(None, 0), (0, 0), (-1, 87), (1, 87)])
def test_an_lz4_content_size_is_that_of_the_content_where_there_is_one(
    size: int | None, error: int
) -> None:
    content = record()
    frame = bytearray(lz4.frame.compress(content, block_linked=False, store_size=True))
    if size is not None:
        declared = size and len(content) + size
        frame[6:14] = declared.to_bytes(8, "little")
        frame[14] = xxh32(bytes(frame[4:14])) >> 8 & 0xFF
    data = batch(bytes(frame), codec=3, base_timestamp=NOW, max_timestamp=NOW)
    assert decided(data, "kafka").error == 0
    assert decided(data, "strict").error == error


@pytest.mark.parametrize(("tail", "error"), [(b"", 0), (b"\0", 87), (b"abc", 87)])
def test_bytes_behind_a_xerial_stream_stop_all_but_java(tail: bytes, error: int) -> None:
    data = batch(xerial(record()) + tail, codec=2, base_timestamp=NOW, max_timestamp=NOW)
    assert decided(data, "kafka").error == 0
    assert decided(data, "strict").error == error
    assert decided(data, "strict").error_message == (
        None
        if error == 0
        else "bytes behind the last block of a xerial stream: librdkafka, aiokafka and kafka-python"
        " take them for the length of a block, and stop"
    )


@pytest.mark.parametrize("flag", [0x20, 0x40, 0x80])
def test_reserved_flags_of_a_gzip_header_stop_librdkafka(flag: int) -> None:
    payload = bytearray(compress("gzip", record()))
    payload[3] |= flag
    data = batch(bytes(payload), codec=1, base_timestamp=NOW, max_timestamp=NOW)
    assert decided(data, "kafka").error == 0
    verdict = decided(data, "strict")
    assert verdict.error == 87
    assert "reserved flags in a gzip header: librdkafka" in (verdict.error_message or "")


def test_a_batch_with_a_fault_of_its_own_is_not_reported_twice(tmp_path: Path) -> None:
    """Its first record is out of place, its second stops clients."""
    directory = tmp_path / "odd-0"
    directory.mkdir()
    data = batch(record(1) + record(1, attributes=0x80), count=2)
    (directory / f"{0:020}.log").write_bytes(data)
    found = {row["name"] for row in ottla.audit(directory).findings}
    assert "record-fault" in found
    assert "consumers-differ" not in found


def test_a_wrapper_that_is_kept_is_held_to_the_framing_too() -> None:
    entries = [entry(offset, message(1, timestamp=NOW)) for offset in (0, 1)]
    value = b"".join(compress("gzip", data) for data in entries)
    data = entry(1, message(1, timestamp=NOW, key=None, value=value, attributes=1))
    config = ottla.TopicConfig(message_format_version="0.10.0")
    for profile, error in (("kafka", 0), ("strict", 87)):
        verdict = ottla.validate(data, config, now_ms=NOW, api_version=None, profile=profile)
        assert verdict.error == error
