"""Verdicts on the record sets of partitions over time: sequences, epochs and transactions.

A `Leader` judges the sets of a partition one after the other, as one in a single process would. In
a batch job the sets are sorted, and each task follows the partitions that it got, one leader at a
time. In a stream, the state of each leader is Spark's state of the partition.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.records import Leader
from ottla.spark.captured.buffers import record_sets
from ottla.spark.captured.columns import VERDICT_COLUMNS, CapturedColumn, arrow_types, with_columns
from ottla.spark.captured.options import (
    Config,
    JudgeContext,
    RequestOptions,
    prepare,
)
from ottla.spark.captured.rows import verdict_row
from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.worker import run_groups_in_worker, run_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from ottla.records import TopicConfig, Verdict

__all__ = ["HISTORY_COLUMNS", "validate_in_order"]

HISTORY_COLUMNS = (
    *VERDICT_COLUMNS,
    CapturedColumn(
        "is_duplicate", "boolean", "whether the set is in the log already; the offsets are those"
    ),
)
"""The columns that `validate_in_order` adds."""

EXPIRY_INTERVAL_MS = 600_000
"""`producer.id.expiration.check.interval.ms`: how often a broker looks for idle producers."""

_STATE = struct.Struct(">Bq")
_STATE_VERSION = 1
_NEVER = -(1 << 63)


def validate_in_order(
    df: DataFrame,
    column: str = "records",
    config: Config = None,
    *,
    order: str | Sequence[str],
    now_ms: int | str | Column,
    topic: str = "topic",
    partition: str = "partition",
    api_version: int | str | Column | None = 11,
    origin: str | Column = "client",
    transactional_id: str | Column | None = None,
    unknown_producer: str = "accept",
    profile: str = "strict",
    kafka_version: str | None = None,
    prefix: str = "",
) -> DataFrame:
    """Returns a frame with the verdict on every record set after those before it in its partition.

    It has the columns of `HISTORY_COLUMNS`: what one `ottla.Leader` for each topic and partition
    answers to its sets in order, so that gaps in sequences, repeats, fenced epochs and
    transactions show (KIP-98, KIP-360). Offsets count from 0. Idle producers are forgotten
    after ``producer.id.expiration.ms``, looked for every ten minutes of `now_ms`, as a broker does.

    A frame of a batch job is sorted, and each task follows its partitions with the memory of one
    leader. In a stream, the leader is state: sets are judged by trigger, and in order within it,
    so what arrives late is judged late. A stream needs pandas on the workers.

    A row whose record set is null, or whose options `ottla.Leader.append` rejects, is not judged,
    and changes no leader; see `validate`.

    Args:
        df: a frame with a binary column.
        column: its name; each value is the record set of one partition of a Produce request.
        config: see `validate`.
        order: the columns that order the sets of a partition, such as the position in a capture.
            Sets that are equal in them are judged in an arbitrary order.
        now_ms, api_version, origin, transactional_id: see `validate`. Markers of transactions
            have the origin ``"coordinator"``.
        topic, partition: the columns with the partition of a set.
        unknown_producer: what to do with a producer whose first set in the capture has another
            sequence than 0; see `ottla.Leader`. A capture may begin in the middle.
        profile, kafka_version, prefix: see `validate`.

    Raises:
        ValueError, TypeError: see `validate`.
        MissingDependencyError: PySpark is not installed.

    >>> import ottla.spark
    >>> verdicts = ottla.spark.validate_in_order(
    ...     captures, order="position", now_ms="captured_ms"
    ... )  # doctest: +SKIP
    >>> verdicts.where("error_name = 'OUT_OF_ORDER_SEQUENCE_NUMBER'").count()  # doctest: +SKIP
    0
    """
    options = RequestOptions(
        now_ms=now_ms,
        api_version=api_version,
        origin=origin,
        transactional_id=transactional_id,
    )
    frame, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    by = [order] if isinstance(order, str) else list(order)
    Leader(unknown_producer=unknown_producer)
    return _judged((df, frame), context, (topic, partition, *by), unknown_producer, prefix)


def _judged(
    frames: tuple[DataFrame, DataFrame],
    context: JudgeContext,
    columns: tuple[str, ...],
    unknown_producer: str,
    prefix: str,
) -> DataFrame:
    """Returns the verdicts on the sets of a frame, given without and with columns of options.

    The columns are those of topic and partition, and those that order the sets.
    """
    df, frame = frames
    key = columns[:2]
    names = df.schema.names
    for name in columns:
        if names.count(name) != 1:
            raise ValueError(f"the frame needs one column {name!r}, it has {', '.join(names)}")
    schema = with_columns(df.schema.fields, HISTORY_COLUMNS, prefix)
    job = HistoryJob(
        context,
        (names.index(key[0]), names.index(key[1])),
        tuple(names.index(name) for name in columns[2:]),
        len(names),
        tuple(schema.names),
        unknown_producer,
    )
    if df.isStreaming:
        function = run_groups_in_worker(
            "ottla.spark.captured.history:judge_group", job, df.sparkSession
        )
        return frame.groupBy(*key).applyInPandasWithState(
            function, schema, "state binary", "append", "NoTimeout"
        )
    ordered = frame.repartition(*key).sortWithinPartitions(*columns)
    work = run_in_worker("ottla.spark.captured.history:judge_sorted", job, df.sparkSession)
    return map_in_arrow(ordered, work, schema)


@dataclass(frozen=True, slots=True)
class HistoryJob:
    """The arguments of a task of `validate_in_order`."""

    context: JudgeContext
    key: tuple[int, int]
    """Indexes of the columns with topic and partition."""
    order: tuple[int, ...]
    kept: int
    """Number of the columns of the frame."""
    names: tuple[str, ...]
    unknown_producer: str


@dataclass(slots=True)
class History:
    """The leader of one partition, and when it last looked for idle producers."""

    job: HistoryJob
    topic: str | None
    partition: int | None
    looked_ms: int = _NEVER
    leader: Leader = field(init=False)

    def __post_init__(self) -> None:
        self.leader = Leader(self._config(), **self._settings())

    def _config(self) -> TopicConfig | None:
        config = self.job.context.config
        return config.get(self.topic or "") if isinstance(config, dict) else config

    def _settings(self) -> dict[str, Any]:
        context = self.job.context
        return {
            "topic": self.topic or "",
            "partition": self.partition or 0,
            "profile": context.profile,
            "kafka_version": context.kafka_version,
            "unknown_producer": self.job.unknown_producer,
            # What the coordinator was asked is in no capture.
            "transaction_verification": False,
        }

    def state(self) -> bytes:
        """Returns what `resume` needs to go on."""
        return _STATE.pack(_STATE_VERSION, self.looked_ms) + self.leader.to_bytes()

    def resume(self, state: bytes) -> None:
        """Goes on where another history ended.

        Raises:
            ValueError: the bytes are no such state, or of a newer Ottla.
        """
        if len(state) < _STATE.size or state[0] != _STATE_VERSION:
            found = state[0] if state else "none"
            raise ValueError(
                f"state of version {found} of {self.topic}-{self.partition}, expected"
                f" {_STATE_VERSION}: was it written by a newer Ottla?"
            )
        _, self.looked_ms = _STATE.unpack_from(state)
        self.leader = Leader.from_bytes(
            state[_STATE.size :], config=self._config(), **self._settings()
        )

    def judge(self, records: Any, row: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Returns the values of `HISTORY_COLUMNS` for the next set."""
        decided = self.job.context.decide(self._append, records, row)
        is_duplicate = None if isinstance(decided, str) else decided.is_duplicate
        return (*verdict_row(decided), is_duplicate)

    def _append(self, records: Any, _: TopicConfig | None, options: dict[str, Any]) -> Verdict:
        now_ms = options["now_ms"]
        if self.looked_ms == _NEVER:
            self.looked_ms = now_ms
        elif now_ms >= self.looked_ms + EXPIRY_INTERVAL_MS:
            self.leader.expire_producers(now_ms)
            self.looked_ms = now_ms
        verdict = self.leader.append(
            records,
            now_ms=now_ms,
            api_version=options["api_version"],
            transactional_id=options["transactional_id"],
            origin=options["origin"],
        )
        # Aborted transactions decide nothing, and would be kept for ever.
        end = self.leader.log_end_offset
        self.leader.advance_high_watermark(end)
        self.leader.delete_records(end)
        return verdict


