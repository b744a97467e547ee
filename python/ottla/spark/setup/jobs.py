"""One clear error for a failed job, instead of Spark's stack traces."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.errors import SparkError
from ottla.spark.setup.causes import errors_of_spark, sentence_of
from ottla.spark.setup.doctor import doctor
from ottla.spark.work.kind import is_stopped, require_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["job"]


def _is_interrupted(error: BaseException) -> bool:
    """Whether Spark raised an error because Ctrl-C cancelled the job that PySpark waited for."""
    context = error.__context__
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            return True
        context = context.__context__
    return False


@contextmanager
def job(what: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Turns what Spark raises inside the block into one clear error.

    Args:
        what: what the block does, as the subject of a sentence: ``"auditing s3://bucket/logs"``.
        spark: the session that the block uses; after a failure it is checked for the reason.

    Raises:
        SparkError: the session is stopped, or Spark raised an error. The message has one sentence
            on the cause and one for each problem that `ottla.spark.doctor` finds; Spark's own error
            is its ``__cause__``.

    Example:
        >>> with job("counting", spark):  # doctest: +SKIP
        ...     spark.range(8).count()
    """
    require_pyspark()
    if spark is not None and is_stopped(spark):
        raise SparkError(f"{what} needs a running session, and this one is stopped")
    try:
        yield
    except errors_of_spark() as error:
        if _is_interrupted(error):
            raise KeyboardInterrupt from error
        sentences = [f"{what} failed: {sentence_of(error)}", *doctor(spark).failures()]
        raise SparkError("\n".join(sentences)) from error
