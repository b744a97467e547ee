"""Nothing of ours needs pandas, though PySpark's own methods ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters import configured

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import sys
import ottla.spark
from ottla.spark.audit import runner
spark = ottla.spark.session("local[1]", spark__ui__enabled=False)
for runner.DRIVER_LOGS in (0, 2_000):
    result = ottla.spark.audit(spark, sys.argv[1], topics=["orders"])
    print(result.records.count(), result.exit_code)
"""


def test_an_audit_needs_no_pandas_on_driver_and_workers(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text("raise ImportError('there is no pandas here')\n")
    # Workers have the path of the driver.
    paths = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    paths += "os.environ['PYTHONPATH'] = os.pathsep.join(sys.path)\n"
    done = subprocess.run(
        [sys.executable, "-c", paths + PROGRAM, demo],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | configured(tmp_path),
    )
    assert done.stdout.split() == ["172", "0", "172", "0"], done.stderr
