"""Plurals, names of codecs and times in what the audit says."""

import re
from pathlib import Path

import ottla
import pytest
from ottla.cli.report import print_report
from support.commands import Run
from support.small_log import PARTITION, batch, write_checkpoint, write_orders

CLUMSY = {
    "one of many": re.compile(
        r"(?<![\d.,-])1 (?:offset|record|batch|byte|error|warning|segment|sequence|zero)(?:s|es)\b"
    ),
    "many of one": re.compile(
        r"(?<![\d.,-])(?:0|[2-9]|\d[\d,]*\d)"
        r" (?:offset|record|batch|byte|segment|sequence|zero)\b(?! \d)"
    ),
    "more than all": re.compile(r"\b([2-9]|\d\d+) of 1 partition"),
    "a range of one": re.compile(r"offsets (\d+) to \1\b"),
    "a codec by number": re.compile(r"(?<!unknown )\bcodec [0-4]\b"),
    "a word of itself": re.compile(r"\b(\w{4,}) of \1\b"),
    "raw milliseconds": re.compile(r"\b\d{5,} ms\b|\b(?:timestamp )?1[67]\d{11}\b"),
}
"""What no sentence has, by its fault."""


def faults(text: str) -> list[tuple[str, str]]:
    joined = " ".join(text.split())
    return [
        (fault, joined[max(found.start() - 40, 0) : found.end() + 20])
        for fault, pattern in CLUMSY.items()
        for found in pattern.finditer(joined)
    ]


def test_the_patterns_find_the_faults() -> None:
    text = "the last 1 offsets, 2 of 1 partition, offsets 5 to 5, codec 1, 2147483647 ms, 3 record"
    text += " and a timestamp of timestamp 7"
    assert {fault for fault, _ in faults(text)} == CLUMSY.keys()


def test_one_missing_offset_is_one_and_one_partition_is_one(run: Run, tmp_path: Path) -> None:
    write_orders(tmp_path)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(tmp_path / name, {PARTITION: 19})
    out = run("audit", tmp_path, "--all").out
    assert "the last offset is missing" in " ".join(out.split())
    assert " in 1 of 1 partition\n" in out
    assert faults(out) == []


@pytest.mark.parametrize("columns", [30, 80])
def test_the_demo_is_well_worded(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert faults(run("audit", demo, "--all").out) == []


@pytest.mark.parametrize("timestamp", [2**62, 0])
def test_a_record_that_retention_goes_by_is_well_worded(
    run: Run, tmp_path: Path, timestamp: int
) -> None:
    partition = tmp_path / PARTITION
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(batch(0, timestamp=timestamp))
    out = run("audit", tmp_path, "--all").out
    assert "retention by time" in " ".join(out.split())
    assert faults(out) == []


@pytest.mark.shared
def test_every_damage_is_well_worded(
    shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    clumsy = {}
    for case in sorted((shared / "damage" / "cases").iterdir()):
        replicas = sorted((case / "log").glob("replica-*"))
        result = ottla.audit(replicas or case / "log")
        print_report(result, is_complete=True)
        sentences = [str(row["message"]) for row in (*result.findings, *result.events)]
        found = faults("\n".join([capsys.readouterr().out, *sentences]))
        if found:
            clumsy[case.name] = found
    assert clumsy == {}
