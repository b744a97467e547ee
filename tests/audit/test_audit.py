"""`ottla.audit` from end to end: sound logs, damaged ones, and paths of every kind."""

import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ottla
import pytest
from ottla.audit import Level
from support.logs import batches, files_under, segment, write_log_directory, write_partition

from benches.data import encode_batch


def names(result: ottla.AuditResult) -> list[tuple[str, str]]:
    return [(row["name"], row["severity"]) for row in result.findings]


def test_a_sound_log_directory_gives_no_finding(tmp_path: Path) -> None:
    result = ottla.audit(write_log_directory(tmp_path / "kafka"))
    assert names(result) == []
    assert result.exit_code == 0


def test_the_demo_has_two_open_transactions_and_gaps_of_compaction(demo: Path) -> None:
    result = ottla.audit(demo)
    found = {(row["name"], row["severity"], row["topic"]) for row in result.findings}
    assert found == {
        ("open-transaction", "warning", "refunds"),
        ("offset-gap", "info", "customers"),
    }
    assert result.exit_code == 1
    states = [(row["topic"], row["partition"], row["state"]) for row in result.transactions]
    assert ("refunds", 0, "open") in states
    assert ("refunds", 1, "open") in states
    assert len(result.producers) > 0


def test_nothing_audited_is_modified(demo: Path) -> None:
    before = list(files_under(demo))
    result = ottla.audit(demo)
    assert len(result.records) > 0
    assert list(files_under(demo)) == before


def flip(data: bytes, position: int, bit: int = 0) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


SIZE = len(batches(1)[0])

DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "a flipped bit in a record": (lambda d: flip(d, SIZE + 70), "crc-mismatch", "error"),
    "a flipped bit in the magic": (lambda d: flip(d, SIZE + 16, 6), "magic-fault", "error"),
    "a flipped bit in the base offset": (
        lambda d: flip(d, SIZE + 7, 5),
        "base-offset-wrong",
        "error",
    ),
    "a size field that lies": (
        lambda d: d[: SIZE + 8] + struct.pack(">i", -1) + d[SIZE + 12 :],
        "damaged-range",
        "error",
    ),
    "inserted bytes": (lambda d: d[:SIZE] + b"\x55" * 100 + d[SIZE:], "damaged-range", "error"),
    "a batch taken out": (lambda d: d[:SIZE] + d[2 * SIZE :], "offset-gap", "warning"),
    "a batch repeated": (lambda d: d[: 2 * SIZE] + d[SIZE:], "offset-repeat", "error"),
    "a zeroed stretch": (
        lambda d: d[:SIZE] + bytes(SIZE) + d[2 * SIZE :],
        "damaged-range",
        "error",
    ),
    "an end inside a batch": (lambda d: d[:-5], "truncated-tail", "error"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_the_batches_around_it_are_read(tmp_path: Path, kind: str) -> None:
    damage, name, severity = DAMAGE[kind]
    partition = write_partition(
        tmp_path / "orders-0", {0: damage(segment(4)), 12: segment(1, base_offset=12)}
    )
    result = ottla.audit(partition)
    assert (name, severity) in names(result)
    assert result.exit_code == {"error": 2, "warning": 1}[severity]
    offsets = {row["offset"] for row in result.records}
    assert {0, 1, 2, 12, 13, 14} <= offsets


def test_a_torn_tail_of_an_active_segment_is_worth_knowing_and_no_more(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(4)[:-5]})
    assert names(ottla.audit(partition)) == [("truncated-tail", "info")]


def test_zeros_of_a_preallocated_file_are_no_damage(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(4) + bytes(4096)})
    result = ottla.audit(partition)
    assert result.exit_code == 0
    assert names(result) == [("zero-tail", "info")]


def test_a_segment_missing_between_two_files_is_named(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0", {0: segment(4), 24: segment(4, base_offset=24)}
    )
    (finding,) = ottla.audit(partition).findings
    assert (finding["name"], finding["first_offset"], finding["last_offset"]) == (
        "missing-segment",
        12,
        23,
    )


@pytest.mark.parametrize(
    ("level", "expected"), [("crc", []), ("decode", [("undecodable", "error")])]
)
def test_only_a_level_that_looks_inside_finds_what_is_inside(
    tmp_path: Path, level: Level, expected: list[tuple[str, str]]
) -> None:
    records = [(1_760_000_000_000, b"key", b"value", ())]
    # Plain records that the header calls gzip; the checksum covers the lie.
    lie = encode_batch(records, attributes=1)
    partition = write_partition(tmp_path / "orders-0", {0: lie})
    assert names(ottla.audit(partition, level=level)) == expected


