"""Kafka's own answers to a sample of inputs (read-sample.md tells where they are from)."""

import base64
import gzip
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla import RecordBatchError

SAMPLE = Path(__file__).with_name("read-sample.jsonl.gz")
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress(SAMPLE.read_bytes()).splitlines()
]
TIMESTAMP_TYPES = {-1: "no_timestamp_type", 0: "create_time", 1: "log_append_time"}


def packed(part: bytes | None) -> bytes:
    return struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part


def digest(read: list[ottla.Record]) -> str:
    total = hashlib.sha256()
    for r in read:
        total.update(struct.pack(">qq", r.offset, r.timestamp) + packed(r.key) + packed(r.value))
        total.update(struct.pack(">i", len(r.raw_headers)))
        for key, value in r.raw_headers:
            total.update(packed(key) + packed(value))
    return total.hexdigest()[:32]


def answer(found: ottla.RecordBatch, want: dict[str, Any]) -> dict[str, Any]:
    """What reading gives, in the words of the sample."""
    got: dict[str, Any] = {
        "magic": found.magic,
        "size": found.size,
        "last": found.last_offset,
        "max_ts": found.max_timestamp,
        "ts_type": found.timestamp_type,
    }
    if found.magic == 2:
        got |= {"control": found.is_control, "txn": found.is_transactional}
        got |= {"base": found.base_offset}
    try:
        read = list(found.records())
        # A wrapper's own checksum is not looked at by Kafka's consumer: the inner ones are.
        if found.magic == 2 or "error" in want:
            found.verify()
    except RecordBatchError:
        return got | {"refused": True}
    return got | {"refused": False, "records": len(read), "digest": digest(read) if read else None}


def expected(want: dict[str, Any]) -> dict[str, Any]:
    got = {name: want[name] for name in ("magic", "size", "last", "max_ts")}
    got["ts_type"] = TIMESTAMP_TYPES[want["ts_type"]]
    if want["magic"] == 2:
        got |= {"control": bool(want["control"]), "txn": bool(want["txn"]), "base": want["base"]}
    if "error" in want:
        return got | {"refused": True}
    digest_of = want["digest"] if want["records"] else None
    return got | {"refused": False, "records": want["records"], "digest": digest_of}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['class']}")
def test_the_answer_is_that_of_kafkas_consumer(case: dict[str, Any]) -> None:
    iterator = ottla.read_batches(base64.b64decode(case["in"]))
    for want in case["out"]["batches"]:
        if "header" in want:
            with pytest.raises(RecordBatchError):
                list(next(iterator).records())
            return
        found = next(iterator)
        assert answer(found, want) == expected(want)
    if "end" in case["out"]:
        with pytest.raises(RecordBatchError):
            next(iterator)
    else:
        assert list(iterator) == []


def test_the_sample_holds_what_is_read_and_what_is_refused() -> None:
    outcomes = [any("error" in b for b in case["out"]["batches"]) for case in CASES]
    assert min(outcomes.count(True), outcomes.count(False)) > 80
    assert len({case["class"] for case in CASES}) == 212
