"""Batches and records of segments as a data frame, without an audit before it.

The same reader as of `spark.read.format("ottla")`, by `mapInArrow`: rows come faster that way, with
no more columns than were asked for.
"""

from __future__ import annotations

import os
import pickle
import zlib
from typing import TYPE_CHECKING, Any, Literal

from ottla.audit.tables import TABLES
from ottla.spark.arrow import map_in_arrow
from ottla.spark.frames import SEGMENT_TABLES, SQL_TYPES
from ottla.spark.session import require_pyspark
from ottla.spark.worker import run_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit import Source
    from ottla.spark.source import Request


def read(
    spark: SparkSession,
    uri: Source | Sequence[Source],
    table: Literal["records", "batches"] = "records",
    *,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    partition_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Gives the records or batches of logs, in the order of the logs; damage is skipped.

    The files are listed now, and read when the frame is used, by tasks, each time it is used.

        >>> import ottla.spark  # doctest: +SKIP
        >>> spark = ottla.spark.session()  # doctest: +SKIP
        >>> ottla.spark.read(spark, "examples/data", columns=["offset", "value"])  # doctest: +SKIP
        DataFrame[offset: bigint, value: binary]

    Args:
        spark: a session, classic or of Spark Connect.
        uri: one path or several, as of `ottla.audit`.
        table: ``records`` or ``batches``, with the columns of `docs/tables.md`.
        columns: those that are read, in this order; all by default. What is not asked for is not
            made.
        topics: patterns as of the shell of the topics to read; all by default.
        partition_bytes: bytes of files that a task reads, at least 65,536; by default 128 MiB.
            Larger segments of this machine are cut where their `.index` names a batch.
        storage_options: settings of object stores, as of `ottla.audit`.

    Raises:
        ValueError: there is no such table.
        SparkError: there is no such column; a path or topic is of nothing. From an action: a file
            that was listed cannot be read.
        MissingDependencyError: PySpark is not installed.
    """
    require_pyspark()
    if table not in SEGMENT_TABLES:
        raise ValueError(f"table is {table!r}, not one of {', '.join(SEGMENT_TABLES)}")
    from ottla.spark.source import request_for, task_pieces

    sources = [uri] if isinstance(uri, (str, bytes, os.PathLike)) else list(uri)
    request = request_for(
        tuple(os.fsdecode(source) for source in sources),
        table,
        columns=tuple(columns or (column.name for column in TABLES[table])),
        topics=tuple(topics or ()),
        partition_bytes=partition_bytes,
        storage_options=storage_options or {},
    )
    packed = [zlib.compress(pickle.dumps(p, protocol=5), 1) for p in task_pieces(request)]
    numbers = spark.range(0, len(packed), 1, max(1, len(packed)))
    schema = ", ".join(f"`{c.name}` {SQL_TYPES[c.type]}" for c in request.described)
    function = run_in_worker("ottla.spark.read:read_pieces", (request, packed))
    return map_in_arrow(numbers, function, schema)


def read_pieces(
    work: tuple[Request, Sequence[bytes]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The work of a task: pieces of files by the number of the task in, their rows out."""
    request, packed = work

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from pickle.loads(zlib.decompress(packed[number])).rows(request)

    return run
