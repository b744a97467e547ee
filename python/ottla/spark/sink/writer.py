"""Rows written as segments of partitions, which appear together or not at all.

Each task writes the rows of a partition, in their order, as batches that count offsets from 0, into
a hidden directory beside the target. When all tasks have ended, their files are put one after
another, by the number of the task: the offsets of a batch are outside its checksum. Indexes and
leader epochs are built as a broker builds them, and the directory is renamed.
"""

from __future__ import annotations

import os
import shutil
import struct
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ottla.errors import SparkError
from ottla.logs.rebuild import rebuild_side_files
from ottla.records import build_batch, build_batch_from_columns
from ottla.spark.sink.columns import check_topic, new_topic_id, parse_sink
from ottla.spark.sink.headers import has_headers, header_sizes, records_of
from ottla.spark.work.worker import by_value
from ottla.storage.directory import check_new_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.sink.columns import SinkRequest

BUFFER_BYTES = 64 << 20
"""Bytes of rows that a task holds before it writes the batches of all partitions."""

MAX_DELTA = 2**31 - 1
"""Offsets of a segment are within this of its base offset."""

LEADER_EPOCH = 0

_FRAME = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a task has written: a part of a partition."""

    topic: str
    partition: int
    path: str
    records: int


@dataclass
class WrittenFiles(WriterCommitMessage):  # type: ignore[misc]
    """What a task has written, in the order of its rows."""

    files: list[Written]


def make_writer(options: Mapping[str, str], schema: StructType, *, is_overwrite: bool) -> LogWriter:
    """Returns a writer of logs.

    Raises:
        SparkError: see `parse_sink`; or the target is not empty.
    """
    request = parse_sink(options, schema, is_overwrite=is_overwrite)
    target = os.path.abspath(request.path)
    _check_target(target)
    parent, name = os.path.split(target)
    return LogWriter(request, target, os.path.join(parent, f".{name}.ottla-{uuid.uuid4().hex}"))


def _check_target(target: str) -> None:
    try:
        check_new_directory(target)
    except FileExistsError as error:
        raise SparkError(
            f"{error}. Logs are never added to or changed, as a broker may have them: save() to"
            " another directory, or remove this one"
        ) from error


class LogWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes the rows of a job."""

    def __init__(self, request: SinkRequest, target: str, staging: str) -> None:
        self._request = request
        self._target = target
        self._staging = staging

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Writes the rows of a task."""
        place = os.path.join(self._staging, f"task-{uuid.uuid4().hex}")
        parts: dict[tuple[str, int], _Part] = {}
        held = 0
        for batch in iterator:
            for topic, partition, rows in _by_partition(batch, self._request):
                part = parts.get((topic, partition))
                if part is None:
                    check_topic(topic, partition)
                    part = _Part(self._request, topic, partition, place)
                    parts[topic, partition] = part
                held += part.add(rows)
            if held >= BUFFER_BYTES:
                for part in parts.values():
                    part.flush()
                held = 0
        for part in parts.values():
            part.flush()
        return WrittenFiles([written for part in parts.values() for written in part.written()])

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Puts the files of all tasks together, and lets the target appear."""
        try:
            self._put_together(messages)
            _check_target(self._target)
            os.rename(os.path.join(self._staging, "logs"), self._target)
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Removes what was written."""
        shutil.rmtree(self._staging, ignore_errors=True)

    def _put_together(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        logs = os.path.join(self._staging, "logs")
        os.makedirs(logs)
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            for written in message.files if isinstance(message, WrittenFiles) else ():
                key = written.topic, written.partition
                base = ends.get(key, 0)
                directory = os.path.join(logs, f"{written.topic}-{written.partition}")
                os.makedirs(directory, exist_ok=True)
                _move_offsets(written.path, base)
                os.rename(written.path, os.path.join(directory, f"{base:020d}.log"))
                ends[key] = base + written.records
        if not ends:
            return
        ids = {topic: self._request.topic_id or new_topic_id() for topic, _ in ends}
        for topic, number in ends:
            path = os.path.join(logs, f"{topic}-{number}", "partition.metadata")
            with open(path, "x", encoding="ascii") as file:
                file.write(f"version: 0\ntopic_id: {ids[topic]}\n")
        built = os.path.join(self._staging, "built")
        for partition in rebuild_side_files(logs, built):
            if partition.fault is not None:
                raise SparkError(f"{partition.directory} was not written well: {partition.fault}")
            for name in partition.files:
                os.rename(
                    os.path.join(partition.target, name),
                    os.path.join(logs, partition.directory, name),
                )

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self._request, self._target, self._staging)
        return by_value("ottla.spark.sink.writer:LogWriter", arguments)


def _move_offsets(path: str, base: int) -> None:
    """Adds to the base offset of every batch of a file."""
    if base == 0:
        return
    with open(path, "r+b") as file:
        position, end = 0, os.fstat(file.fileno()).st_size
        while position < end:
            file.seek(position)
            base_offset, length = _FRAME.unpack(file.read(_FRAME.size))
            file.seek(position)
            file.write((base_offset + base).to_bytes(8, "big"))
            position += _FRAME.size + length


def _by_partition(
    batch: pa.RecordBatch, request: SinkRequest
) -> Iterator[tuple[str, int, pa.Table]]:
    """Divides rows by partition, in their order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if batch.num_rows == 0:
        return
    rows = _as_written(batch)
    topics = rows.column("topic") if request.topic is None else None
    partitions = rows.column("partition") if request.partition is None else None
    for name, column in (("topic", topics), ("partition", partitions)):
        if column is not None and column.null_count:
            raise SparkError(f"{name} is null in a row: every record needs a partition")
    keys = [column for column in (topics, partitions) if column is not None]
    if not keys:
        yield request.topic or "", request.partition or 0, rows
        return
    names = [name for name in ("topic", "partition") if getattr(request, name) is None]
    # The order of equal rows stays.
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names])
    rows = rows.take(order)
    changes = np.zeros(rows.num_rows - 1, bool)
    for name in names:
        column = rows.column(name).combine_chunks()
        unequal = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        changes |= np.asarray(pa.array(unequal).to_numpy(zero_copy_only=False), bool)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]
    for begin, end in pairwise(bounds):
        topic = request.topic if topics is None else rows.column("topic")[begin].as_py()
        partition = (
            request.partition if partitions is None else rows.column("partition")[begin].as_py()
        )
        yield topic or "", partition or 0, rows.slice(begin, end - begin)


