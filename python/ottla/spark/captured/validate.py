"""A leader's verdict on every row of a column of record sets: what produce requests carried.

The rules are `ottla.validate`'s. Here is the loop of a task: Arrow in, Arrow out, no copy of the
column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.records import validate_column
from ottla.spark.captured.buffers import bytes_and_ends
from ottla.spark.captured.columns import VERDICT_COLUMNS, with_columns
from ottla.spark.captured.options import (
    NO_RECORDS,
    Circumstances,
    Config,
    RequestOptions,
    no_config,
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
    topic: str | Column = "topic",
    prefix: str = "",
    keep_records: bool = True,
) -> DataFrame:
    """Gives a frame with the leader's verdict beside every record set.

    It has the columns of `VERDICT_COLUMNS`, with what `ottla.validate` answers for the row.
    Nothing is read before an action. The work is done by `mapInArrow`, on classic Spark and on
    Spark Connect alike, and needs no pandas. A row gives the same verdict whenever and wherever it
    is computed: no clock is asked, so `now_ms` has to be told.

    A row whose record set is null, or whose options `ottla.validate` does not take, is not judged:
    `accepted` is false, `error_message` says why, `error` and the other columns are null.

    Args:
        df: any frame with a binary column.
        column: its name; each value is the record set of one partition of a Produce request.
        config: the topic's configuration, Kafka's defaults where there is none; or one for each
            topic, by name.
        now_ms, api_version, base_offset, leader_epoch: as `ottla.validate` has them, or for each
            row: the name of a column of whole numbers, or a `Column`. A null `api_version` is
            ``None``: no request gate.
        origin, transactional_id: as `ottla.validate` has them, or a `Column` of strings.
        profile: ``"strict"``, or ``"kafka"`` for Apache Kafka's decision to the last oddity.
        topic: name of the column that chooses among several configurations, or a `Column`.
        prefix: goes before the names of the new columns.
        keep_records: whether the column itself is kept. Without it the bytes travel one way only.

    Raises:
        ValueError: a column that is missing, of the wrong type, or there already; an option out of
            range. At once, before any job.
        TypeError: an option or a configuration of another type.
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
    frame, circumstances = prepare(df, column, config, options, profile=profile, topic=topic)
    fields = [field for field in df.schema.fields if keep_records or field.name != column]
    schema = with_columns(fields, VERDICT_COLUMNS, prefix)
    kept = [index for index, field in enumerate(df.schema.fields) if field in fields]
    job = Job(circumstances, tuple(kept), tuple(schema.names))
    return map_in_arrow(
        frame, run_in_worker("ottla.spark.captured.validate:judge_batches", job), schema
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What a task of `validate` is told."""

    circumstances: Circumstances
    kept: tuple[int, ...]
    names: tuple[str, ...]


def judge_batches(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of `validate` does."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            verdicts = _verdicts(batch, job.circumstances)
            arrays = [verdicts.column(column.name) for column in VERDICT_COLUMNS]
            kept = [batch.column(index) for index in job.kept]
            yield pa.RecordBatch.from_arrays([*kept, *arrays], names=list(job.names))

    return judge


def _verdicts(batch: pa.RecordBatch, circumstances: Circumstances) -> pa.RecordBatch:
    """The verdicts on the record sets of a batch, named as `VERDICT_COLUMNS` are."""
    import pyarrow as pa

    sets = batch.column(circumstances.records)
    options = dict(circumstances.constants)
    options |= {name: batch.column(at).to_pylist() for name, at in circumstances.columns.items()}
    unjudged: list[str | None] = [None] * len(sets)
    config: Any = circumstances.config
    if isinstance(config, dict):
        topics = batch.column(circumstances.topic).to_pylist()
        unjudged = [None if topic in config else no_config(topic) for topic in topics]
        config = [config.get(topic) for topic in topics]
    if sets.null_count:
        valid = sets.is_valid().to_pylist()
        unjudged = [why if v else NO_RECORDS for why, v in zip(unjudged, valid, strict=True)]
    ends, data = bytes_and_ends(sets)
    verdicts = validate_column(
        ends, data, config, profile=circumstances.profile, unjudged=unjudged, **options
    )
    return pa.record_batch(verdicts)
