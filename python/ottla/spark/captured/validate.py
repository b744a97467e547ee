"""A leader's verdict on every row of a column of captured record sets.

The rules are those of `ottla.validate`. This module has the loop of a task, from Arrow to Arrow
without copying the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records import validate_column
from ottla.spark.captured.buffers import column_arguments
from ottla.spark.captured.columns import VERDICT_COLUMNS, with_columns
from ottla.spark.captured.options import (
    Config,
    JudgeContext,
    RequestOptions,
    SetsJob,
    prepare,
)
from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.worker import run_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = ["validate"]


def validate(
    df: DataFrame,
    column: str = "records",
    config: Config = None,
    *,
    now_ms: int | str | Column,
    api_version: int | str | Column | None = 11,
    base_offset: int | str | Column = 0,
    leader_epoch: int | str | Column = 0,
    origin: str | Column = "client",
    transactional_id: str | Column | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
    topic: str | Column = "topic",
    prefix: str = "",
    keep_records: bool = True,
) -> DataFrame:
    """Returns a frame with the leader's verdict on every record set.

    It has the columns of `VERDICT_COLUMNS`, with the result of `ottla.validate` for the row.
    Nothing is read before an action. `mapInArrow` does the work, on classic Spark and on Spark
    Connect, without pandas. The verdict on a row is the same whenever and wherever it is computed:
    no clock is read, which is why `now_ms` is required.

    A row whose record set is null, or whose options `ottla.validate` rejects, is not judged:
    `accepted` is false, `error_message` says why, `error` and the other columns are null.

    Args:
        df: a frame with a binary column.
        column: its name; each value is the record set of one partition of a Produce request.
        config: the topic's configuration, by default Kafka's defaults; or one per topic name.
        now_ms, api_version, base_offset, leader_epoch: see `ottla.validate`; or, to differ between
            rows, the name of a column of whole numbers, or a `Column`. A null `api_version` is
            ``None``: no checks of the request version.
        origin, transactional_id: see `ottla.validate`; or a `Column` of strings.
        profile: ``"strict"``, or ``"kafka"`` for exactly the decision of Apache Kafka.
        kafka_version: the release whose rules hold; see `ottla.validate`.
        topic: name of the column that selects one of several configurations, or a `Column`.
        prefix: prefix of the names of the new columns.
        keep_records: whether to keep the column itself. Without it, the bytes travel one way only.

    Raises:
        ValueError: a column is missing, of the wrong type, or exists already; an option is out of
            range. Raised by the call, before any job.
        TypeError: an option or a configuration has the wrong type.
        MissingDependencyError: PySpark is not installed.

    >>> import ottla, ottla.spark
    >>> spark = ottla.spark.session("local[2]")  # doctest: +SKIP
    >>> batch = ottla.build_batch([ottla.NewRecord(value=b"hello", timestamp=5)])
    >>> df = spark.createDataFrame([(bytearray(batch),)], "records binary")  # doctest: +SKIP
    >>> ottla.spark.validate(df, now_ms=5).select("accepted", "error").first()  # doctest: +SKIP
    Row(accepted=True, error=0)
    """
    options = RequestOptions(
        now_ms=now_ms,
        api_version=api_version,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        origin=origin,
        transactional_id=transactional_id,
    )
    frame, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    fields = [field for field in df.schema.fields if keep_records or field.name != column]
    schema = with_columns(fields, VERDICT_COLUMNS, prefix)
    kept = [index for index, field in enumerate(df.schema.fields) if field in fields]
    job = SetsJob(context, tuple(kept), tuple(schema.names))
    run = run_in_worker("ottla.spark.captured.validate:judge_batches", job, df.sparkSession)
    return map_in_arrow(frame, run, schema)


def judge_batches(job: SetsJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the work of a task of `validate`."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            verdicts = _verdicts(batch, job.context)
            arrays = [verdicts.column(column.name) for column in VERDICT_COLUMNS]
            kept = [batch.column(index) for index in job.kept]
            yield pa.RecordBatch.from_arrays([*kept, *arrays], names=list(job.names))

    return judge


def _verdicts(batch: pa.RecordBatch, context: JudgeContext) -> pa.RecordBatch:
    """Returns the verdicts on the record sets of a batch, with the names of `VERDICT_COLUMNS`."""
    import pyarrow as pa

    return pa.record_batch(validate_column(**column_arguments(batch, context)))
