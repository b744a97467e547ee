"""A directory of golden vectors against the engine, as a table by class.

    python -m support.vectors DIR

Reads `read.jsonl.gz`, `decide.jsonl.gz` and `history.jsonl.gz`, those of them that are there; each
line is a case with Apache Kafka's own answer. Status 1 on any difference, or where nothing is.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ottla
from support import histories

if TYPE_CHECKING:
    from collections.abc import Callable

SHOWN_OF_A_CLASS = 3

# A topic's settings, as the cases call them.
SETTINGS = {
    "compression": "compression_type",
    "timestamp_type": "message_timestamp_type",
    "before_max_ms": "message_timestamp_before_max_ms",
    "after_max_ms": "message_timestamp_after_max_ms",
    "max_message_bytes": "max_message_bytes",
    "segment_bytes": "segment_bytes",
}
TIMESTAMP_TYPES = {-1: "no_timestamp_type", 0: "create_time", 1: "log_append_time"}

# A validator's meters, as the cases call them, and Kafka's names for them. Offsets and sequences
# are counted by one meter.
METERS = {
    "magic": "InvalidMagicNumberRecordsPerSec",
    "offset": "InvalidOffsetOrSequenceRecordsPerSec",
    "sequence": "InvalidOffsetOrSequenceRecordsPerSec",
    "crc": "InvalidMessageCrcRecordsPerSec",
    "key": "NoKeyCompactedTopicRecordsPerSec",
}
CORRUPT_MESSAGE = 2
CODEC_BITS = 0x07
SNAPPY = 2

# Cases in which the engine differs by intent, by their numbers (`docs/decisions.md`).
INTENDED = {
    "a broker's leader epoch cache refuses a negative base offset": (
        *(1324, 1394, 1604, 1964, 2264, 2544),
        *(2714, 3167, 3332, 3561, 4402, 5718),
    ),
    "libzstd 1.5.7 writes other bytes than 1.5.6": (365, 1265, 4250, 4436, 4895, 5242),
}
DIFFERENCES = {f"wd{case}": reason for reason, cases in INTENDED.items() for case in cases}

Case = dict[str, Any]

# The release that answered, unless a case says otherwise.
KAFKA_VERSION = "4.1"


def short(digest: bytes) -> str:
    """Return the half of a SHA-256 that the cases carry."""
    return digest[:16].hex()


def sized(content: bytes | None) -> bytes:
    """Return a byte string behind its length, null as −1."""
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


class Records:
    """Number and digest of records as a consumer parses them."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.offsets: list[int] = []

    def add(self, batch: ottla.RecordBatch) -> str | None:
        """Take the records of a batch up to the end or a fault, which is told."""
        try:
            for record in batch.records():
                self.offsets.append(record.offset)
                headers = record.raw_headers
                parts = [
                    struct.pack(">qq", record.offset, record.timestamp),
                    sized(record.key),
                    sized(record.value),
                    struct.pack(">i", len(headers)),
                    *(sized(part) for header in headers for part in header),
                ]
                self.hash.update(b"".join(parts))
        except ottla.RecordBatchError as error:
            return str(error)
        return None

    @property
    def digest(self) -> str:
        """Return the digest of what was taken."""
        return short(self.hash.digest())


def wrapped(value: int) -> int:
    """Return a number as Java's 64 bits hold it: offsets near 2^63 wrap around."""
    return (value + 2**63) % 2**64 - 2**63


def unequal(found: Case, expected: Case) -> list[str]:
    """Return the fields that differ, of those expected."""
    return [
        f"{name} {found[name]}, Kafka {value}"
        for name, value in expected.items()
        if name in found and found[name] != value
    ]


