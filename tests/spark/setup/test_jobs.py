"""One clear error for a job that failed, however Spark tells of it."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import ottla
import pytest
from ottla.spark.setup.jobs import job

pytestmark = pytest.mark.spark


def failing() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that fails in the worker; nested, as workers know no test."""

    def fail(_items: Iterator[Any]) -> Iterator[Any]:
        raise ValueError("the tape is full\nand more on that")

    return fail


def dying() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that ends the worker's process."""

    def die(_items: Iterator[Any]) -> Iterator[Any]:
        os._exit(3)

    return die


def test_what_a_worker_raised_is_the_error(everywhere: Any) -> None:
    frame = everywhere.range(0, 2, 1, 2).mapInArrow(failing(), "id bigint")
    with (
        pytest.raises(ottla.SparkError) as raised,
        job("counting", everywhere),
    ):
        frame.collect()
    assert str(raised.value) == "counting failed: ValueError: the tape is full"
    assert isinstance(raised.value.__cause__, Exception)


def test_what_a_worker_raised_over_rows_is_the_error(spark: Any) -> None:
    rows = spark.sparkContext.parallelize(range(2), 2).mapPartitions(failing())
    with (
        pytest.raises(ottla.SparkError, match=r"^counting failed: ValueError: the tape is full$"),
        job("counting", spark),
    ):
        rows.collect()


def test_a_worker_that_died_is_the_error(spark: Any) -> None:
    frame = spark.range(0, 2, 1, 2).mapInArrow(dying(), "id bigint")
    with (
        pytest.raises(ottla.SparkError, match="Python worker exited unexpectedly"),
        job("counting", spark),
    ):
        frame.collect()


def test_what_spark_refuses_is_the_error(everywhere: Any) -> None:
    with (
        pytest.raises(ottla.SparkError, match=r"^reading failed: \[PATH_NOT_FOUND\]"),
        job("reading", everywhere),
    ):
        everywhere.read.parquet("nowhere-at-all").collect()


def test_other_errors_pass_unchanged(spark: Any) -> None:
    with (
        pytest.raises(ottla.NotAPartitionError, match="not this"),
        job("reading", spark),
    ):
        raise ottla.NotAPartitionError("not this")
