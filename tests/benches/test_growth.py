"""What the growth bench makes is what it says: so many of one thing, and nothing else."""

from collections import Counter
from pathlib import Path

import ottla
import pytest

from benches.growth import DIMENSIONS

FOUND = {
    "open transactions": Counter({"open-transaction": 6}),
    "gaps": Counter({"offset-gap": 5}),
    "repeats": Counter({"offset-repeat": 6}),
    "damage": Counter({"crc-mismatch": 6}),
    "damaged partitions": Counter({"crc-mismatch": 6}),
    "unknown files": Counter({"unknown-file": 6}),
}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_log_of_a_dimension_has_its_findings_and_no_others(
    dimension: str, tmp_path: Path
) -> None:
    write_log, _ = DIMENSIONS[dimension]
    write_log(tmp_path / "logs", 6)
    result = ottla.audit(tmp_path / "logs")
    assert Counter(row["name"] for row in result.findings) == FOUND.get(dimension, Counter())


@pytest.mark.parametrize(
    ("dimension", "table", "count"),
    [
        ("producers", "producers", 6),
        ("closed transactions", "transactions", 6),
        ("segments", "timeline", 6),
        ("leader epochs", "epochs", 6),
        ("partitions", "metrics", 6),
        ("batches", "batches", 6),
    ],
)
def test_a_log_of_a_dimension_has_as_many_as_were_asked_for(
    dimension: str, table: str, count: int, tmp_path: Path
) -> None:
    write_log, _ = DIMENSIONS[dimension]
    write_log(tmp_path / "logs", 6)
    assert len(list(getattr(ottla.audit(tmp_path / "logs"), table))) == count
