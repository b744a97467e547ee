"""What an audit on Spark holds: the driver at many files, a worker at large segments."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ottla.spark
import pytest

from benches.data import MIB, Shape
from benches.spark.data import write_segment
from benches.spark.processes import jvm_of, peak_resident, python_workers

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
PARTITIONS = 10_000


def simulated(partitions: int) -> dict[str, Any]:
    """What the driver takes for so many partitions of ten files, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "benches.spark.scale", str(partitions)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert ran.stdout, ran.stderr.decode()
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.measures
def test_the_driver_plans_and_merges_a_hundred_thousand_files_within_its_share() -> None:
    found = simulated(PARTITIONS)
    assert found["files"] == 100_000
    assert found["partitions"] == PARTITIONS
    assert found["ranges_of_large_files"] == 10_000
    # A tenth of what a million files may take, beside the interpreter.
    assert found["wanted_bytes"] == 2048 * MIB // 10 + 100 * MIB
    assert found["bytes"] < found["wanted_bytes"]
    # Time grows as the files do: the tests know no clock.
    assert found["seconds"] < 5 * simulated(PARTITIONS // 4)["seconds"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory of processes is read from /proc")
def test_a_worker_keeps_within_256_mib_at_full_level_on_a_gibibyte(
    new_spark: Any, tmp_path: Path
) -> None:
    for number in range(2):
        (tmp_path / f"large-{number}").mkdir()
        write_segment(tmp_path / f"large-{number}" / f"{0:020d}.log", Shape(100), 1024 * MIB)
    result = ottla.spark.audit(new_spark, tmp_path, level="full", split_bytes=1024 * MIB)
    assert result.summary.bytes > 2000 * MIB
    peaks = [peak_resident(pid) for pid in python_workers(jvm_of(new_spark))]
    assert peaks
    assert 0 < max(peaks) <= 256 * MIB
