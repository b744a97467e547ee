"""`make vectors`: Kafka's own answers, held against the engine."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support import vectors

GOLDEN = Path(__file__).parent / "golden" / "histories.jsonl"
SAMPLE = Path(__file__).parent / "samples" / "decide.jsonl.gz"


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


def accepted(*, in_place: bool, codec: int) -> dict[str, Any]:
    """A decision of the sample that stores batches of a codec."""
    for line in gzip.decompress(SAMPLE.read_bytes()).splitlines():
        case: dict[str, Any] = json.loads(line)
        out = case["out"]
        codecs = {row[2] & 7 for row in out.get("stored", [])}
        if out.get("in_place") is in_place and codecs == {codec} and "metrics" not in out:
            return case
    raise LookupError(codec)


@pytest.mark.parametrize("codec", [0, 1, 3, 4], ids=["none", "gzip", "lz4", "zstd"])
@pytest.mark.parametrize("in_place", [True, False], ids=["kept", "rebuilt"])
def test_a_stored_byte_other_than_kafkas_is_a_difference(codec: int, *, in_place: bool) -> None:
    case = accepted(in_place=in_place, codec=codec)
    assert vectors.decide(case) == []
    case["out"]["stored_sha"] = "0" * 32
    assert [found.split()[0] for found in vectors.decide(case)] == ["stored_sha"]


def test_what_another_encoder_of_snappy_wrote_is_compared_by_its_records() -> None:
    case = accepted(in_place=False, codec=2)
    case["out"]["stored_sha"] = "0" * 32
    assert vectors.decide(case) == []
    case["out"]["content"] = "0" * 32
    assert vectors.decide(case) == ["stored records differ"]


@pytest.mark.parametrize("meter", vectors.METERS)
def test_a_meter_that_counts_other_than_kafkas_is_a_difference(meter: str) -> None:
    case = accepted(in_place=True, codec=0)
    case["out"]["metrics"] = f"{meter}*2"
    assert vectors.decide(case) == [f"{vectors.METERS[meter]} 0, Kafka 2"]


def test_a_directory_without_vectors_is_no_success(tmp_path: Path) -> None:
    assert vectors.main(tmp_path) == 1


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["vectors", "vectors-wide"])
def test_every_shared_vector_has_the_answer_of_kafka(corpus: str, shared: Path) -> None:
    assert vectors.main(shared / corpus) == 0
