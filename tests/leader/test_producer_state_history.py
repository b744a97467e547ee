"""Whole histories: a leader answers as Apache Kafka did, operation by operation, and at the end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.histories import differences

GOLDEN = Path(__file__).parents[1] / "golden" / "histories.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['class']}-{case['id']}" for case in CASES])
def test_history_goes_as_in_kafka(case: dict[str, Any]) -> None:
    assert differences(case) == []


@pytest.mark.shared
@pytest.mark.slow
def test_every_history_of_the_vectors_goes_as_in_kafka(shared: Path) -> None:
    with gzip.open(shared / "vectors" / "history.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    wrong = {case["id"]: found for case in cases if (found := differences(case))}
    assert len(cases) == 2000
    assert wrong == {}
