"""Functions of Ottla in the Python workers of Spark."""

from typing import Any

import pytest
from ottla.spark.work.worker import run_in_worker, run_rows_in_worker

pytestmark = pytest.mark.spark

# A target takes a payload and gives a function of an iterator: `partial(iter)` hands it through.
UNCHANGED = ("functools:partial", iter)


def test_batches_go_through_a_function_in_the_workers(everywhere: Any) -> None:
    frame = everywhere.range(0, 6, 1, 3).mapInArrow(run_in_worker(*UNCHANGED), "id bigint")
    assert [row.id for row in frame.collect()] == list(range(6))


def test_rows_go_through_a_function_in_the_workers(spark: Any) -> None:
    rows = spark.sparkContext.parallelize(range(6), 3)
    assert rows.mapPartitions(run_rows_in_worker(*UNCHANGED)).collect() == list(range(6))
