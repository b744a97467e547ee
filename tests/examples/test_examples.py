"""Every example runs, warnings included, and prints what its README says it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters import configured

EXPECTED = {
    "read_segment.py": ["35 batches, compressed with lz4, none", "85 records", "offsets 0 to 84"],
    "check_fetched.py": [
        "sound: 87 records, every rule kept",
        "cut: whole up to byte 10859",
        "damaged: crc-mismatch, a broker would answer 2",
    ],
    "audit_directory.py": [
        "14 partitions, 1203 records",
        "warning open-transaction in refunds-0/00000000000000000000.log",
        "would raise: open-transaction",
    ],
    "spark_captured.py": [
        "orders: CORRUPT_MESSAGE 3",
        "orders: NONE 33",
        "79 good records, 0 without a key",
        "in quarantine: INVALID_RECORD 2",
        "blamed: customers, record 1: record 1: no key",
    ],
    "spark_partitions.py": [
        "bytes: CORRUPT_MESSAGE 1, NONE 34",
        "orders: NONE 18",
        "customers: CORRUPT_MESSAGE 1, MESSAGE_TOO_LARGE 1, NONE 15",
        "34 accepted, the first refused is CORRUPT_MESSAGE",
    ],
    "spark_audit.py": [
        "14 partitions, 1203 records",
        "open-transaction in refunds-0/00000000000000000000.log",
        "exit code 1",
    ],
    "spark_exactly_once.py": [
        "batch 0 is there already",
        "85 records in Kafka, of 1 batches",
    ],
    "spark_stream.py": [
        "35 records in what is there",
        "85 records in all",
    ],
}
ON_SPARK = frozenset(name for name in EXPECTED if name.startswith("spark_"))


def test_no_example_is_left_out(root: Path) -> None:
    assert {path.name for path in (root / "examples").glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - ON_SPARK))
def test_the_example_runs_and_shows_what_it_promises(root: Path, name: str) -> None:
    result = run(root, name, "-W", "error")
    assert result.stderr == ""
    assert result.returncode == 0
    for expected in EXPECTED[name]:
        assert expected in result.stdout


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ON_SPARK))
def test_the_example_on_spark_shows_what_it_promises(root: Path, tmp_path: Path, name: str) -> None:
    result = run(root, name, **configured(tmp_path))
    # Spark logs to standard error.
    assert result.returncode == 0, result.stderr
    for expected in EXPECTED[name]:
        assert expected in result.stdout


def run(root: Path, name: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, str(root / "examples" / name)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | variables
    )
