"""Everything of PySpark that is used and not documented, for each release from 3.5 to 4.3.

No other module of Ottla touches it. Each function says why the documented way does not serve, and
`tests/spark/work/test_private.py` holds each of them with every release.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = [
    "endpoint_of_connect",
    "is_connect",
    "is_context_stopped",
    "is_for_connect",
    "java_of",
    "map_in_arrow_without_pandas",
    "silence_jvm",
    "start_jvm",
]


def is_connect(of_session: object) -> bool:
    """Whether a session, frame or column is one of Spark Connect, whose classes are private."""
    return type(of_session).__module__.startswith("pyspark.sql.connect")


def is_context_stopped(context: SparkContext) -> bool:
    """Whether a context is stopped, which it does not say."""
    return context._jsc is None


def java_of(context: SparkContext) -> str:
    """Returns the version of the driver's Java: the context knows that of Spark only."""
    version: str = context._jvm.System.getProperty("java.version")
    return version


def is_for_connect(settings: Mapping[str, str]) -> bool:
    """Whether a session with these settings will use Spark Connect, by PySpark's own rules."""
    from pyspark.sql.utils import is_remote

    if "spark.remote" in settings or "SPARK_REMOTE" in os.environ or is_remote():
        return True
    try:
        from pyspark.util import spark_connect_mode
    except ImportError:
        return False  # PySpark 3.5 has no other way.
    mode = settings.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    return mode.lower() == "connect" or spark_connect_mode() == "1"


def start_jvm(settings: Mapping[str, str]) -> None:
    """Starts the JVM of this process, if there is none, and no session."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))


def silence_jvm() -> None:
    """Turns off logging in the JVM of this process: a session's level spares some loggers."""
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    if jvm is None:
        return
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)


def endpoint_of_connect(url: str) -> tuple[str, Any]:
    """Returns the endpoint of a Spark Connect address, and a gRPC channel to it.

    PySpark waits for many minutes for a server, which only its channel can shorten.
    """
    from pyspark.sql.connect.client import ChannelBuilder

    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError:
        DefaultChannelBuilder = ChannelBuilder  # noqa: N806 - PySpark 3.5.
    builder = DefaultChannelBuilder(url)
    return builder.endpoint, builder.toChannel()


def map_in_arrow_without_pandas(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: str | StructType,
) -> DataFrame:
    """Returns `frame.mapInArrow(function, columns)`, which asks for pandas without using it.

    Only for classic Spark: Spark Connect needs pandas itself.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction

    try:
        from pyspark.util import PythonEvalType
    except ImportError:
        from pyspark.rdd import PythonEvalType  # PySpark 3.5.
    udf = UserDefinedFunction(
        function, returnType=columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = udf(*(frame[name] for name in frame.columns))._jc
    is_barrier = False
    if frame.sparkSession.version.startswith("3."):
        java = frame._jdf.pythonMapInArrow(column.expr(), is_barrier)
    else:
        java = frame._jdf.mapInArrow(column, is_barrier, None)
    return DataFrame(java, frame.sparkSession)
