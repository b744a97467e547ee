"""A Spark session that lives as long as a command, and prints no more than it has to."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.spark.setup.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["MASTERS", "session_of_command"]

LOG_SETTINGS = "log4j2.properties"
"""Of the JVM, beside this module."""

MASTERS = ("local", "spark://", "yarn", "k8s://", "sc://")
"""How masters of Spark begin."""


@contextmanager
def session_of_command(master: str | None, *, app_name: str) -> Iterator[SparkSession]:
    """A session for the block, stopped behind it.

    Args:
        master: as of `ottla.spark.session`.
        app_name: the name Spark shows.
    """
    # What the bridge to the JVM logs as traces, run() says in a line.
    logging.getLogger().addHandler(logging.NullHandler())
    # PySpark warns of versions of pandas, which nothing here uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(Path(__file__).with_name(LOG_SETTINGS)))
    settings = {}
    if master is None or not master.startswith("sc://"):
        # A server of Spark Connect has set its own.
        settings = {
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": sys.stderr.isatty(),
        }
    spark = None
    try:
        spark = session(master, app_name=app_name, **settings)
        # PySpark's own handler asks by a connection that already waits for an answer.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield spark
    except KeyboardInterrupt:
        _silence()
        raise
    finally:
        if spark is not None:
            spark.stop()


def _silence() -> None:
    """Let the JVM of this process log no more, whatever it is at: the process is about to end."""
    from pyspark import SparkContext

    jvm = SparkContext._jvm  # noqa: SLF001 - There is no other way to a JVM without a session.
    if jvm is None:
        return
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)
