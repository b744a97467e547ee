"""One clear error for a failed job, instead of Spark's stack traces."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.errors import SparkError
from ottla.spark.setup.causes import errors_of_spark, is_cancelled, sentence_of
from ottla.spark.setup.doctor import doctor
from ottla.spark.work.kind import is_stopped, require_pyspark, require_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["job"]


NO_SOURCE = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: ottla"


def _is_interrupted(error: BaseException, before: BaseException | None) -> bool:
    """Whether Spark raised an error because Ctrl-C cancelled the job that PySpark waited for.

    `before` was being handled when the job began: what interrupted that is another matter.
    """
    context = error.__context__
    while context is not None and context is not before:
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
            on the cause and one for each problem that `ottla.spark.doctor` finds, which does not
            look after a job that was cancelled; Spark's own error is its ``__cause__``.

    Example:
        >>> with job("counting", spark):  # doctest: +SKIP
        ...     spark.range(8).count()
    """
    require_pyspark()
    if spark is not None and is_stopped(spark):
        raise SparkError(f"{what} needs a running session, and this one is stopped")
    before = sys.exc_info()[1]
    try:
        yield
    except errors_of_spark() as error:
        if _is_interrupted(error, before):
            raise KeyboardInterrupt from error
        sentence = sentence_of(error)
        sentences = [f"{what} failed: {sentence}", *_reasons(sentence, error, spark)]
        raise SparkError("\n".join(sentences)) from error


def _reasons(sentence: str, error: Exception, spark: SparkSession | None) -> list[str]:
    """Returns sentences on why a job failed, beside that of Spark's error."""
    if is_cancelled(sentence):
        # Whoever cancelled it knows why, and wants no further job.
        return []
    if NO_SOURCE in str(error):
        try:
            require_source()
        except SparkError as too_old:
            return [str(too_old)]
        return ["Ottla is not where queries are planned: call ottla.spark.ship(spark)"]
    return doctor(spark).failures()