def _as_written(batch: pa.RecordBatch) -> pa.Table:
    """Returns rows with the types of the builder: timestamps in ms, -1 for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.Table.from_batches([batch])
    stamps = pa.chunked_array([pa.nulls(rows.num_rows, pa.int64())])
    if "timestamp" in rows.column_names:
        stamps = rows.column("timestamp")
        if pa.types.is_timestamp(stamps.type):
            unit = pa.timestamp("ms", tz=stamps.type.tz)
            stamps = pc.cast(stamps, unit, safe=False).cast(pa.int64())
    columns = {"timestamp": pc.fill_null(stamps, -1)}
    for name in ("key", "value"):
        if name in rows.column_names:
            columns[name] = rows.column(name).cast(pa.large_binary())
        else:
            columns[name] = pa.chunked_array([pa.nulls(rows.num_rows, pa.large_binary())])
    for name in ("topic", "partition", "headers"):
        if name in rows.column_names:
            columns[name] = rows.column(name)
    return pa.table(columns)


@dataclass
class _Part:
    """The rows of one partition in one task, in files of segments."""

    request: SinkRequest
    topic: str
    partition: int
    place: str
    held: list[Any] = field(default_factory=list)
    files: list[tuple[str, int, int]] = field(default_factory=list)
    """Path, records and size of each file."""

    def add(self, rows: pa.Table) -> int:
        """Holds rows, and returns how many bytes they have."""
        self.held.append(rows)
        size: int = rows.nbytes
        return size

    def flush(self) -> None:
        """Writes the rows that are held."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.held:
            return
        rows = pa.concat_tables(self.held).combine_chunks()
        self.held = []
        sizes = header_sizes(rows)
        for name in ("key", "value"):
            lengths = pc.fill_null(pc.binary_length(rows.column(name)), 0)
            sizes += np.asarray(lengths.to_numpy(), np.int64)
        # The number of the batch in which a row begins.
        numbers = (np.cumsum(sizes + 16) - (sizes + 16)) // self.request.batch_bytes
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), rows.num_rows]
        for begin, end in pairwise(bounds):
            self._write(rows.slice(begin, end - begin))

    def _write(self, rows: pa.Table) -> None:
        records = rows.num_rows
        if not self.files or self._is_full(records):
            os.makedirs(self.place, exist_ok=True)
            self.files.append((self._path(), 0, 0))
        path, before, size = self.files[-1]
        try:
            data = self._build(rows, before)
        except ValueError as error:
            raise SparkError(f"{self.topic}-{self.partition} cannot be written: {error}") from error
        with open(path, "ab") as file:
            file.write(data)
        self.files[-1] = (path, before + records, size + len(data))

    def _build(self, rows: pa.Table, base_offset: int) -> bytes:
        """Returns rows as a batch.

        Raises:
            ValueError: they cannot be records.
        """
        import numpy as np

        fields: Any = {
            "base_offset": base_offset,
            "compression": self.request.compression,
            "partition_leader_epoch": LEADER_EPOCH,
        }
        if has_headers(rows):
            return build_batch(records_of(rows), **fields)
        stamps = np.ascontiguousarray(rows.column("timestamp").to_numpy(), np.int64)
        key, value = (_one_array(rows.column(name).combine_chunks()) for name in ("key", "value"))
        return build_batch_from_columns(stamps, key, value, **fields)

    def _is_full(self, records: int) -> bool:
        _, before, size = self.files[-1]
        return size >= self.request.segment_bytes or before + records > MAX_DELTA

    def _path(self) -> str:
        return os.path.join(self.place, f"{self.topic}-{self.partition}.{len(self.files)}")

    def written(self) -> list[Written]:
        """Returns the files, in order."""
        return [
            Written(self.topic, self.partition, path, records) for path, records, _ in self.files
        ]


def _one_array(column: Any) -> Any:
    """Returns a column of one chunk as an array."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
