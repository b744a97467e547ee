"""A Spark session with what Ottla's jobs need, for those who have none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ottla.errors import MissingDependencyError, SparkError

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import SparkSession

__all__ = ["is_connect", "is_stopped", "require_pyspark", "session", "spark_version"]

ARROW_BATCH_BYTES = 16 << 20
"""Spark's own bound is 64 MiB, and was 256 MiB in 4.0."""

LOWEST = (4, 0)
"""The first PySpark with Arrow readers, `applyInArrow` and `toArrow`."""


def require_pyspark() -> ModuleType:
    """Give the module `pyspark`.

    Raises:
        MissingDependencyError: it is not installed.
        SparkError: it is older than 4.0.
    """
    try:
        import pyspark
    except ImportError as error:
        raise MissingDependencyError(
            "ottla.spark needs PySpark 4.0 or newer: pip install 'ottla[spark]' "
            "(on a cluster that brings its own PySpark, plain ottla is enough)"
        ) from error
    if spark_version(pyspark.__version__) < LOWEST:
        raise SparkError(
            f"PySpark {pyspark.__version__} is too old: ottla.spark needs 4.0 or newer"
        )
    module: ModuleType = pyspark
    return module


def spark_version(text: str) -> tuple[int, int]:
    """Give major and minor version of Spark's version text, which platforms add words to.

    Example:
        >>> spark_version("4.1.0-amzn-1")
        (4, 1)
    """
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, which has neither RDDs nor a context."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session, or the context under it, was stopped."""
    if is_connect(spark):
        stopped: bool = spark.is_stopped
        return stopped
    return spark.sparkContext._jsc is None  # noqa: SLF001 - PySpark asks the same of itself.


def session(master: str | None = None, app_name: str = "ottla", **conf: object) -> SparkSession:
    """Give the running Spark session, or start one that suits Ottla's jobs.

    A session that runs already is returned untouched. A new one gets what matters and nothing else:

    - workers run this interpreter, unless ``PYSPARK_PYTHON`` names one;
    - workers are reached by Unix domain sockets where Spark has them (4.1 and newer), which
      makes a task four times cheaper to start;
    - rows go to workers in batches of at most 16 MiB, as captured record sets are large, and a
      worker holds a batch of them.

    Args:
        master: Spark's master, such as ``local[4]`` or ``spark://host:7077``, or a Spark Connect
            address, ``sc://host:15002``; default is what Spark is configured to, else ``local[*]``.
        app_name: the name Spark shows.
        conf: more settings, with ``__`` for each dot: ``spark__driver__memory="4g"``. A mapping of
            plain names is given as ``**{"spark.driver.memory": "4g"}``.

    Raises:
        MissingDependencyError: PySpark is not installed.
        SparkError: Spark did not start, in most cases for want of Java 17.

    Example:
        >>> spark = session("local[2]", spark__ui__enabled=False)  # doctest: +SKIP
    """
    pyspark = require_pyspark()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = master is not None and master.startswith("sc://")
    settings: dict[str, object] = {"spark.sql.execution.arrow.maxBytesPerBatch": ARROW_BATCH_BYTES}
    if not remote and spark_version(pyspark.__version__) >= (4, 1):
        settings["spark.python.unix.domain.socket.enabled"] = True
    settings |= {name.replace("__", "."): value for name, value in conf.items()}
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.remote(master) if remote else builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, str(value).lower() if isinstance(value, bool) else value)
    from ottla.spark.jobs import job

    with job(f"starting Spark {pyspark.__version__}"):
        started: SparkSession = builder.getOrCreate()
    return started
