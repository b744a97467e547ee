"""The kind of a Spark session: its version, classic or Spark Connect, running or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import MissingDependencyError, SparkError

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import SparkSession

__all__ = ["is_connect", "is_stopped", "require_pyspark", "spark_version"]

MIN_VERSION = (4, 0)
"""The first PySpark with Arrow readers, `applyInArrow` and `toArrow`."""


def require_pyspark() -> ModuleType:
    """Returns the module `pyspark`.

    Raises:
        MissingDependencyError: it is not installed.
        SparkError: it is older than 4.0.
    """
    try:
        import pyspark
    except ImportError as error:
        raise MissingDependencyError(
            "ottla.spark needs PySpark 4.0 or newer: pip install 'ottla[spark]' "
            "(on a cluster with its own PySpark, ottla without extras is enough)"
        ) from error
    if spark_version(pyspark.__version__) < MIN_VERSION:
        raise SparkError(
            f"PySpark {pyspark.__version__} is too old: ottla.spark needs 4.0 or newer"
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


def is_connect(spark: SparkSession) -> bool:
    """Whether the session uses Spark Connect, which has neither RDDs nor a context."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session, or its context, is stopped."""
    if is_connect(spark):
        stopped: bool = spark.is_stopped
        return stopped
    return spark.sparkContext._jsc is None  # noqa: SLF001 - as PySpark does internally.