def judge_sorted(job: HistoryJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the work of a task over sorted sets: one leader after the other."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        history: History | None = None
        key: tuple[Any, Any] | None = None
        for batch in batches:
            verdicts = []
            topics, partitions = (batch.column(at).to_pylist() for at in job.key)
            sets = record_sets(batch, job.context)
            for topic, partition, (records, row) in zip(topics, partitions, sets, strict=True):
                if history is None or (topic, partition) != key:
                    key = (topic, partition)
                    history = History(job, topic, partition)
                verdicts.append(history.judge(records, row))
            yield _with_verdicts(batch, verdicts, job)

    return judge


def judge_group(job: HistoryJob) -> Callable[[Any, Iterator[Any], Any], Iterator[Any]]:
    """Returns the function of `applyInPandasWithState`."""

    def judge(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pyarrow as pa

        history = History(job, *key)
        if state.exists:
            history.resume(bytes(state.get[0]))
        # Spark brings the rows of a trigger in no order.
        given = pa.concat_tables(
            [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames],
            promote_options="permissive",
        )
        by = [(given.column_names[at], "ascending") for at in job.order]
        for batch in given.sort_by(by).to_batches():
            verdicts = [history.judge(*one) for one in record_sets(batch, job.context)]
            yield _with_verdicts(batch, verdicts, job).to_pandas(integer_object_nulls=True)
        state.update((history.state(),))

    return judge


def _with_verdicts(
    batch: pa.RecordBatch, verdicts: list[tuple[Any, ...]], job: HistoryJob
) -> pa.RecordBatch:
    import pyarrow as pa

    made = [
        pa.array(_as_structs(values, column.name), kind)
        for values, column, kind in zip(
            zip(*verdicts, strict=True), HISTORY_COLUMNS, arrow_types(HISTORY_COLUMNS), strict=True
        )
    ]
    return pa.RecordBatch.from_arrays([*batch.columns[: job.kept], *made], names=list(job.names))


def _as_structs(values: tuple[Any, ...], name: str) -> list[Any]:
    if name != "record_errors":
        return list(values)
    names = ("batch_index", "message", "error")
    return [
        None if errors is None else [dict(zip(names, error, strict=True)) for error in errors]
        for errors in values
    ]
