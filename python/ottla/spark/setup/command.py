"""A Spark session for the duration of a command, with as little output as possible."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.spark.setup.session import session
from ottla.spark.work.private import silence_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["MASTERS", "session_of_command"]

LOG_SETTINGS = "log4j2.properties"
"""Logging of the JVM, beside this module."""

MASTERS = ("local", "spark://", "yarn", "k8s://", "sc://")
"""Prefixes of Spark masters."""


@contextmanager
def session_of_command(master: str | None, *, app_name: str) -> Iterator[SparkSession]:
    """Yields a session, and stops it at the end of the block.

    Args:
        master: see `ottla.spark.session`.
        app_name: the name that Spark shows.
    """
    # py4j logs stack traces of errors that run() prints as one line.
    logging.getLogger().addHandler(logging.NullHandler())
    # PySpark warns about versions of pandas, which is not used here.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(Path(__file__).with_name(LOG_SETTINGS)))
    settings = {}
    if master is None or not master.startswith("sc://"):
        # A Spark Connect server has its own settings.
        settings = {
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": sys.stderr.isatty(),
        }
    spark = None
    try:
        spark = session(master, app_name=app_name, **settings)
        # PySpark's handler would use a connection that is already waiting for an answer.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield spark
    except KeyboardInterrupt:
        silence_jvm()
        raise
    finally:
        if spark is not None:
            spark.stop()
