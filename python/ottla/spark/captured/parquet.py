"""Judges record sets in Parquet files where the files are read: no row passes through the JVM.

Spark lists the files and reads their schema; each task reads row groups itself. Moving a large
column from Parquet through the JVM to Python would cost several times as much as the verdicts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ottla.errors import MissingDependencyError, SparkError, StorageError
from ottla.spark.captured.columns import VERDICT_COLUMNS, with_columns
from ottla.spark.captured.options import Config, JudgeContext, RequestOptions, is_column, prepare
from ottla.spark.captured.validate import JudgeJob, judge_batches
from ottla.spark.setup.jobs import job
from ottla.spark.work.items import frame_of_work, rows_of_work
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.packing import TaskSize, group_items
from ottla.storage import LocalPlace, StorageOptions, files_of, full_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from ottla.spark.work.items import Packed, Reader

__all__ = ["validate_parquet"]

TASK_SIZE = TaskSize(max_bytes=256 << 20, min_bytes=16 << 20, tasks_per_core=2, tasks_on_connect=64)
"""Size of the Parquet that a task reads, unless a row group is larger."""

BATCH_BYTES = 8 << 20
"""Approximate size of the rows judged at a time."""

# Spark types of columns that are kept, and the Arrow types of Spark's Parquet files.
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
# Kinds of tables, the directory of their log, and a file that only they have there.
_TABLES = (
    ("Delta", b"/_delta_log", b"*.json"),
    ("Iceberg", b"/metadata", b"*.metadata.json"),
    ("Hudi", b"/.hoodie", b"hoodie.properties"),
)
_GLOB = re.compile(rb"[*?\[{]")
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
    listed = [paths] if isinstance(paths, str) else list(paths)
    for path in listed:
        _reject_table(path, storage_options)
    with job(f"reading the schema of {', '.join(listed)}"):
        df = spark.read.parquet(*listed)
        fields = df.schema.fields
    _, context = prepare(df, column, config, options, (profile, kafka_version), topic=topic)
    kept = _kept([field.name for field in fields], column, columns, keep_records=keep_records)
    schema = with_columns([fields[index] for index in kept], VERDICT_COLUMNS, prefix)
    work = _work(fields, context, kept, schema.names, storage_options)
    with job(f"listing {', '.join(listed)}"):
        reads = _reads(spark, df, listed, storage_options)
    return frame_of_work(spark, "ottla.spark.captured.parquet:judge_files", work, reads, schema)


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a file: the row groups whose middle is inside it."""

    uri: str
    start: int
    stop: int
    size: int


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The arguments of every task, besides its reads."""

    judge: JudgeJob
    names: tuple[str, ...]
    types: tuple[str, ...]
    storage_options: Mapping[str, str]


def _work(
    fields: Sequence[StructField],
    context: JudgeContext,
    kept: Sequence[int],
    names: Sequence[str],
    storage_options: Mapping[str, str] | None,
) -> ReadTask:
    """Returns the arguments of tasks, which read only the columns they need."""
    needed = sorted({context.records, *kept, *context.positions()})
    types = _types([fields[index] for index in needed])
    judge = JudgeJob(
        context.at_positions({index: at for at, index in enumerate(needed)}),
        tuple(needed.index(index) for index in kept),
        tuple(names),
    )
    options = StorageOptions(storage_options or {})
    return ReadTask(judge, tuple(types), tuple(types.values()), options)


def _reject_expressions(options: Mapping[str, Any]) -> None:
    for name, given in options.items():
        if is_column(given):
            raise TypeError(
                f"{name} must be a value or the name of a column: expressions are not available"
                " to tasks that read files"
            )


def _reject_table(path: str, storage_options: Mapping[str, str] | None) -> None:
    """Raises SparkError for a path inside a table whose own log says which files and rows count."""
    directory = full_path(path)
    while directory.strip(b"/"):
        parent, _, name = directory.rpartition(b"/")
        if not _GLOB.search(name):
            for kind, log, mark in _TABLES:
                if _has(directory + log, mark, storage_options):
                    table = os.fsdecode(directory)
                    raise SparkError(
                        f"{path} is in the {kind} table {table}, whose Parquet files also hold rows"
                        " that were deleted or replaced: read the table, captures = spark.read"
                        f".format({kind.lower()!r}).load({table!r}), and use"
                        " ottla.spark.validate(captures, …)"
                    )
        if not (_GLOB.search(name) or b"=" in name or name.endswith(b".parquet")):
            # Neither files nor directories of partitions: no table further up has this path.
            return
        directory = parent


def _has(directory: bytes, mark: bytes, storage_options: Mapping[str, str] | None) -> bool:
    """Whether a directory has a file that matches; what cannot be listed has none."""
    try:
        entries = files_of(directory, storage_options).list(directory)
    except (OSError, StorageError, MissingDependencyError):
        return False
    return any(fnmatchcase(entry.name, mark) for entry in entries)


def _types(fields: Sequence[StructField]) -> dict[str, str]:
    """Returns the types of the columns to read, by name."""
    types = {field.name: field.dataType.simpleString() for field in fields}
    for name, type_ in types.items():
        if type_ not in _ARROW_TYPES:
            raise ValueError(
                f"column {name!r} is of type {type_}, which cannot be kept: omit it with"
                f" columns=[…], expected one of {', '.join(_ARROW_TYPES)}"
            )
    return types


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


def _reads(
    spark: SparkSession,
    df: DataFrame,
    paths: Sequence[str],
    storage_options: Mapping[str, str] | None,
) -> list[tuple[Read, ...]]:
    """Returns the parts of files for each task, in the order of their names."""
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


def judge_files(work: tuple[ReadTask, Packed]) -> Reader:
    """Returns the work of a task: from its number to the verdicts on its parts of files."""
    task, packed = work
    judge = judge_batches(task.judge)

    def verdicts(_: int, reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
        for read in reads:
            yield from judge(_batches(task, read))

    return rows_of_work(packed, verdicts)


def _batches(work: ReadTask, read: Read) -> Iterator[pa.RecordBatch]:
    """Yields the needed columns of a part of a file in chunks."""
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


def _groups(metadata: FileMetaData, read: Read) -> Iterator[int]:
    """Yields the row groups whose middle is in the part; each group is in one part of its file."""
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        first = group.column(0)
        start = first.dictionary_page_offset or first.data_page_offset
        size = sum(group.column(n).total_compressed_size for n in range(group.num_columns))
        middle = min(start + size // 2, read.size - 1)
        if read.start <= middle < read.stop:
            yield index


def _rows_at_once(metadata: FileMetaData, groups: Sequence[int]) -> int:
    """Returns the number of rows in `BATCH_BYTES`, at the average size of a row."""
    found = [metadata.row_group(group) for group in groups]
    rows = sum(int(group.num_rows) for group in found)
    size = sum(int(group.total_byte_size) for group in found)
    return max(1, rows * BATCH_BYTES // max(1, size))


def _opened(read: Read, storage_options: Mapping[str, str]) -> pa.NativeFile:
    import pyarrow as pa

    path = full_path(read.uri)
    place = files_of(path, storage_options).place(path, read.size)
    if isinstance(place, LocalPlace):
        return pa.memory_map(os.fsdecode(place))
    return pa.PythonFile(place.open(), mode="r")


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
    """A column that the file lacks: the value in the name of its directory, or null."""
    import pyarrow as pa

    for part in uri.split("/"):
        key, equals, value = part.partition("=")
        if equals and unquote(key) == name and value != _NULL_PARTITION:
            return pa.repeat(pa.scalar(unquote(value)).cast(type_), count)
    return pa.nulls(count, type_)
