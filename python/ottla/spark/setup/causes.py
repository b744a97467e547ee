"""Exceptions of Spark, and the line of their text that says what happened."""

from __future__ import annotations

import re
import sys

__all__ = ["errors_of_spark", "is_cancelled", "sentence_of"]

TRACEBACK = "Traceback (most recent call last):"
CAUSED_BY = "Caused by: "
# What is seen of a worker that ended, or of a class that is not there: the cause stands around it.
SYMPTOMS = (".ClassNotFoundException", ".EOFException", ".SocketException")
CANCELLED = re.compile(r"\bJob \d+ cancelled\b|\[(SPARK_JOB_CANCELLED|OPERATION_CANCELED)\]")


def errors_of_spark() -> tuple[type[Exception], ...]:
    """Returns what PySpark raises: its own errors, and those of py4j and gRPC."""
    from pyspark.errors import PySparkException

    found: list[type[Exception]] = [PySparkException]
    if "py4j" in sys.modules:
        from py4j.protocol import Py4JError

        found.append(Py4JError)
    if "grpc" in sys.modules:
        from grpc import RpcError

        found.append(RpcError)
    return tuple(found)


def sentence_of(error: Exception) -> str:
    """Returns the line of a Spark error that says what happened.

    It is that of the innermost cause: the line after the last traceback of a Python worker, or the
    last ``Caused by:`` that says more than the name of a class, whichever comes later. Without
    either, it is the first line, or the second if the first only names the failed call.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    cause = max((at for at, line in enumerate(lines) if _is_cause(line)), default=None)
    if cause is None:
        if len(lines) > 1 and lines[1].startswith(": "):
            lines = lines[1:]
    elif lines[cause].endswith(TRACEBACK):
        lines = [line for line in lines[cause + 1 :] if not line[0].isspace()] or lines[cause:]
    else:
        lines = lines[cause:]
    if not lines:
        return type(error).__name__
    sentence = lines[0].removeprefix(": ").strip().removeprefix(CAUSED_BY)
    return sentence.removeprefix("org.apache.spark.SparkException: ")


def is_cancelled(sentence: str) -> bool:
    """Whether a sentence of Spark says that somebody cancelled the job."""
    return CANCELLED.search(sentence) is not None


def _is_cause(line: str) -> bool:
    """Whether a line begins a cause, and says more of it than the name of a class."""
    if line.endswith(TRACEBACK):
        return True
    name, _, rest = line.removeprefix(CAUSED_BY).partition(": ")
    is_class = line.startswith(CAUSED_BY) and " " not in name
    return is_class and bool(rest.strip()) and not name.endswith(SYMPTOMS)
