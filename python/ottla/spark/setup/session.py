"""A Spark session with the settings that Ottla's jobs need."""

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
from ottla.spark.work.private import endpoint_of_connect, is_for_connect, start_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["session"]

ANSWER_WITHIN_S = 30.0
"""A Spark Connect server that runs answers faster. PySpark itself waits for many minutes."""

ARROW_BATCH_BYTES = 16 << 20
"""Spark's own limit is 64 MiB, and was 256 MiB in 4.0."""


def session(master: str | None = None, app_name: str = "ottla", **conf: object) -> SparkSession:
    """Returns the running Spark session, or starts one that suits Ottla's jobs.

    A running session is returned unchanged. A new one gets only the settings that matter:

    - workers run this interpreter, unless ``PYSPARK_PYTHON`` names one;
    - workers are connected by Unix domain sockets where Spark supports them (4.1 and newer), which
      makes starting a task four times cheaper;
    - rows are sent to workers in batches of at most 16 MiB, because captured record sets are large
      and a worker holds a batch of them.

    Args:
        master: Spark's master, such as ``local[4]`` or ``spark://host:7077``, or a Spark Connect
            address, ``sc://host:15002``; by default as Spark is configured, else ``local[*]``.
        app_name: the name that Spark shows.
        conf: further settings, with ``__`` for each dot: ``spark__driver__memory="4g"``. A mapping
            with plain names is passed as ``**{"spark.driver.memory": "4g"}``.

    Raises:
        MissingDependencyError: PySpark is not installed.
        SparkError: Spark did not start, usually because Java 17 is missing; or no Spark Connect
            server answers within 30 seconds.

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
    if spark_version(pyspark.__version__) >= (4, 1) and not remote:
        settings["spark.python.unix.domain.socket.enabled"] = True
    settings |= {name.replace("__", "."): value for name, value in conf.items()}
    settings["spark.app.name"] = app_name
    if master is not None:
        settings["spark.remote" if remote else "spark.master"] = master
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
    # A Spark Connect address may contain a token.
    where = f" at {master}" if master is not None and not remote else ""
    with job(f"starting Spark {pyspark.__version__}{where}"):
        if not is_for_connect(texts):
            _start_jvm(texts)
        if remote:
            _await_server(master or "")
        started: SparkSession = SparkSession.builder.config(map=texts).getOrCreate()
    return started


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Starts the JVM of this process, if there is none.

    If PySpark is interrupted while it waits for a starting JVM, that JVM never ends. One that has
    answered ends with this process, however far the session has started.
    """
    with _delay_interrupt():
        start_jvm(settings)


def _await_server(url: str) -> None:
    """Waits until a Spark Connect server accepts connections.

    Raises:
        SparkError: none does in time.
    """
    import grpc

    endpoint, channel = endpoint_of_connect(url)
    with channel:
        try:
            grpc.channel_ready_future(channel).result(ANSWER_WITHIN_S)
        except grpc.FutureTimeoutError as error:
            # Only the endpoint: the URL may contain a token.
            raise SparkError(
                f"no Spark Connect server answers at {endpoint} within"
                f" {ANSWER_WITHIN_S:.0f} s: is it running, and are host and port correct?"
            ) from error


@contextmanager
def _delay_interrupt() -> Iterator[None]:
    """Delays Ctrl-C until the end of the block."""
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