def read(case: Case) -> list[str]:
    """Return what a consumer reads other than Kafka's."""
    expected = case["out"]
    batches = ottla.read_batches(base64.b64decode(case["in"]))
    for index, wanted in enumerate(expected["batches"]):
        try:
            batch = next(batches, None)
        except ottla.RecordBatchError as error:
            return [] if "header" in wanted else [f"batch {index}: refused: {error}"]
        if batch is None:
            return [f"batch {index}: nothing is read, Kafka: {wanted}"]
        if found := read_batch(batch, wanted):
            return [f"batch {index}: {what}" for what in found]
    try:
        end = "one more batch" if next(batches, None) else None
    except ottla.RecordBatchError as error:
        end = None if "end" in expected else f"ends with {error}, Kafka quietly"
    else:
        if end is None and "end" in expected:
            end = f"ends quietly, Kafka with {expected['end']}"
    return [end] if end else []


def read_batch(batch: ottla.RecordBatch, wanted: Case) -> list[str]:
    """Return what is read of a batch other than by Kafka."""
    records = Records()
    fault = records.add(batch)
    # Kafka's consumer looks at the checksums inside a wrapper, not at the wrapper's own.
    if fault is None and (batch.magic == 2 or "error" in wanted or "header" in wanted):
        try:
            batch.verify()
        except ottla.RecordBatchError as error:
            fault = str(error)
    refusal = wanted.get("error", wanted.get("header"))
    if (fault is None) != (refusal is None):
        return [f"{fault or 'read'}, Kafka: {refusal or 'reads it'}"]
    if "header" in wanted:
        return []
    found: Case = {
        "magic": batch.magic,
        "size": batch.size,
        "last": batch.last_offset,
        "max_ts": batch.max_timestamp,
    }
    if batch.magic == 2:
        found["base"] = batch.base_offset
        found["control"] = batch.is_control
        found["txn"] = batch.is_transactional
    if fault is None:
        found["records"] = len(records.offsets)
        if records.offsets:
            found["digest"] = records.digest
            found["first_offset"] = records.offsets[0]
            found["last_offset"] = records.offsets[-1]
    wrong = unequal(found, wanted)
    timestamp_type = TIMESTAMP_TYPES[wanted["ts_type"]]
    if batch.timestamp_type != timestamp_type:
        wrong.append(f"timestamp type {batch.timestamp_type}, Kafka {timestamp_type}")
    return wrong


def decide(case: Case, kafka_version: str = KAFKA_VERSION) -> list[str]:
    """Return what a leader decides other than Kafka's."""
    expected, cfg = case["out"], case.get("cfg", {})
    verdict = verdict_of(base64.b64decode(case["in"]), cfg, kafka_version=kafka_version)
    found: Case = {
        "code": verdict.error,
        "record_errors": [error.batch_index for error in verdict.record_errors],
        "scope": "request" if verdict.is_request_wide else "partition",
    }
    wanted = {"record_errors": [], "scope": "partition"} | expected
    if wrong := unequal(found, {name: wanted[name] for name in found}):
        return wrong
    if wrong := unequal(*meters(verdict, expected)):
        return wrong
    if not verdict.accepted or expected["base_offset"] == -1:
        return unequal({"base_offset": verdict.base_offset}, expected)
    found = {
        "base_offset": verdict.base_offset,
        "last_offset": verdict.last_offset,
        "max_timestamp": verdict.max_timestamp_ms,
        "log_append_time": verdict.log_append_time_ms,
        "in_place": not verdict.is_rebuilt,
        "converted": verdict.converted,
    }
    # Another encoder of snappy finds other copies: what it wrote is compared by its records.
    codecs = {attributes & CODEC_BITS for _, _, attributes, *_ in expected["stored"]}
    if not (verdict.is_rebuilt and SNAPPY in codecs):
        found["stored_size"] = len(verdict.stored)
        found["stored_sha"] = short(hashlib.sha256(verdict.stored).digest())
    wanted = {"log_append_time": -1, "converted": 0} | expected
    return unequal(found, wanted) + stored(verdict.stored, expected)


def meters(verdict: ottla.Verdict, expected: Case) -> tuple[Case, Case]:
    """Return what the validator's meters count here, and what they count in Kafka."""
    wanted = dict.fromkeys(METERS.values(), 0)
    for meter in expected.get("metrics", "").split():
        name, _, count = meter.partition("*")
        wanted[METERS[name]] += int(count or 1)
    found = {name: verdict.metrics[name] for name in wanted}
    # The checksum of a whole batch is counted before the validator, whose meters these are.
    crc = METERS["crc"]
    if expected["code"] == CORRUPT_MESSAGE and (found[crc], wanted[crc]) == (1, 0):
        del wanted[crc]
    return found, wanted


