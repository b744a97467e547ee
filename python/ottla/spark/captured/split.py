"""Captured record sets split by record: valid records decoded, others in quarantine.

Each of the two frames is a function of the captured rows alone, computed when it is used. Both are
derived from the same verdicts, so they complement each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ottla.audit.result.columns import FILE_COLUMNS, QUARANTINE, RECORDS
from ottla.records import split_column
from ottla.spark.captured.buffers import column_arguments
from ottla.spark.captured.columns import CapturedColumn, with_columns
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
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = ["QUARANTINE_COLUMNS", "VALID_COLUMNS", "split"]

Half = Literal["valid", "quarantine"]

_SPARK_TYPES = {"int64": "bigint", "int32": "int", "list": "string"}
_DOCS = {
    "batch_position": "position of its batch, or of these bytes, in the record set",
    "offset": "as in the batch: from 0 in a produce request, the log's offset in a response",
    "headers": "pairs of key and value, as JSON",
    "reason": "Kafka's name of the error, or the kind of fault if the bytes cannot be read",
    "size": "size of a range in `bytes`; null for a record",
    "bytes": "the bytes of that range",
}
_ERROR = CapturedColumn("error", "int", "Kafka's error code; null if nothing was judged")


def _captured_columns(columns: Any) -> tuple[CapturedColumn, ...]:
    return tuple(
        CapturedColumn(c.name, _SPARK_TYPES.get(c.type, c.type), _DOCS.get(c.name, c.doc))
        for c in columns
    )


VALID_COLUMNS = _captured_columns(RECORDS[FILE_COLUMNS:])
"""Columns of the valid half of `split`, named as in the table `records`."""

QUARANTINE_COLUMNS = (
    *VALID_COLUMNS,
    _ERROR,
    *_captured_columns(QUARANTINE[len(RECORDS) :]),
)
"""Columns of the other half: a faulty record, or bytes that are rejected as a whole."""

OUT_BYTES = 4 << 20
"""Bytes of a batch of rows sent back to Spark, about."""


def split(
    df: DataFrame,
    column: str = "records",
    config: Config = None,
    *,
    now_ms: int | str | Column,
    api_version: int | str | Column | None = 11,
    origin: str | Column = "client",
    transactional_id: str | Column | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
    topic: str | Column = "topic",
    record_columns: Sequence[str] | None = None,
    prefix: str = "",
) -> tuple[DataFrame, DataFrame]:
    """Returns the valid records of captured sets, decoded, and the others with the reason.

    Returns two frames, ``valid`` and ``quarantine``, with the other columns of `df` beside each
    record. The first adds `VALID_COLUMNS`, those of the audit's table `records`, the second
    `QUARANTINE_COLUMNS`. If the leader blames certain records of a batch, these are in quarantine
    and the rest of the batch is valid. A batch that is rejected as a whole, or with a record that
    cannot be read, is one row of quarantine with its bytes; so are an incomplete batch at the end
    and a record set that is null or not judged. Every record is in exactly one, or inside bytes.

    A set may have several batches, each judged alone, if ``api_version`` is ``None`` or below 3.
    For fetch responses, use ``api_version=None, origin="replication"``: each batch is checked by
    the rules of the format, as by a follower, and not by the topic's configuration.

    Each frame is computed from `df` when it is used: using both reads `df` twice. `df.persist()`
    before the call avoids that, and is needed if `df` does not return the same rows twice.

    Args:
        df, column, config, now_ms, api_version, origin, transactional_id, profile,
            kafka_version, topic: see `ottla.spark.validate`.
        record_columns: those of `VALID_COLUMNS` to make, in this order; all by default. The others
            are not sent to Spark, for which a later `select` comes too late.
        prefix: prefix of the names of the new columns.

    Raises:
        ValueError, TypeError, MissingDependencyError: see `ottla.spark.validate`; or
            `record_columns` has no name, an unknown one, or one twice.

    >>> import ottla, ottla.spark
    >>> spark = ottla.spark.session("local[2]")  # doctest: +SKIP
    >>> records = [ottla.NewRecord(b"k", b"v"), ottla.NewRecord(None, b"w")]
    >>> rows, config = [(ottla.build_batch(records),)], ottla.TopicConfig(cleanup_policy="compact")
    >>> df = spark.createDataFrame(rows, "records binary")  # doctest: +SKIP
    >>> valid, bad = ottla.spark.split(df, config=config, now_ms=0)  # doctest: +SKIP
    >>> bad.select("value", "reason").first()  # doctest: +SKIP
    Row(value=bytearray(b'w'), reason='INVALID_RECORD')
    """
    options = RequestOptions(
        now_ms=now_ms,
        api_version=api_version,
        origin=origin,
        transactional_id=transactional_id,
    )
    frame, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    fields = df.schema.fields
    kept = [index for index, field in enumerate(fields) if field.name != column]
    wanted = check_record_columns(record_columns)

    def half(which: Half) -> DataFrame:
        columns = split_columns(which, wanted)
        schema = with_columns([fields[index] for index in kept], columns, prefix)
        job = SplitJob(context, tuple(kept), tuple(schema.names), which, wanted)
        run = run_in_worker("ottla.spark.captured.split:split_batches", job, df.sparkSession)
        return map_in_arrow(frame, run, schema)

    return half("valid"), half("quarantine")


def check_record_columns(names: Sequence[str] | None) -> tuple[str, ...]:
    """Returns the columns of records that are to be made.

    Raises:
        ValueError: none is named, one is unknown or named twice.
    """
    known = tuple(column.name for column in VALID_COLUMNS)
    wanted = known if names is None else tuple(names)
    if not wanted:
        raise ValueError("record_columns names no column: leave it out for all of a record")
    for name in wanted:
        if name not in known:
            raise ValueError(f"{name!r} in record_columns= is none of {', '.join(known)}")
        if wanted.count(name) > 1:
            raise ValueError(f"{name!r} is {wanted.count(name)} times in record_columns=")
    return wanted


def split_columns(half: Half, record_columns: Sequence[str]) -> list[CapturedColumn]:
    """Returns the columns that are added to a half, of records those that are named."""
    known = {column.name: column for column in VALID_COLUMNS}
    reasons = QUARANTINE_COLUMNS[len(known) :] if half == "quarantine" else ()
    return [*(known[name] for name in record_columns), *reasons]


@dataclass(frozen=True, slots=True)
class SplitJob(SetsJob):
    """The arguments of a task of `split`."""

    half: Half
    record_columns: tuple[str, ...]


def split_batches(job: SplitJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the work of a task of `split`."""

    def divide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            kept = batch.select(list(job.kept))
            for rows in split_rows(batch, job.context, job.half, columns=job.record_columns):
                origins, *columns = rows.columns
                # Rows of no column cannot be taken.
                beside = kept.take(origins).columns if job.kept else []
                yield pa.RecordBatch.from_arrays([*beside, *columns], names=list(job.names))

    return divide


def split_rows(
    batch: pa.RecordBatch,
    context: JudgeContext,
    half: Half,
    piece_bytes: int = OUT_BYTES,
    *,
    columns: tuple[str, ...] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields one half of the record sets of a batch.

    The first column is the index of the set, the others are the columns of the half, with those of
    records that are named.
    """
    import pyarrow as pa

    sets = batch.column(context.records)
    nulls = sets.is_null().to_pylist() if sets.null_count else None
    arguments = column_arguments(batch, context)
    arguments |= {"nulls": nulls, "piece_bytes": piece_bytes, "columns": columns}
    for rows in split_column(half=half, **arguments):
        yield pa.record_batch(rows)
