"""`make vectors`: Kafka's own answers, held against the engine."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support import vectors

GOLDEN = Path(__file__).parent / "golden" / "histories.jsonl"


def write(directory: Path, kind: str, cases: list[dict[str, Any]]) -> None:
    with gzip.open(directory / f"{kind}.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(case) + "\n" for case in cases)


def golden() -> list[dict[str, Any]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def test_equal_answers_are_counted_and_the_status_is_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = golden()
    write(tmp_path, "history", cases)
    assert vectors.main(tmp_path) == 0
    assert capsys.readouterr().out.endswith(f"history: {len(cases)} of {len(cases)}\n")


def test_another_answer_is_shown_and_the_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = golden()[0]
    case["final"]["log_end"] += 1
    write(tmp_path, "history", [case])
    # A record set without a complete batch, and a log that ends quietly.
    refused = {"code": 87, "exception": "InvalidRecordException"}
    wrong: dict[str, Any] = {"id": "w", "class": "wrong.code", "in": ""}
    write(tmp_path, "decide", [wrong | {"out": refused}, wrong | {"out": {"code": 10}}])
    write(tmp_path, "read", [wrong | {"out": {"batches": [], "end": "CorruptRecordException"}}])
    assert vectors.main(tmp_path) == 1
    out = capsys.readouterr().out
    assert out.endswith("read: 0 of 1\ndecide: 1 of 2\nhistory: 0 of 1\n")
    assert "code 87, Kafka 10" in out
    assert "final log_end" in out


def test_a_directory_without_vectors_is_no_success(tmp_path: Path) -> None:
    assert vectors.main(tmp_path) == 1


@pytest.mark.shared
@pytest.mark.slow
def test_every_shared_vector_has_the_answer_of_kafka(shared: Path) -> None:
    assert vectors.main(shared / "vectors") == 0
