"""The kind of a Spark session: its version, classic or Spark Connect, running or stopped."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.errors import MissingDependencyError, SparkError
from ottla.spark.work.private import is_connect, is_context_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from pyspark.sql import SparkSession

__all__ = [
    "MIN_VERSION",
    "SOURCE_VERSION",
    "describing_jobs",
    "interrupt_jobs",
    "is_connect",
    "is_stopped",
    "require_pyspark",
    "require_source",
    "spark_version",
    "tag_jobs",
]

MIN_VERSION = (3, 5)
"""The first PySpark that adds archives to sessions of Spark Connect."""

SOURCE_VERSION = (4, 0)
"""The first PySpark with data sources in Python."""

JOB_DESCRIPTION = "spark.job.description"


def require_pyspark() -> ModuleType:
    """Returns the module `pyspark`.

    Raises:
        MissingDependencyError: it is not installed.
        SparkError: it is older than 3.5.
    """
    try:
        import pyspark
    except ImportError as error:
        raise MissingDependencyError(
            "ottla.spark needs PySpark 3.5 or newer: pip install 'ottla[spark]' "
            "(on a cluster with its own PySpark, ottla without extras is enough)"
        ) from error
    if spark_version(pyspark.__version__) < MIN_VERSION:
        raise SparkError(
            f"PySpark {pyspark.__version__} is too old: ottla.spark needs 3.5 or newer"
        )
    module: ModuleType = pyspark
    return module


def spark_version(text: str) -> tuple[int, int]:
    """Returns major and minor version of a Spark version, to which platforms add words.

    Example:
        >>> spark_version("4.1.0-amzn-1")
        (4, 1)
    """
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def require_source() -> None:
    """Raises an error in one line if PySpark has no data sources in Python.

    Raises:
        SparkError: it is older than 4.0.
    """
    version = require_pyspark().__version__
    if spark_version(version) < SOURCE_VERSION:
        raise SparkError(
            f"format('ottla') needs PySpark 4.0 or newer, this is {version}: "
            "ottla.spark.read(spark, path) reads batches and records"
        )


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session, or its context, is stopped."""
    if is_connect(spark):
        stopped: bool = spark.is_stopped
        return stopped
    return is_context_stopped(spark.sparkContext)


def tag_jobs(spark: SparkSession, tag: str) -> None:
    """Gives a tag to the jobs that this thread starts from now on; those over RDDs, too."""
    if is_connect(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)


@contextmanager
def describing_jobs(spark: SparkSession, description: str) -> Iterator[None]:
    """Has Spark's UI show what the jobs do that this thread starts in the block.

    A description that the user has set stays. Spark Connect has none.
    """
    context = None if is_connect(spark) else spark.sparkContext
    if context is None or context.getLocalProperty(JOB_DESCRIPTION) is not None:
        yield
        return
    context.setJobDescription(f"Ottla: {description}")
    try:
        yield
    finally:
        # Whoever stops the session has no further jobs to describe.
        if not is_context_stopped(context):
            context.setLocalProperty(JOB_DESCRIPTION, None)


def interrupt_jobs(spark: SparkSession, tag: str) -> None:
    """Cancels the jobs with a tag."""
    if is_connect(spark):
        spark.interruptTag(tag)
    else:
        spark.sparkContext.cancelJobsWithTag(tag)