def test_several_paths_are_one_audit(tmp_path: Path) -> None:
    for broker in ("broker-1", "broker-2"):
        write_log_directory(tmp_path / broker, ["orders-0"])
    result = ottla.audit([tmp_path / "broker-1", str(tmp_path / "broker-2")])
    assert result.summary.partitions == 2
    assert {row["file"].split("/")[0] for row in result.files} == {"broker-1", "broker-2"}


def test_patterns_choose_topics(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    result = ottla.audit(log_directory, topics=["pay*"])
    assert {row["topic"] for row in result.files} == {"payments"}
    assert result.exit_code == 0


def test_a_pattern_that_matches_nothing_is_said(tmp_path: Path) -> None:
    result = ottla.audit(write_log_directory(tmp_path / "kafka"), topics=["nothing-*"])
    assert [row["message"] for row in result.findings] == [
        "no topic matches 'nothing-*': topics here: orders, payments"
    ]
    assert result.exit_code == 3


def test_an_empty_list_of_topics_asks_for_nothing_and_not_for_everything(demo: Path) -> None:
    with pytest.raises(ValueError, match="topics is empty: leave it out for all topics"):
        ottla.audit(demo, topics=[])


def test_a_name_with_a_typo_is_told_with_what_is_near(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (topic,) = ottla.audit(log_directory, topics=["ordres"]).findings
    assert topic["message"] == (
        "no topic matches 'ordres': did you mean orders? topics here: orders, payments"
    )
    misspelt = tmp_path / "kafak" / "orders-0"
    (path,) = ottla.audit(misspelt, must_exist=False).findings
    assert path["message"].endswith(f": did you mean {log_directory}?")
    with pytest.raises(FileNotFoundError, match=re.escape(f": did you mean {log_directory}?")):
        ottla.audit(misspelt)


@pytest.mark.parametrize(
    "arguments",
    [{"level": "deep"}, {"fail_on": "never"}, {"threads": 0}, {"max_mb_per_s": 0}],
)
def test_an_argument_out_of_range_is_refused_with_its_range(
    demo: Path, arguments: dict[str, object]
) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"^{name} is "):
        ottla.audit(demo, **arguments)  # type: ignore[arg-type]


@pytest.mark.shared
def test_every_planted_injury_to_batches_is_found_and_nothing_else_is_an_error(
    shared: Path, tmp_path: Path
) -> None:
    """Injuries to side files and between replicas are left out: the audit does not look there."""
    root = tmp_path / "damage"
    results = tmp_path / "results"
    results.mkdir()
    elsewhere = ("index", "replica", "snapshot", "timestamp-wrong", "epochs-start-wrong")
    for case in sorted((shared / "damage" / "cases").iterdir()):
        if any(word in case.name for word in elsewhere) or "txnindex" in case.name:
            continue
        shutil.copytree(case, root / "cases" / case.name)
        log = root / "cases" / case.name / "log"
        result = "".join(ottla.audit(log).json_chunks())
        (results / f"{case.name}.json").write_text(result)
    judge: list[str | Path] = [
        sys.executable,
        shared / "accept" / "damage.py",
        root,
        results,
        "--missed",
        "--false",
    ]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout
    assert len(list(results.iterdir())) > 100


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["kafka-0.10", "kafka-2.8", "kafka-3.9", "kafka-4.1", "kafka-4.1-killed"]
)
def test_what_kafka_wrote_has_no_error_and_the_records_kafka_reads(shared: Path, name: str) -> None:
    corpus = shared / "corpus" / "kafka"
    result = ottla.audit(corpus / name)
    assert [row for row in result.findings if row["severity"] == "error"] == []
    known = {}
    for truth in (corpus / "truth" / name).glob("*-[0-9]*.json"):
        for part in json.loads(truth.read_text())["segments"]:
            known[f"{truth.stem}/{part['file']}"] = (part["batches"], part["records"])
    read = {row["file"]: (row["batches"], row["records"]) for row in result.files if row["is_read"]}
    read.pop("bootstrap.checkpoint", None)
    assert read == {file: known[file] for file in read}
    not_live = ("-delete/", ".deleted")
    assert not [f for f in known.keys() - read.keys() if not any(word in f for word in not_live)]
