"""Functions of Ottla in the Python workers of Spark."""

import gc
import os
from collections.abc import Iterator
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


def test_collecting_garbage_after_a_task_walks_through_no_modules(spark: Any) -> None:
    def counted(_: Iterator[int]) -> Iterator[tuple[int, int, int]]:
        yield os.getpid(), gc.get_freeze_count(), len(gc.get_objects())

    numbers = spark.sparkContext.parallelize(range(16), 16)
    unchanged = numbers.mapPartitions(run_rows_in_worker(*UNCHANGED))
    unchanged.collect()
    counts = numbers.mapPartitions(counted).collect()
    assert [each for each in counts if each[1] < 20 * each[2]] == []
    # Tasks that import nothing add nothing to what is never freed.
    unchanged.collect()
    before = {worker: frozen for worker, frozen, _ in counts}
    after = {worker: frozen for worker, frozen, _ in numbers.mapPartitions(counted).collect()}
    assert after == {worker: before.get(worker) for worker in after}
