"""A leader's verdict on every row of a column of record sets: what produce requests carried.

The rules are `ottla.validate`'s. Here are the columns they become, what a call may be given as a
value and what as a column, and the loop of a task: Arrow in, Arrow out, no copy of the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ottla.records import TopicConfig, Verdict, validate_column
from ottla.records import validate as verdict_on
from ottla.spark.arrow import map_in_arrow
from ottla.spark.session import require_pyspark
from ottla.spark.worker import run_in_worker, run_rows_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

__all__ = ["VERDICT_COLUMNS", "CapturedColumn", "validate", "validate_partition", "verdict_schema"]


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """Name, type in Spark's language and meaning of a column that Ottla adds."""

    name: str
    type: str
    doc: str


RECORD_ERROR = "struct<batch_index:int,message:string,error:int>"

VERDICT_COLUMNS = (
    CapturedColumn("accepted", "boolean", "whether the leader takes the set"),
    CapturedColumn("error", "int", "Kafka's error code, 0 for none; null where nothing was judged"),
    CapturedColumn("error_name", "string", "Kafka's name for it, such as `INVALID_RECORD`"),
    CapturedColumn(
        "error_message", "string", "what was found and expected; or why nothing was judged"
    ),
    CapturedColumn(
        "record_errors", f"array<{RECORD_ERROR}>", "the records to blame, ascending; else empty"
    ),
    CapturedColumn(
        "is_request_wide", "boolean", "whether Kafka fails every partition of the request with it"
    ),
    CapturedColumn(
        "base_offset", "bigint", "offset of the first record; -1 if nothing is appended"
    ),
    CapturedColumn("last_offset", "bigint", "offset of the last record; -1 if nothing is appended"),
    CapturedColumn("log_append_time_ms", "bigint", "-1 where the topic keeps the producer's times"),
    CapturedColumn("max_timestamp_ms", "bigint", "the largest timestamp; -1 for none"),
    CapturedColumn(
        "offset_of_max_timestamp", "bigint", "offset of the first record that has it; -1 for none"
    ),
    CapturedColumn("stored_size", "bigint", "bytes that are appended"),
    CapturedColumn("is_rebuilt", "boolean", "whether the records are written anew"),
    CapturedColumn("converted", "bigint", "records written anew"),
)
"""What `validate` adds, each as the attribute of `ottla.Verdict` of that name has it."""

# Options of `ottla.validate` that may be told for each row, and Spark's types that fit.
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
ROW_OPTIONS: dict[str, tuple[str, ...]] = {
    "now_ms": WHOLE_NUMBERS,
    "api_version": WHOLE_NUMBERS,
    "base_offset": WHOLE_NUMBERS,
    "leader_epoch": WHOLE_NUMBERS,
    "origin": ("string",),
    "transactional_id": ("string",),
}
# Of these a string is a value, and only a Column stands for a column.
TEXTS = ("origin", "transactional_id")
# Null in a column is a value of these, as None is.
MAY_BE_NULL = ("api_version", "transactional_id")

NO_RECORDS = "nothing to judge: the record set is null"


def no_config(topic: str | None) -> str:
    """Why a record set of a topic is not judged."""
    return f"nothing was judged: there is no configuration for topic {topic!r}"


