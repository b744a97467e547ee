"""What a session of ours sets, and that it sets nothing else."""

import json
import subprocess
import sys
from typing import Any

import ottla.spark
import pyspark
import pytest
from support.clusters import environ

pytestmark = pytest.mark.spark


def test_a_session_has_what_matters(spark: Any) -> None:
    assert spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == str(16 << 20)
    if tuple(map(int, spark.version.split(".")[:2])) >= (4, 1):
        assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"


def test_a_session_that_runs_is_given_untouched(spark: Any) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    other = "true" if before == "false" else "false"
    assert ottla.spark.session("local[7]", spark__sql__ansi__enabled=other) is spark
    assert spark.conf.get("spark.sql.ansi.enabled") == before


def test_a_session_has_what_the_doctor_asks_of_settings(spark: Any) -> None:
    settings = {
        check.name: check.status
        for check in ottla.spark.doctor(spark).checks
        if check.name.startswith("spark.")
    }
    assert "spark.sql.ansi.enabled" in settings
    assert set(settings.values()) == {"ok"}


OWN = """
import json
import os
import ottla.spark

spark = ottla.spark.session(
    "local[1]",
    "shop",
    spark__ui__enabled=False,
    spark__python__unix__domain__socket__enabled=False,
    **{"spark.sql.shuffle.partitions": 3, "spark.sql.execution.arrow.maxBytesPerBatch": "5m"},
)
names = (
    "spark.app.name",
    "spark.master",
    "spark.ui.enabled",
    "spark.python.unix.domain.socket.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.execution.arrow.maxBytesPerBatch",
)
found = {name: spark.conf.get(name, None) for name in names}
warned = [check.name for check in ottla.spark.doctor(spark).checks if check.status == "warn"]
print(json.dumps([found, warned, os.environ["PYSPARK_PYTHON"]]))
spark.stop()
"""


@pytest.mark.slow
def test_settings_of_ones_own_come_before_ours() -> None:
    path = ":".join(path for path in sys.path if path)
    with environ(PYTHONPATH=path, PYSPARK_PYTHON=None):
        ran = subprocess.run(
            [sys.executable, "-c", OWN], capture_output=True, text=True, check=False, timeout=300
        )
    assert ran.returncode == 0, ran.stderr
    found, warned, python = json.loads(ran.stdout.splitlines()[-1])
    assert found == {
        "spark.app.name": "shop",
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxBytesPerBatch": "5m",
    }
    # Older ones have no such setting.
    if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1):
        assert "spark.python.unix.domain.socket.enabled" in warned
    assert python == sys.executable
