"""Exceptions of Spark, and the line of their text that says what happened."""

from __future__ import annotations

import sys

__all__ = ["errors_of_spark", "sentence_of"]

TRACEBACK = "Traceback (most recent call last):"


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

    For an error in a Python worker, it is the line after the last traceback; for any other, the
    first line, or the second if the first only names the failed call.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    starts = [at for at, line in enumerate(lines) if line.endswith(TRACEBACK)]
    if starts:
        lines = [line for line in lines[starts[-1] + 1 :] if not line[0].isspace()] or lines
    elif len(lines) > 1 and lines[1].startswith(": "):
        lines = lines[1:]
    return lines[0].removeprefix(": ").strip() if lines else type(error).__name__