Config = TopicConfig | Mapping[str, TopicConfig] | None


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
    options = {
        "now_ms": now_ms,
        "api_version": api_version,
        "base_offset": base_offset,
        "leader_epoch": leader_epoch,
        "origin": origin,
        "transactional_id": transactional_id,
    }
    frame, circumstances = prepare(df, column, config, options, profile=profile, topic=topic)
    fields = [field for field in df.schema.fields if keep_records or field.name != column]
    schema = with_columns(fields, VERDICT_COLUMNS, prefix)
    kept = [index for index, field in enumerate(df.schema.fields) if field in fields]
    job = Job(circumstances, tuple(kept), tuple(schema.names))
    return map_in_arrow(frame, run_in_worker("ottla.spark.validate:judge_batches", job), schema)


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
    topic: str = "topic",
    prefix: str = "",
) -> Callable[[Iterator[Any]], Iterator[Row]]:
    """Gives a function for `rdd.mapPartitions` that judges the record sets of a partition.

    ::

        verdicts = rdd.mapPartitions(ottla.spark.validate_partition(now_ms=1_700_000_000_000))
        verdicts.toDF(ottla.spark.verdict_schema())

    Over bytes it yields a `Row` of the columns of `VERDICT_COLUMNS` for each. Over rows (`Row`s or
    dictionaries) it yields `Row`s of their fields and these columns; an option may then be the name
    of a field. `record_errors` is a list of `Row`s. RDDs are not to be had on Spark Connect:
    `validate` works there, too, and is faster.

    Args:
        config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id, profile,
            topic, prefix: as in `validate`, names of fields in place of columns.
        column: the field with the record set.

    Raises:
        ValueError, TypeError: as `validate`; from an action for what only the rows show.
        MissingDependencyError: PySpark is not installed.
    """
    require_pyspark()
    options: dict[str, Any] = {
        "now_ms": now_ms,
        "api_version": api_version,
        "base_offset": base_offset,
        "leader_epoch": leader_epoch,
        "origin": origin,
        "transactional_id": transactional_id,
    }
    named = {name: given for name, given in options.items() if _is_name(name, given)}
    constants = {name: given for name, given in options.items() if name not in named}
    judge = Circumstances(column, checked_config(config), constants, named, topic, profile)
    judge.check()
    return run_rows_in_worker("ottla.spark.validate:judge_rows", _RowJob(judge, prefix))


def verdict_schema(prefix: str = "") -> StructType:
    """Gives the columns of `VERDICT_COLUMNS` as a schema.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    return with_columns([], VERDICT_COLUMNS, prefix)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a verdict depends on beside the bytes; `columns` tells where a row has it.

    Columns are named where rows are rows, and counted where they are Arrow.
    """

    records: Any
    config: TopicConfig | dict[str, TopicConfig] | None
    constants: Mapping[str, Any]
    columns: Mapping[str, Any]
    topic: Any
    profile: str

    def check(self) -> None:
        """Raises ValueError or TypeError where no row could be judged."""
        config = None if isinstance(self.config, dict) else self.config
        verdict_on(b"", config, profile=self.profile, **{"now_ms": 0, **self.constants})

    def positions(self) -> list[Any]:
        """Columns that are asked for, beside that of the record sets."""
        topic = [self.topic] if isinstance(self.config, dict) else []
        return [*self.columns.values(), *topic]

    def moved(self, positions: Mapping[Any, int]) -> Circumstances:
        """The same where columns have other positions."""
        columns = {name: positions[at] for name, at in self.columns.items()}
        topic = positions.get(self.topic)
        return replace(self, records=positions[self.records], columns=columns, topic=topic)

    def option(self, name: str, row: Callable[[Any], Any]) -> Any:
        """What is told of a row."""
        return row(self.columns[name]) if name in self.columns else self.constants[name]

    def judge(self, records: Any, row: Callable[[Any], Any]) -> Verdict | str:
        """The verdict on a record set, or why there is none; `row` gives the value of a column."""
        if records is None:
            return NO_RECORDS
        config = self.config
        if isinstance(config, dict):
            topic = row(self.topic)
            config = config.get(topic)
            if config is None:
                return no_config(topic)
        options = self.constants
        if self.columns:
            options = {**options, **{name: row(at) for name, at in self.columns.items()}}
            for name in self.columns:
                if options[name] is None and name not in MAY_BE_NULL:
                    return f"nothing was judged: {name} is null"
        try:
            return verdict_on(records, config, profile=self.profile, **options)
        except ValueError as error:
            return f"nothing was judged: {error}"


