"""Record sets in Parquet files, judged where the files are read: no row passes through the JVM.

Spark lists the files and knows their schema; each task reads row groups itself. Bytes in, a verdict
out: the way of a large column from Parquet through the JVM into Python costs several times what a
verdict costs.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ottla.errors import SparkError
from ottla.spark.captured.columns import VERDICT_COLUMNS, with_columns
from ottla.spark.captured.options import Circumstances, Config, RequestOptions, is_column, prepare
from ottla.spark.captured.validate import Job, judge_batches
from ottla.spark.setup.jobs import job
from ottla.spark.work.items import frame_of_work, rows_of_work
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.packing import TaskSize, group_items
from ottla.storage import files_of, full_path
from ottla.storage.objects import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.work.items import Reader

__all__ = ["validate_parquet"]

TASK_SIZE = TaskSize(max_bytes=256 << 20, min_bytes=16 << 20, tasks_per_core=2, tasks_on_connect=64)
"""Bytes of Parquet that a task reads, if a row group has no more."""

BATCH_BYTES = 8 << 20
"""About so many bytes of a row group are judged at a time."""

# Types of columns that are handed on, as Spark writes them, and what Arrow calls them there.
_ARROW_TYPES = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date32",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


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
    topic: str = "topic",
    columns: Sequence[str] | None = None,
    prefix: str = "",
    keep_records: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Gives the verdicts of `validate` on a column of Parquet files, read by the tasks themselves.

    The same as ``validate(spark.read.parquet(paths), …)``, several times as fast where record sets
    are large: their bytes stay in the worker. Each task reads some row groups, from paths of the
    machine it runs on or from an object store.

    Args:
        spark: the session, classic or Spark Connect.
        paths: what `spark.read.parquet` takes; partition columns in the names of directories count.
        column, config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id,
            profile, topic, prefix: as in `validate`; what differs from row to row is the name of a
            column.
        columns: the other columns to keep; without it all of them.
        keep_records: whether `column` itself is kept. Its bytes then go through the JVM after all.
        storage_options: how object stores are reached, as for `ottla.audit`.

    Raises:
        ValueError, TypeError, MissingDependencyError: as `validate`; or a column to keep is a list,
            a map or a struct.
        SparkError: there are no such files, or their schema cannot be read. A file that is damaged
            further on fails the action that reads it; `ottla.spark.job` makes a sentence of that.

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
    _refuse_expressions({**options.by_name(), "topic": topic})
    listed = [paths] if isinstance(paths, str) else list(paths)
    with job(f"reading the schema of {', '.join(listed)}"):
        df = spark.read.parquet(*listed)
        fields = df.schema.fields
    _, circumstances = prepare(df, column, config, options, profile=profile, topic=topic)
    kept = _kept([field.name for field in fields], column, columns, keep_records=keep_records)
    schema = with_columns([fields[index] for index in kept], VERDICT_COLUMNS, prefix)
    work = _work(fields, circumstances, kept, schema.names, storage_options)
    with job(f"listing {', '.join(listed)}"):
        reads = _reads(spark, df, listed, storage_options)
    return frame_of_work(spark, "ottla.spark.captured.parquet:judge_files", work, reads, schema)


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a file: the row groups whose middle lies in it."""

    uri: str
    start: int
    stop: int
    size: int


@dataclass(frozen=True, slots=True)
class Work:
    """What every task is told, beside its reads."""

    judge: Job
    names: tuple[str, ...]
    types: tuple[str, ...]
    storage_options: Mapping[str, str]


def _work(
    fields: Sequence[Any],
    circumstances: Circumstances,
    kept: Sequence[int],
    names: Sequence[str],
    storage_options: Mapping[str, str] | None,
) -> Work:
    """What tasks are told that read no more than the columns they need."""
    needed = sorted({circumstances.records, *kept, *circumstances.positions()})
    types = _types([fields[index] for index in needed])
    judge = Job(
        circumstances.moved({index: at for at, index in enumerate(needed)}),
        tuple(needed.index(index) for index in kept),
        tuple(names),
    )
    return Work(judge, tuple(types), tuple(types.values()), dict(storage_options or {}))


def _refuse_expressions(options: Mapping[str, Any]) -> None:
    for name, given in options.items():
        if is_column(given):
            raise TypeError(
                f"{name}: tasks that read files know values and names of columns, no expressions"
            )


def _types(fields: Sequence[Any]) -> dict[str, str]:
    """The types of columns that are read, by name."""
    types = {field.name: field.dataType.simpleString() for field in fields}
    for name, type_ in types.items():
        if type_ not in _ARROW_TYPES:
            raise ValueError(
                f"column {name!r} is of type {type_}, which is not handed on: leave it out with"
                f" columns=[…], expected one of {', '.join(_ARROW_TYPES)}"
            )
    return types


