"""A Spark session with what Ottla's jobs need, for those who have none."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ottla.errors import MissingDependencyError, SparkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from pyspark.sql import SparkSession

__all__ = ["is_connect", "is_stopped", "require_pyspark", "session", "silence", "spark_version"]

ANSWER_WITHIN_S = 30.0
"""A server of Spark Connect that runs answers in less. PySpark itself asks for many minutes."""

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
        SparkError: Spark did not start, in most cases for want of Java 17; or no server of Spark
            Connect answers within 30 seconds.

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
    settings["spark.app.name"] = app_name
    if master is not None:
        settings["spark.remote" if remote else "spark.master"] = master
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
    from ottla.spark.jobs import job

    # An address of Spark Connect may hold a token.
    where = f" at {master}" if master is not None and not remote else ""
    with job(f"starting Spark {pyspark.__version__}{where}"):
        if not _is_for_connect(texts):
            _start_jvm(texts)
        if remote:
            _await_server(master or "")
        started: SparkSession = SparkSession.builder.config(map=texts).getOrCreate()
    return started


def _is_for_connect(settings: Mapping[str, str]) -> bool:
    """Whether the session will be one of Spark Connect, as PySpark decides."""
    from pyspark.sql.utils import is_remote
    from pyspark.util import spark_connect_mode

    mode = settings.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    asked = "spark.remote" in settings or "SPARK_REMOTE" in os.environ
    return asked or is_remote() or mode.lower() == "connect" or spark_connect_mode() == "1"


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, if there is none.

    Interrupted while it waits for a JVM, PySpark loses hold of it, and it never ends. One that has
    answered ends with this process, whatever the session's start is at.
    """
    from pyspark import SparkConf, SparkContext

    with _interrupt_after():
        conf = SparkConf().setAll(list(settings.items()))
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - All that starts no more.


def _await_server(url: str) -> None:
    """Wait until a server of Spark Connect takes connections.

    Raises:
        SparkError: none does.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(url)
    with builder.toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(ANSWER_WITHIN_S)
        except grpc.FutureTimeoutError as error:
            # Not the whole URL, which may hold a token.
            raise SparkError(
                f"no server of Spark Connect answers at {builder.endpoint} within"
                f" {ANSWER_WITHIN_S:.0f} s: is it running, and is that its host and port?"
            ) from error


def silence() -> None:
    """Let the JVM of this process log no more, whatever it is at: the process is about to end."""
    from pyspark import SparkContext

    jvm = SparkContext._jvm  # noqa: SLF001 - There is no other way to a JVM without a session.
    if jvm is None:
        return
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)


@contextmanager
def _interrupt_after() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
