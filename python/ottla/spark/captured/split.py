"""Captured record sets split by record: valid records decoded, others in quarantine.

Each of the two frames is a function of the captured rows alone, computed when it is used. Both are
derived from the same verdicts, so they complement each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from ottla.audit.result.columns import FILE_COLUMNS, QUARANTINE, RECORDS
from ottla.audit.result.tables import jsonable
from ottla.spark.captured.buffers import record_sets
from ottla.spark.captured.columns import CapturedColumn, arrow_types, with_columns
from ottla.spark.captured.options import Config, JudgeContext, RequestOptions, prepare
from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.worker import run_in_worker
from ottla.text import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from ottla.records import Record, RecordError, SetPart

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

NOT_JUDGED = "not-judged"

# Limits of a batch of rows sent back to Spark.
OUT_BYTES = 4 << 20
OUT_ROWS = 16_384


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
    prefix: str = "",
) -> tuple[DataFrame, DataFrame]:
    """Returns the valid records of captured sets, decoded, and the others with the reason.

    Returns two frames, ``valid`` and ``quarantine``, with the other columns of `df` beside each
    record. The first adds `VALID_COLUMNS`, those of the audit's table `records`, the second
    `QUARANTINE_COLUMNS`. If the leader blames certain records of a batch, these are in quarantine
    and the rest of the batch is valid. A batch that is rejected as a whole, or with a record that
    cannot be read, is one row of quarantine with its bytes; so are an incomplete batch at the end
    and a record set that is null or not judged. Every record is in exactly one of the two, or
    inside such bytes.

    A set may have several batches, each judged alone, if ``api_version`` is ``None`` or below 3.
    For fetch responses, use ``api_version=None, origin="replication"``: then each batch is checked
    against the rules of the format, as by a follower and a careful consumer, and not against the
    topic's configuration.

    Each frame is computed from `df` when it is used: using both reads `df` twice. `df.persist()`
    before the call avoids that, and is needed if `df` does not return the same rows twice.

    Args:
        df, column, config, now_ms, api_version, origin, transactional_id, profile,
            kafka_version, topic: see
            `ottla.spark.validate`.
        prefix: prefix of the names of the new columns.

    Raises:
        ValueError, TypeError, MissingDependencyError: see `ottla.spark.validate`.

    >>> import ottla, ottla.spark
    >>> spark = ottla.spark.session("local[2]")  # doctest: +SKIP
    >>> records = [ottla.NewRecord(b"k", b"v"), ottla.NewRecord(None, b"w")]
    >>> df = spark.createDataFrame([(ottla.build_batch(records),)], "records binary")
    ... # doctest: +SKIP
    >>> compacted = ottla.TopicConfig(cleanup_policy="compact")
    >>> valid, quarantine = ottla.spark.split(df, config=compacted, now_ms=0)  # doctest: +SKIP
    >>> quarantine.select("value", "reason").first()  # doctest: +SKIP
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

    def half(which: Half) -> DataFrame:
        columns = VALID_COLUMNS if which == "valid" else QUARANTINE_COLUMNS
        schema = with_columns([fields[index] for index in kept], columns, prefix)
        job = SplitJob(context, tuple(kept), tuple(schema.names), which)
        return map_in_arrow(
            frame, run_in_worker("ottla.spark.captured.split:split_batches", job), schema
        )

    return half("valid"), half("quarantine")


@dataclass(frozen=True, slots=True)
class SplitJob:
    """The arguments of a task of `split`."""

    context: JudgeContext
    kept: tuple[int, ...]
    names: tuple[str, ...]
    half: Half


@dataclass(slots=True)
class Halves:
    """Rows of `VALID_COLUMNS` and of `QUARANTINE_COLUMNS` from one record set."""

    valid: list[tuple[Any, ...]] = field(default_factory=list)
    quarantine: list[tuple[Any, ...]] = field(default_factory=list)


_RECORD = attrgetter("offset", "timestamp", "key", "value", "headers", "sequence", "control")
_NO_RECORD = (None,) * (len(VALID_COLUMNS) - 1)
_HEADERS_AT = [column.name for column in VALID_COLUMNS].index("headers") - 1


def _record_row(position: int, record: Record) -> tuple[Any, ...]:
    row = list(_RECORD(record))
    row[_HEADERS_AT] = json_text(jsonable(row[_HEADERS_AT]))
    return (position, *row)


def split_set(
    records: bytes | None,
    context: JudgeContext,
    row: Callable[[Any], Any],
    *,
    wants_valid: bool = True,
) -> Halves:
    """Splits one record set; `row` returns the value of a column.

    Without `wants_valid`, no rows are made of valid batches.
    """
    parts = context.split(records, row)
    halves = Halves()
    if isinstance(parts, str) or records is None:
        halves.quarantine.append(_rejected_bytes(0, records, None, NOT_JUDGED, str(parts)))
        return halves
    for part in parts:
        if part.reason is not None:
            data = records[part.position : part.position + part.size]
            bad = _rejected_bytes(
                part.position,
                data,
                part.error,
                part.reason,
                part.message,
                record_index=part.record_index,
            )
            halves.quarantine.append(bad)
        elif (errors := part.record_errors) or wants_valid:
            _add_records(halves, part, {error.batch_index: error for error in errors})
    return halves


def _add_records(halves: Halves, part: SetPart, errors: Mapping[int, RecordError]) -> None:
    """Adds the records of a batch to their halves; those with errors go to quarantine."""
    for index, record in enumerate(part.records() or ()):
        row = _record_row(part.position, record)
        if index in errors:
            error = errors[index]
            bad = (*row, error.error, error.error_name, error.message, index, None, None)
            halves.quarantine.append(bad)
        else:
            halves.valid.append(row)


def _rejected_bytes(
    position: int,
    data: bytes | None,
    error: int | None,
    reason: str,
    message: str | None,
    *,
    record_index: int | None = None,
) -> tuple[Any, ...]:
    """Returns the row of quarantine for bytes that are rejected as a whole."""
    size = None if data is None else len(data)
    return (position, *_NO_RECORD, error, reason, message, record_index, size, data)


def split_batches(job: SplitJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the work of a task of `split`."""
    import pyarrow as pa

    wants_valid = job.half == "valid"
    types = arrow_types(VALID_COLUMNS if wants_valid else QUARANTINE_COLUMNS)

    def record_batch(batch: pa.RecordBatch, rows: list[Any], origins: list[int]) -> pa.RecordBatch:
        kept = batch.select(list(job.kept)).take(pa.array(origins, pa.int64())).columns
        arrays = [pa.array(c, t) for c, t in zip(zip(*rows, strict=True), types, strict=True)]
        return pa.RecordBatch.from_arrays([*kept, *arrays], names=list(job.names))

    def divide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[Any] = []
            origins: list[int] = []
            size = 0
            for origin, (view, row) in enumerate(record_sets(batch, job.context)):
                records = None if view is None else bytes(view)
                halves = split_set(records, job.context, row, wants_valid=wants_valid)
                added = halves.valid if wants_valid else halves.quarantine
                rows += added
                origins += [origin] * len(added)
                size += sum(
                    len(value) for row in added for value in row if isinstance(value, bytes)
                )
                if size >= OUT_BYTES or len(rows) >= OUT_ROWS:
                    yield record_batch(batch, rows, origins)
                    rows, origins, size = [], [], 0
            if rows:
                yield record_batch(batch, rows, origins)

    return divide