def _kept(
    names: Sequence[str], column: str, columns: Sequence[str] | None, *, keep_records: bool
) -> list[int]:
    """Positions of the columns to keep."""
    unknown = [name for name in columns or () if name not in names]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} of columns= is not among the columns {names}")
    others = [name for name in names if name != column and (columns is None or name in columns)]
    return [
        at for at, name in enumerate(names) if name in others or (name == column and keep_records)
    ]


def _reads(
    spark: SparkSession,
    df: DataFrame,
    paths: Sequence[str],
    storage_options: Mapping[str, str] | None,
) -> list[tuple[Read, ...]]:
    """Parts of the files for each task, in the order of their names."""
    wanted = {full_path(uri): uri for uri in df.inputFiles()}
    listing = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .load(list(paths))
        .select("path", "length")
    )
    sizes = {full_path(row["path"]): row["length"] for row in listing.collect()}
    files = [
        (path, sizes[path] if path in sizes else files_of(path, storage_options).stat(path).size)
        for path in sorted(wanted)
    ]
    task_bytes = TASK_SIZE.bytes_for(spark, sum(size for _, size in files))
    reads = (
        Read(wanted[path], start, min(start + task_bytes, size), size)
        for path, size in files
        for start in range(0, size, task_bytes)
    )
    tasks = group_items(reads, lambda read: read.stop - read.start, max_bytes=task_bytes)
    return [tuple(group) for group in tasks]


def judge_files(work: tuple[Work, Sequence[bytes]]) -> Reader:
    """The work of a task: reads by the number of the task in, verdicts on what they hold out."""
    told, packed = work
    judge = judge_batches(told.judge)

    def judged(_: int, reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
        for read in reads:
            yield from judge(_batches(told, read))

    return rows_of_work(packed, judged)


def _batches(work: Work, read: Read) -> Iterator[pa.RecordBatch]:
    """The columns of a part of a file that are needed, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [_arrow_type(type_) for type_ in work.types]
    try:
        with pq.ParquetFile(_opened(read, work.storage_options), pre_buffer=False) as file:
            there = set(file.schema_arrow.names)
            groups = list(_groups(file.metadata, read))
            columns = [name for name in work.names if name in there]
            # A task has one core.
            batches = file.iter_batches(
                _rows_at_once(file.metadata, groups),
                row_groups=groups,
                columns=columns,
                use_threads=False,
            )
            for batch in batches:
                arrays = [
                    _cast(batch.column(name), type_)
                    if name in there
                    else _repeated(read.uri, name, type_, batch.num_rows)
                    for name, type_ in zip(work.names, types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=list(work.names))
    except (OSError, pa.ArrowException) as error:
        raise SparkError(f"{read.uri}: cannot be read as Parquet: {error}") from error


def _groups(metadata: Any, read: Read) -> Iterator[int]:
    """Row groups whose middle lies in the part; every group is in one part of its file."""
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        first = group.column(0)
        start = first.dictionary_page_offset or first.data_page_offset
        size = sum(group.column(n).total_compressed_size for n in range(group.num_columns))
        middle = min(start + size // 2, read.size - 1)
        if read.start <= middle < read.stop:
            yield index


def _rows_at_once(metadata: Any, groups: Sequence[int]) -> int:
    """Rows of about `BATCH_BYTES`, where rows are as large as on average."""
    found = [metadata.row_group(group) for group in groups]
    rows = sum(int(group.num_rows) for group in found)
    size = sum(int(group.total_byte_size) for group in found)
    return max(1, rows * BATCH_BYTES // max(1, size))


def _opened(read: Read, storage_options: Mapping[str, str]) -> Any:
    import pyarrow as pa

    path = full_path(read.uri)
    place = files_of(path, storage_options).place(path, read.size)
    if isinstance(place, bytes):
        return pa.memory_map(place.decode("utf-8", "surrogateescape"))
    return pa.PythonFile(io.BufferedReader(ObjectFile(place)), mode="r")


def _arrow_type(type_: str) -> pa.DataType:
    import pyarrow as pa

    if type_ == "timestamp":
        return pa.timestamp("us", tz="UTC")
    if type_ == "timestamp_ntz":
        return pa.timestamp("us")
    return pa.type_for_alias(_ARROW_TYPES[type_])


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def _repeated(uri: str, name: str, type_: pa.DataType, count: int) -> pa.Array:
    """A column that the file has not: of the name of its directory, or null."""
    import pyarrow as pa

    for part in uri.split("/"):
        key, equals, value = part.partition("=")
        if equals and unquote(key) == name and value != _NULL_PARTITION:
            return pa.repeat(pa.scalar(unquote(value)).cast(type_), count)
    return pa.nulls(count, type_)
