"""A Spark session with what Ottla's jobs need, for those who have none."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.errors import SparkError
from ottla.spark.setup.jobs import job
from ottla.spark.work.kind import require_pyspark, spark_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["session"]

ANSWER_WITHIN_S = 30.0
"""A server of Spark Connect that runs answers in less. PySpark itself asks for many minutes."""

ARROW_BATCH_BYTES = 16 << 20
"""Spark's own bound is 64 MiB, and was 256 MiB in 4.0."""


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
