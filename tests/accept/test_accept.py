"""The acceptance programs beside the corpora, as they are, and the audit of brokers' logs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.shared

BROKERS = ("kafka-0.10", "kafka-2.8", "kafka-3.9", "kafka-4.1", "kafka-4.1-killed")


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A program under the interpreter in use, with the same modules in reach."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def audited(directory: Path) -> dict[str, Any]:
    done = python(
        "-c", "from ottla.cli import main; main()", "audit", "--format", "json", directory
    )
    assert done.returncode in {0, 1, 2}, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["exit_code"] == done.returncode
    return report


def test_every_batch_and_record_of_the_corpora_equals_the_truth(shared: Path) -> None:
    corpora = (shared / "corpus" / "kafka", shared / "corpus" / "demo")
    done = python(shared / "accept" / "corpus.py", *corpora)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last == "200 of 200 partitions equal: 5308 batches, 18787 records"


def test_every_reading_vector_has_kafkas_outcome_and_records(shared: Path) -> None:
    vectors = shared / "vectors" / "read.jsonl.gz"
    done = python(shared / "accept" / "vectors.py", "read", vectors)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.splitlines()[-1] == "read: 10000 of 10000 equal"


def test_every_planted_injury_is_found_and_nothing_else(shared: Path, tmp_path: Path) -> None:
    program = tmp_path / "audit.py"
    program.write_text("from ottla.cli import main\n\nmain()\n")
    done = python(
        shared / "accept" / "damage.py",
        shared / "damage",
        tmp_path / "results",
        "--run",
        f"{sys.executable} {program} audit --format json {{}}",
        "--json",
        tmp_path / "score.json",
    )
    score = json.loads((tmp_path / "score.json").read_text())
    assert score["missed"] == score["false"] == score["absent"] == []
    assert len(score["noisy"]) <= 10
    assert done.returncode == 0, done.stderr
    assert "exit code fits: 195 of 195" in done.stdout


@pytest.mark.parametrize("name", BROKERS)
def test_what_lies_beside_the_segments_of_any_release_is_lawful(name: str, shared: Path) -> None:
    report = audited(shared / "corpus" / "kafka" / name)
    told = [found for found in report["findings"] if found["name"].endswith("-mismatch")]
    assert told == []


@pytest.mark.parametrize("name", BROKERS)
def test_a_directory_that_a_broker_left_has_no_finding_of_an_error(name: str, shared: Path) -> None:
    report = audited(shared / "corpus" / "kafka" / name)
    assert report["summary"]["batches"] > 0
    assert [found for found in report["findings"] if found["severity"] == "error"] == []


def test_the_demo_has_no_finding_of_an_error(shared: Path) -> None:
    report = audited(shared / "corpus" / "demo" / "broker")
    assert [found for found in report["findings"] if found["severity"] == "error"] == []


def left_open(truth: Path) -> set[tuple[str, int]]:
    """Partition and first offset of what the producing client left open or wrote too late."""
    found = set()
    for transaction in json.loads((truth / "produced.json").read_text())["transactions"]:
        for partition, written in transaction["partitions"].items():
            if transaction["outcome"] == "open":
                found.add((partition, written["firstOffset"]))
            elif transaction["outcome"] == "late":
                found.add((partition, int(written["answer"].partition("@")[2])))
    return found


@pytest.mark.parametrize(
    ("corpus", "broker", "topics"),
    [
        ("demo", "broker", {"refunds"}),
        ("kafka", "kafka-3.9", None),
        ("kafka", "kafka-4.1", {"hanging", "late-write"}),
    ],
)
def test_transactions_without_an_end_are_found_and_no_others(
    corpus: str, broker: str, topics: set[str] | None, shared: Path
) -> None:
    directory = shared / "corpus" / corpus
    expected = left_open(directory / "truth" / broker)
    assert expected
    if topics:
        assert {partition.rpartition("-")[0] for partition, _ in expected} == topics
    found = {
        (f"{finding['topic']}-{finding['partition']}", finding["first_offset"])
        for finding in audited(directory / broker)["findings"]
        if finding["name"] == "open-transaction"
    }
    assert found == expected


def test_every_view_is_what_a_real_consumer_got(shared: Path) -> None:
    corpora = (shared / "corpus" / "kafka", shared / "corpus" / "demo")
    done = python(shared / "accept" / "views.py", *corpora)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.splitlines()[-1] == "339 of 339 views equal"