def prepare(
    df: DataFrame,
    column: str,
    config: Config,
    options: Mapping[str, Any],
    *,
    profile: str,
    topic: str | Column,
) -> tuple[DataFrame, Circumstances]:
    """Looks through what a call was given, against the columns there are.

    Gives the frame, with a column at its end for each option that is an expression.

    Raises:
        ValueError, TypeError: as `validate`.
    """
    require_pyspark()
    fields = [(field.name, field.dataType.simpleString()) for field in df.schema.fields]
    records = _find(fields, column, ("binary",), "column")
    wanted = dict(options)
    checked = checked_config(config)
    if isinstance(checked, dict):
        wanted["topic"] = topic
    added: list[Column] = []
    constants, columns = {}, {}
    for name, given in wanted.items():
        if is_column(given):
            columns[name] = len(fields) + len(added)
            added.append(given.alias(f"__ottla_{name}"))
        elif name == "topic" or _is_name(name, given):
            columns[name] = _find(fields, given, ROW_OPTIONS.get(name, ("string",)), name)
        else:
            constants[name] = given
    topic_at = columns.pop("topic", None)
    circumstances = Circumstances(records, checked, constants, columns, topic_at, profile)
    circumstances.check()
    if not added:
        return df, circumstances
    frame = df.select("*", *added)
    made = frame.schema.fields[len(fields) :]
    for field in made:
        name = field.name.removeprefix("__ottla_")
        _check_type(field.dataType.simpleString(), ROW_OPTIONS.get(name, ("string",)), name)
    return frame, circumstances


def with_columns(
    fields: Sequence[Any], columns: Iterable[CapturedColumn], prefix: str
) -> StructType:
    """The schema of fields and the columns behind them.

    Raises:
        ValueError: a name would be there twice.
    """
    require_pyspark()
    from pyspark.sql import types

    error = types.StructType(
        [
            types.StructField("batch_index", types.IntegerType()),
            types.StructField("message", types.StringType()),
            types.StructField("error", types.IntegerType()),
        ]
    )
    known = {
        "boolean": types.BooleanType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        f"array<{RECORD_ERROR}>": types.ArrayType(error),
    }
    there = {field.name.lower() for field in fields}
    twice = [prefix + column.name for column in columns if (prefix + column.name).lower() in there]
    if twice:
        raise ValueError(
            f"the frame has columns {', '.join(twice)} already: choose other names with prefix="
        )
    added = [types.StructField(prefix + c.name, known[c.type]) for c in columns]
    return types.StructType([*fields, *added])


def checked_config(config: object) -> TopicConfig | dict[str, TopicConfig] | None:
    """A configuration, or several by topic.

    Raises:
        TypeError: anything else.
    """
    if config is None or isinstance(config, TopicConfig):
        return config
    if isinstance(config, Mapping):
        for name, value in config.items():
            if not isinstance(name, str) or not isinstance(value, TopicConfig):
                raise TypeError(f"config of topic {name!r} is a TopicConfig, not {value!r}")
        return dict(config)
    found = type(config).__name__
    raise TypeError(f"config is a TopicConfig, or one for each topic by name, not {found}")


def is_column(given: object) -> bool:
    """Whether something is an expression of Spark."""
    from pyspark.sql import Column

    return isinstance(given, Column)


def _is_name(option: str, given: object) -> bool:
    """Whether a string is the name of a column, rather than a value."""
    return isinstance(given, str) and option not in TEXTS


