"""Parquet files of captured record sets, read by the tasks: no row passes through the JVM.

Spark lists the files and reads their schema; each task reads row groups itself. Moving a large
column from Parquet through the JVM to Python would cost several times as much as the verdicts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import unquote

from ottla.errors import MissingDependencyError, SparkError, StorageError
from ottla.spark.captured.options import SetsJob
from ottla.spark.setup.jobs import job
from ottla.spark.work.items import frame_of_work, rows_of_work
from ottla.spark.work.packing import TaskSize, group_items
from ottla.storage import LocalPlace, StorageOptions, files_of, full_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from ottla.spark.work.items import Packed, Reader

__all__ = ["CapturedFiles", "ReadTask", "rows_of_files"]

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

AnyJob = TypeVar("AnyJob", bound=SetsJob)
"""What a task does with the rows of files."""


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a file: the row groups whose middle is inside it."""

    uri: str
    start: int
    stop: int
    size: int


@dataclass(frozen=True, slots=True)
class ReadTask(Generic[AnyJob]):
    """The arguments of every task, besides its reads."""

    job: AnyJob
    names: tuple[str, ...]
    types: tuple[str, ...]
    storage_options: Mapping[str, str]


class CapturedFiles:
    """Parquet files that tasks read, with the columns that Spark sees in them."""

    def __init__(
        self,
        spark: SparkSession,
        paths: str | Sequence[str],
        storage_options: Mapping[str, str] | None,
        instead: str,
    ) -> None:
        """Reads the schema of the files; `instead` is what takes a frame of a table.

        Raises:
            SparkError: there are no such files, their schema cannot be read, or they are in a table
                of another format.
        """
        self._spark = spark
        self._paths = [paths] if isinstance(paths, str) else list(paths)
        self._storage_options = storage_options
        self._reads: list[tuple[Read, ...]] | None = None
        for path in self._paths:
            _reject_table(path, storage_options, instead)
        with job(f"reading the schema of {', '.join(self._paths)}"):
            self.frame: DataFrame = spark.read.parquet(*self._paths)
            self.fields: list[StructField] = self.frame.schema.fields

    def rows(self, target: str, work: AnyJob, schema: StructType) -> DataFrame:
        """Returns the rows that tasks make of the files.

        Args:
            target: ``"module:function"`` of Ottla: a function of `ReadTask` and packed reads, which
                returns what `rows_of_files` returns.
            work: what to do with rows of all columns.
            schema: of the result.
        """
        task = self._task(work)
        if self._reads is None:
            with job(f"listing {', '.join(self._paths)}"):
                self._reads = _reads(self._spark, self.frame, self._paths, self._storage_options)
        return frame_of_work(self._spark, target, task, self._reads, schema)

    def _task(self, work: AnyJob) -> ReadTask[AnyJob]:
        """Returns the arguments of tasks, which read only the columns they need."""
        context = work.context
        needed = sorted({context.records, *work.kept, *context.positions()})
        types = _types([self.fields[index] for index in needed])
        fitting = replace(
            work,
            context=context.at_positions({index: at for at, index in enumerate(needed)}),
            kept=tuple(needed.index(index) for index in work.kept),
        )
        options = StorageOptions(self._storage_options or {})
        return ReadTask(fitting, tuple(types), tuple(types.values()), options)


def rows_of_files(
    work: tuple[ReadTask[AnyJob], Packed],
    rows_of: Callable[[AnyJob], Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]],
) -> Reader:
    """Returns the work of a task: from its number to the rows of its parts of files."""
    task, packed = work
    run = rows_of(task.job)

    def rows(_: int, reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
        for read in reads:
            yield from run(_batches(task, read))

    return rows_of_work(packed, rows)


def _reject_table(path: str, storage_options: Mapping[str, str] | None, instead: str) -> None:
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
                        f" ottla.spark.{instead}(captures, …)"
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


def _batches(work: ReadTask[AnyJob], read: Read) -> Iterator[pa.RecordBatch]:
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
