"""Functions of SQL: the records of a path, and verdicts on record sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.captured.columns import VERDICT_COLUMNS, verdict_schema
from ottla.spark.captured.options import Config, JudgeContext, check_config
from ottla.spark.captured.rows import verdict_row
from ottla.spark.setup.register import register_source
from ottla.spark.source.tables import struct_of
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.worker import run_calls_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["register"]

NAMES = ("ottla_records", "ottla_validate")


def register(
    spark: SparkSession,
    config: Config = None,
    *,
    profile: str = "strict",
    kafka_version: str | None = None,
) -> tuple[str, ...]:
    """Registers functions of SQL with a session, and returns their names.

    ::

        SELECT topic, count(*) FROM ottla_records('/var/lib/kafka') GROUP BY topic;
        SELECT value FROM ottla_records('/var/lib/kafka', topics => 'orders');
        SELECT v.error_name, count(*)
        FROM (SELECT ottla_validate(records, captured_ms) AS v FROM captures) GROUP BY v.error_name;

    ``ottla_records(path, …)`` returns the rows of the data source, with its options by name. One
    task reads all of them: a table (``CREATE TABLE … USING ottla``) divides large logs.

    ``ottla_validate(records, now_ms, …)`` returns a struct of `VERDICT_COLUMNS`. By name it takes
    `api_version`, `base_offset`, `leader_epoch`, `origin`, `transactional_id` and, for several
    configurations, `topic`; see `validate`, which is faster.

    Args:
        spark: a session, classic or Connect.
        config, profile, kafka_version: what `ottla_validate` judges by; see `validate`.

    Raises:
        ValueError, TypeError: see `validate`.
        MissingDependencyError: PySpark is not installed.

    >>> import ottla.spark
    >>> ottla.spark.register(ottla.spark.session("local[2]"))  # doctest: +SKIP
    ('ottla_records', 'ottla_validate')
    """
    require_pyspark()
    from pyspark.sql.functions import udf, udtf

    checked = check_config(config)
    context = JudgeContext("records", checked, {}, {}, "topic", profile, kafka_version)
    context.check()
    register_source(spark)
    validate = run_calls_in_worker("ottla.spark.setup.functions:validator", context, spark)
    spark.udf.register("ottla_validate", udf(validate, verdict_schema(), useArrow=False))
    spark.udtf.register("ottla_records", udtf(_records_function(spark)))
    return NAMES


def _records_function(spark: SparkSession) -> type[Any]:
    """Returns a class that is pickled by value, whose methods run Ottla in the worker."""
    analyzed = run_calls_in_worker("ottla.spark.setup.functions:analyzer", None, spark)
    read = run_calls_in_worker("ottla.spark.setup.functions:reader", None, spark)

    class OttlaRecords:
        @staticmethod
        def analyze(path: Any, **options: Any) -> Any:
            return analyzed(path, **options)

        def eval(self, path: Any, **options: Any) -> Any:
            yield from read(path, **options)

    return OttlaRecords


def validator(context: JudgeContext) -> Callable[..., tuple[Any, ...]]:
    """Returns the function that judges one set."""
    from dataclasses import replace

    names = [column.name for column in VERDICT_COLUMNS]
    errors_at = names.index("record_errors")

    def validate(records: Any, now_ms: Any, **options: Any) -> tuple[Any, ...]:
        given = {"now_ms": now_ms, **options}
        topic = given.pop("topic", None)
        columns = {name: name for name in given}
        judged = replace(context, columns=columns).judge(records, {**given, "topic": topic}.get)
        row = list(verdict_row(judged))
        if row[errors_at] is not None:
            row[errors_at] = [tuple(error) for error in row[errors_at]]
        return tuple(row)

    return validate


def _options(path: Any, options: dict[str, Any]) -> dict[str, str]:
    from ottla.errors import SparkError

    given = {"path": path, **options}
    for name, value in given.items():
        if value is None:
            raise SparkError(f"{name} of ottla_records must be a constant, and not null")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


def analyzer(_: None) -> Callable[..., Any]:
    """Returns the function that tells the columns of a call."""
    from pyspark.sql.udtf import AnalyzeResult

    from ottla.spark.source.options import schema_of

    def analyze(path: Any, **options: Any) -> Any:
        values = {name: argument.value for name, argument in options.items()}
        return AnalyzeResult(schema=struct_of(schema_of(_options(path.value, values))))

    return analyze


def reader(_: None) -> Callable[..., Iterator[tuple[Any, ...]]]:
    """Returns the function that reads the rows of a call."""
    from ottla.spark.source.options import schema_of
    from ottla.spark.source.reader import make_reader

    def read(path: Any, **options: Any) -> Iterator[tuple[Any, ...]]:
        given = _options(path, options)
        found = make_reader(given, struct_of(schema_of(given)))
        for partition in found.partitions():
            for batch in found.read(partition):
                columns = [column.to_pylist() for column in batch.columns]
                yield from zip(*columns, strict=True)

    return read
