"""What a session of ours sets, and that it sets nothing else."""

from typing import Any

import ottla.spark
import pytest

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
