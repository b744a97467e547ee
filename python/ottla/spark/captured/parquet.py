"""Judges and splits record sets in Parquet files where the files are read: see `files`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.captured.columns import VERDICT_COLUMNS, with_columns
from ottla.spark.captured.files import CapturedFiles, rows_of_files
from ottla.spark.captured.options import Config, RequestOptions, SetsJob, is_column, prepare
from ottla.spark.captured.split import (
    SplitJob,
    check_record_columns,
    split_batches,
    split_columns,
)
from ottla.spark.captured.validate import judge_batches
from ottla.spark.work.kind import require_pyspark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.captured.files import ReadTask
    from ottla.spark.captured.split import Half
    from ottla.spark.work.items import Packed, Reader

__all__ = ["split_parquet", "validate_parquet"]


def validate_parquet(
    spark: SparkSession,
    paths: str | Sequence[str],
    column: str = "records",
    config: Config = None,
    *,
    now_ms: int | str,
    api_version: int | str | None = 11,
    base_offset: int | str = 0,
    leader_epoch: int | str = 0,
    origin: str = "client",
    transactional_id: str | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
    topic: str = "topic",
    columns: Sequence[str] | None = None,
    prefix: str = "",
    keep_records: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Returns the verdicts of `validate` on a column of Parquet files, read by the tasks.

    The result is that of ``validate(spark.read.parquet(paths), …)``, several times as fast if
    record sets are large, because their bytes stay in the worker. Each task reads some row groups,
    from local paths or from an object store.

    Args:
        spark: the session, classic or Spark Connect.
        paths: as for `spark.read.parquet`; includes partition columns in the names of directories.
        column, config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id,
            profile, kafka_version, topic, prefix: see `validate`; what differs between rows is the
            name of a column.
        columns: the other columns to keep; all by default.
        keep_records: whether to keep `column` itself. Its bytes then pass through the JVM.
        storage_options: settings of object stores; see `ottla.audit`.

    Raises:
        ValueError, TypeError, MissingDependencyError: see `validate`; or a column to keep is a
            list, a map or a struct.
        SparkError: there are no such files, or their schema cannot be read; a path is in a table of
            Delta, Iceberg or Hudi, whose files also hold rows that were deleted. Damage further on
            fails the action that reads the file; `ottla.spark.job` turns that into one sentence.

    >>> validate_parquet(spark, "captures", now_ms="captured_ms").show()  # doctest: +SKIP
    """
    require_pyspark()
    options = RequestOptions(
        now_ms=now_ms,
        api_version=api_version,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        origin=origin,
        transactional_id=transactional_id,
    )
    _reject_expressions({**options.by_name(), "topic": topic})
    files = CapturedFiles(spark, paths, storage_options, "validate")
    df = files.frame
    _, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    kept = _kept(df.columns, column, columns, keep_records=keep_records)
    schema = with_columns([files.fields[index] for index in kept], VERDICT_COLUMNS, prefix)
    work = SetsJob(context, tuple(kept), tuple(schema.names))
    return files.rows("ottla.spark.captured.parquet:judge_files", work, schema)


def split_parquet(
    spark: SparkSession,
    paths: str | Sequence[str],
    column: str = "records",
    config: Config = None,
    *,
    now_ms: int | str,
    api_version: int | str | None = 11,
    origin: str = "client",
    transactional_id: str | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
    topic: str = "topic",
    columns: Sequence[str] | None = None,
    record_columns: Sequence[str] | None = None,
    prefix: str = "",
    storage_options: Mapping[str, str] | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Returns the frames of `split` for a column of Parquet files, read by the tasks.

    The result is that of ``split(spark.read.parquet(paths), …)``, in less time, because record sets
    do not pass through the JVM. Each frame reads the files when it is used, and the tasks of
    ``quarantine`` make no rows of valid records.

    Args:
        spark: the session, classic or Spark Connect.
        paths, storage_options: see `validate_parquet`.
        column, config, now_ms, api_version, origin, transactional_id, profile, kafka_version,
            topic, record_columns, prefix: see `split`; what differs between rows is the
            name of a column.
        columns: the other columns to keep beside each record; all by default.

    Raises:
        ValueError, TypeError, SparkError, MissingDependencyError: see `validate_parquet`.

    >>> valid, quarantine = split_parquet(
    ...     spark, "captures", now_ms="captured_ms", record_columns=["offset", "value"]
    ... )  # doctest: +SKIP
    """
    require_pyspark()
    options = RequestOptions(
        now_ms=now_ms,
        api_version=api_version,
        origin=origin,
        transactional_id=transactional_id,
    )
    _reject_expressions({**options.by_name(), "topic": topic})
    files = CapturedFiles(spark, paths, storage_options, "split")
    df = files.frame
    _, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    kept = _kept(df.columns, column, columns, keep_records=False)
    fields = [files.fields[index] for index in kept]
    wanted = check_record_columns(record_columns)

    def half(which: Half) -> DataFrame:
        schema = with_columns(fields, split_columns(which, wanted), prefix)
        work = SplitJob(context, tuple(kept), tuple(schema.names), which, wanted)
        return files.rows("ottla.spark.captured.parquet:split_files", work, schema)

    return half("valid"), half("quarantine")


def judge_files(work: tuple[ReadTask[SetsJob], Packed]) -> Reader:
    """Returns the work of a task of `validate_parquet`."""
    return rows_of_files(work, judge_batches)


def split_files(work: tuple[ReadTask[SplitJob], Packed]) -> Reader:
    """Returns the work of a task of `split_parquet`."""
    return rows_of_files(work, split_batches)


def _reject_expressions(options: Mapping[str, Any]) -> None:
    for name, given in options.items():
        if is_column(given):
            raise TypeError(
                f"{name} must be a value or the name of a column: expressions are not available"
                " to tasks that read files"
            )


def _kept(
    names: Sequence[str], column: str, columns: Sequence[str] | None, *, keep_records: bool
) -> list[int]:
    """Returns the positions of the columns to keep."""
    unknown = [name for name in columns or () if name not in names]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} in columns= is not in the columns {names}")
    others = [name for name in names if name != column and (columns is None or name in columns)]
    return [
        at for at, name in enumerate(names) if name in others or (name == column and keep_records)
    ]