def _find(fields: Sequence[tuple[str, str]], name: str, types: tuple[str, ...], what: str) -> int:
    """Where the column of a name is, if it fits."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is the name of a column, not {name!r}")
    names = [field for field, _ in fields]
    if names.count(name) != 1:
        near = get_close_matches(name, names, 1)
        found = "twice" if name in names else "not there"
        hint = f"; did you mean {near[0]!r}?" if near and name not in names else ""
        raise ValueError(f"{what} {name!r} is {found} among the columns {names}{hint}")
    at = names.index(name)
    _check_type(fields[at][1], types, f"{what} {name!r}")
    return at


def _check_type(found: str, types: tuple[str, ...], what: str) -> None:
    if found in types:
        return
    hint = "; convert it with unix_millis" if found.startswith("timestamp") else ""
    hint = "; unbase64 or unhex turn text into bytes" if types == ("binary",) else hint
    raise ValueError(f"{what} is of type {found}, expected {' or '.join(types)}{hint}")


@dataclass(frozen=True, slots=True)
class Job:
    """What a task of `validate` is told."""

    circumstances: Circumstances
    kept: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _RowJob:
    circumstances: Circumstances
    prefix: str


_NAMES = [column.name for column in VERDICT_COLUMNS]
_ERRORS_AT, _SIZE_AT = _NAMES.index("record_errors"), _NAMES.index("stored_size")
# The other columns are attributes as they stand.
_FIRST = attrgetter(*_NAMES[:_ERRORS_AT])
_MIDDLE = attrgetter(*_NAMES[_ERRORS_AT + 1 : _SIZE_AT])
_LAST = attrgetter(*_NAMES[_SIZE_AT + 1 :])
_RECORD_ERROR = attrgetter("batch_index", "message", "error")
_NOT_JUDGED = (None,) * (len(VERDICT_COLUMNS) - 4)


def verdict_row(verdict: Verdict | str) -> tuple[Any, ...]:
    """A verdict as values of `VERDICT_COLUMNS`; record errors are tuples."""
    if isinstance(verdict, str):
        return (False, None, None, verdict, *_NOT_JUDGED)
    errors = [_RECORD_ERROR(error) for error in verdict.record_errors]
    size = sum(map(len, verdict.stored_parts))
    return (*_FIRST(verdict), errors, *_MIDDLE(verdict), size, *_LAST(verdict))


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


def judge_rows(job: _RowJob) -> Callable[[Iterator[Any]], Iterator[Row]]:
    """What a task of `validate_partition` does."""
    from pyspark.sql import Row

    circumstances = job.circumstances
    names = [job.prefix + column.name for column in VERDICT_COLUMNS]
    record_error = Row("batch_index", "message", "error")
    makers: dict[tuple[str, ...], Row] = {(): Row(*names)}

    def maker(fields: tuple[str, ...]) -> Row:
        if fields not in makers:
            twice = [name for name in names if name in fields]
            if twice:
                there = ", ".join(twice)
                raise ValueError(f"rows have {there} already: choose other names with prefix=")
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
                records = value(circumstances.records)
            row = list(verdict_row(circumstances.judge(records, value)))
            if row[_ERRORS_AT] is not None:
                row[_ERRORS_AT] = [record_error(*error) for error in row[_ERRORS_AT]]
            yield maker(fields)(*given, *row)

    return judge


def _no_fields(name: str) -> Any:
    raise ValueError(f"{name} is to be a field of each row, but the rows are bytes")


def _field_of(row: Mapping[str, Any]) -> Callable[[Any], Any]:
    def field(name: str) -> Any:
        try:
            return row[name]
        except KeyError:
            raise ValueError(f"no field {name!r} in a row of {sorted(row)}") from None

    return field


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


def captured(
    batch: pa.RecordBatch, circumstances: Circumstances
) -> Iterator[tuple[memoryview | None, Callable[[Any], Any]]]:
    """Each record set of a batch, with a function that gives the row's value of a column."""
    values = {index: batch.column(index).to_pylist() for index in set(circumstances.positions())}
    for number, records in enumerate(byte_views(batch.column(circumstances.records))):
        yield records, lambda index, number=number: values[index][number]  # type: ignore[misc]


def byte_views(array: pa.Array) -> Iterator[memoryview | None]:
    """The values of a binary array, not copied; None for null."""
    ends, data = bytes_and_ends(array)
    view = data.data
    valid = None if array.null_count == 0 else array.is_valid().to_pylist()
    for index, (begin, end) in enumerate(pairwise(ends.tolist())):
        yield view[begin:end] if valid is None or valid[index] else None


def bytes_and_ends(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where the values of a binary array end, from 0 on, and their bytes, not copied."""
    import numpy as np
    import pyarrow as pa

    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        array = array.cast(pa.large_binary())
    width: Any = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    _, ends, data = array.buffers()
    if ends is None or not len(array):
        return np.zeros(len(array) + 1, np.int64), np.zeros(0, np.uint8)
    first = array.offset
    bounds = np.frombuffer(ends, width)[first : first + len(array) + 1].astype(np.int64)
    return bounds, np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def arrow_types(columns: Iterable[CapturedColumn]) -> list[pa.DataType]:
    """Arrow's types of columns."""
    import pyarrow as pa

    error = pa.struct(
        [("batch_index", pa.int32()), ("message", pa.string()), ("error", pa.int32())]
    )
    types = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "string": pa.string(),
        "binary": pa.binary(),
        f"array<{RECORD_ERROR}>": pa.list_(error),
    }
    return [types[column.type] for column in columns]
