"""Verdicts on the record sets of an RDD: from bytes or rows to rows."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ottla.spark.captured.columns import VERDICT_COLUMNS
from ottla.spark.captured.options import Config, JudgeContext, RequestOptions, check_config
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.worker import run_rows_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Row

    from ottla.records import Verdict

__all__ = ["validate_partition"]


def validate_partition(
    config: Config = None,
    *,
    now_ms: int | str,
    column: str = "records",
    api_version: int | str | None = 11,
    base_offset: int | str = 0,
    leader_epoch: int | str = 0,
    origin: str = "client",
    transactional_id: str | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
    topic: str = "topic",
    prefix: str = "",
) -> Callable[[Iterator[Any]], Iterator[Row]]:
    """Returns a function for `rdd.mapPartitions` that judges the record sets of a partition.

    ::

        verdicts = rdd.mapPartitions(ottla.spark.validate_partition(now_ms=1_700_000_000_000))
        verdicts.toDF(ottla.spark.verdict_schema())

    For bytes, it yields a `Row` with the columns of `VERDICT_COLUMNS`. For rows (`Row`s or
    dictionaries), it yields `Row`s with their fields and these columns; an option may then be the
    name of a field. `record_errors` is a list of `Row`s. Spark Connect has no RDDs; `validate`
    works there too, and is faster.

    Args:
        config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id, profile,
            kafka_version, topic, prefix: see `validate`, with names of fields instead of columns.
        column: the field with the record set.

    Raises:
        ValueError, TypeError: see `validate`; raised by an action if only the rows show it.
        MissingDependencyError: PySpark is not installed.
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
    constants, named = options.split()
    judge = JudgeContext(
        column, check_config(config), constants, named, topic, profile, kafka_version
    )
    judge.check()
    return run_rows_in_worker("ottla.spark.captured.rows:judge_rows", _RowJob(judge, prefix))


@dataclass(frozen=True, slots=True)
class _RowJob:
    context: JudgeContext
    prefix: str


_NAMES = [column.name for column in VERDICT_COLUMNS]
_ERRORS_AT, _SIZE_AT = _NAMES.index("record_errors"), _NAMES.index("stored_size")
# The other columns are attributes of the verdict.
_FIRST = attrgetter(*_NAMES[:_ERRORS_AT])
_MIDDLE = attrgetter(*_NAMES[_ERRORS_AT + 1 : _SIZE_AT])
_LAST = attrgetter(*_NAMES[_SIZE_AT + 1 :])
_RECORD_ERROR = attrgetter("batch_index", "message", "error")
_NOT_JUDGED = (None,) * (len(VERDICT_COLUMNS) - 4)


def verdict_row(verdict: Verdict | str) -> tuple[Any, ...]:
    """Returns a verdict as values of `VERDICT_COLUMNS`; record errors are tuples."""
    if isinstance(verdict, str):
        return (False, None, None, verdict, *_NOT_JUDGED)
    errors = [_RECORD_ERROR(error) for error in verdict.record_errors]
    size = sum(map(len, verdict.stored_parts))
    return (*_FIRST(verdict), errors, *_MIDDLE(verdict), size, *_LAST(verdict))


def judge_rows(job: _RowJob) -> Callable[[Iterator[Any]], Iterator[Row]]:
    """Returns the work of a task of `validate_partition`."""
    from pyspark.sql import Row

    context = job.context
    names = [job.prefix + column.name for column in VERDICT_COLUMNS]
    record_error = Row("batch_index", "message", "error")
    makers: dict[tuple[str, ...], Row] = {(): Row(*names)}

    def maker(fields: tuple[str, ...]) -> Row:
        if fields not in makers:
            twice = [name for name in names if name in fields]
            if twice:
                taken = ", ".join(twice)
                raise ValueError(f"rows already have {taken}: choose other names with prefix=")
            makers[fields] = Row(*fields, *names)
        return makers[fields]

    def judge(items: Iterator[Any]) -> Iterator[Row]:
        for item in items:
            if item is None or isinstance(item, (bytes, bytearray, memoryview)):
                fields: tuple[str, ...] = ()
                given: tuple[Any, ...] = ()
                value: Callable[[Any], Any] = _no_fields
                records = item
            else:
                mapping = item.asDict() if isinstance(item, Row) else item
                fields, given = tuple(mapping), tuple(mapping.values())
                value = _field_of(mapping)
                records = value(context.records)
            row = list(verdict_row(context.judge(records, value)))
            if row[_ERRORS_AT] is not None:
                row[_ERRORS_AT] = [record_error(*error) for error in row[_ERRORS_AT]]
            yield maker(fields)(*given, *row)

    return judge


def _no_fields(name: str) -> Any:
    raise ValueError(f"{name} must be a field of each row, but the rows are bytes")


def _field_of(row: Mapping[str, Any]) -> Callable[[Any], Any]:
    def field(name: str) -> Any:
        try:
            return row[name]
        except KeyError:
            raise ValueError(f"no field {name!r} in a row of {sorted(row)}") from None

    return field