def topic_of(cfg: Case, kafka_version: str = KAFKA_VERSION) -> dict[str, Any]:
    """Return the settings of a case's topic."""
    topic = {SETTINGS[name]: value for name, value in cfg.items() if name in SETTINGS}
    topic["kafka_version"] = kafka_version
    if cfg.get("compacted"):
        topic["cleanup_policy"] = "compact"
    return topic


def circumstances_of(cfg: Case) -> dict[str, Any]:
    """Return what else a case's verdict depends on."""
    version = cfg.get("api_version", 9)
    return {
        "now_ms": cfg.get("now_ms", 1_700_000_000_000),
        "api_version": None if version == -1 else version,
        "base_offset": cfg.get("next_offset", 1000),
        "leader_epoch": cfg.get("leader_epoch", 7),
        "origin": cfg.get("origin", "client"),
        "transactional_id": "t" if cfg.get("transactional_id", True) else None,
    }


def verdict_of(
    records: bytes,
    cfg: Case,
    profile: Literal["kafka", "strict"] = "kafka",
    kafka_version: str = KAFKA_VERSION,
) -> ottla.Verdict:
    """Return the verdict of a release in the circumstances of a case."""
    config = ottla.TopicConfig(**topic_of(cfg, kafka_version))
    return ottla.validate(records, config, profile=profile, **circumstances_of(cfg))


def stored(data: bytes, expected: Case) -> list[str]:
    """Return what would be stored other than by Kafka, as a consumer reads it."""
    records, headers, fault = Records(), [], None
    for batch in ottla.read_batches(data):
        headers.append(
            [
                batch.base_offset,
                batch.partition_leader_epoch,
                batch.attributes & 0xFFFF,
                wrapped(batch.last_offset - batch.base_offset),
                batch.base_timestamp,
                batch.max_timestamp,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.record_count,
            ]
        )
        fault = fault or records.add(batch)
    wrong = unequal({"stored": headers}, expected)
    content = expected["content"]
    if (fault is not None) != content.startswith("!"):
        wrong.append(f"stored records: {fault or 'read'}, Kafka {content}")
    elif fault is None and records.digest != content:
        wrong.append("stored records differ")
    return wrong


KINDS: dict[str, Callable[[Case], list[str]]] = {
    "read": read,
    "decide": decide,
    "history": histories.differences,
}


def run(kind: str, path: Path) -> tuple[int, int]:
    """Run a file and print its table; the number of equal cases and of all."""
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            name = case["class"].split(".")[0]
            total[name] += 1
            found = KINDS[kind](case)
            if reason := DIFFERENCES.get(case["id"]):
                found = [] if found else [f"equal, expected another answer: {reason}"]
            if found:
                wrong[name] += 1
                if wrong[name] <= SHOWN_OF_A_CLASS:
                    say(f"  case {case['id']}, {case['class']}: {'; '.join(found)}"[:400])
    for name, cases in sorted(total.items()):
        say(f"{kind:<8} {name:<30} {cases - wrong[name]:>6} of {cases:>6}")
    return total.total() - wrong.total(), total.total()


def main(directory: Path) -> int:
    """Run what a directory holds; the exit status."""
    files = {kind: directory / f"{kind}.jsonl.gz" for kind in KINDS}
    results = {kind: run(kind, path) for kind, path in files.items() if path.exists()}
    if not results:
        say(f"{directory}: none of {', '.join(path.name for path in files.values())} is here")
    for kind, (equal, cases) in results.items():
        say(f"{kind}: {equal} of {cases}")
    good = results and all(equal == cases > 0 for equal, cases in results.values())
    return 0 if good else 1


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m support.vectors DIR")
    sys.exit(main(Path(sys.argv[1])))
