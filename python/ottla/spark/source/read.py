"""Batches and records of segments as a data frame, without an audit.

Reads like `spark.read.format("ottla")`, but through `mapInArrow`, which is faster, and only the
requested columns.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from ottla.audit.result.columns import SEGMENT_TABLES
from ottla.logs.names import topic_patterns
from ottla.spark.source.bounds import Bounds
from ottla.spark.source.options import request_for
from ottla.spark.source.pieces import task_pieces
from ottla.spark.work.items import frame_of_work, rows_of_work
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit import Source
    from ottla.logs.reading import Isolation
    from ottla.spark.source.options import OnDamage, Request
    from ottla.spark.work.items import Packed, Reader


def read(
    spark: SparkSession,
    uri: Source | Sequence[Source],
    table: Literal["records", "batches"] = "records",
    *,
    columns: Sequence[str] | None = None,
    topics: str | Sequence[str] | None = None,
    isolation: Isolation = "read_uncommitted",
    on_damage: OnDamage = "fail",
    from_offset: int | None = None,
    to_offset: int | None = None,
    from_timestamp: int | None = None,
    to_timestamp: int | None = None,
    partition_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Returns the records or batches of logs, in the order of the logs.

    The files are listed now; tasks read them each time the frame is used.

        >>> import ottla.spark  # doctest: +SKIP
        >>> spark = ottla.spark.session()  # doctest: +SKIP
        >>> ottla.spark.read(spark, "examples/data", columns=["offset", "value"])  # doctest: +SKIP
        DataFrame[offset: bigint, value: binary]

    Args:
        spark: a session, classic or Spark Connect.
        uri: one or several paths; see `ottla.audit`.
        table: ``records`` or ``batches``, with the columns of `docs/tables.md`.
        columns: the columns to read and compute, at least one, in this order; all by default.
        topics: a shell pattern of the topics to read, or several; all by default.
        isolation: of ``records``: ``read_uncommitted``, or ``read_committed``, which leaves out
            records of aborted transactions and those behind the last stable offset (KIP-98). The
            logs are read once for it, now, by all cores of the driver.
        on_damage: of ``records``, what becomes of unreadable bytes: ``fail``, ``skip``, with
            a `DamageWarning` in the task, or ``quarantine``, as rows, see `docs/spark/source.md`.
        from_offset: of ``records``, the first offset of each partition.
        to_offset: the offset to stop before; segments without offsets between are not opened.
        from_timestamp: of ``records``, the earliest timestamp, ms since 1970, wherever in the log
            it is: -1 for records of magic 0.
        to_timestamp: the timestamp to stop before.
        partition_bytes: size of the files that a task reads, at least 65,536; by default 128 MiB.
            Larger local segments are split at batches listed in their `.index`.
        storage_options: settings of object stores; see `ottla.audit`.

    Raises:
        ValueError: there is no such table, isolation or way with damage; a bound is no offset or
            timestamp.
        SparkError: there is no such column; no column or no topic is named; a path has no logs, or
            a topic matches nothing. From an action: a file cannot be read, or is damaged.
        MissingDependencyError: PySpark is not installed.
    """
    require_pyspark()
    if table not in SEGMENT_TABLES:
        raise ValueError(f"table is {table!r}, not one of {', '.join(SEGMENT_TABLES)}")
    sources = [uri] if isinstance(uri, (str, bytes, os.PathLike)) else list(uri)
    request = request_for(
        tuple(os.fsdecode(source) for source in sources),
        table,
        columns=None if columns is None else tuple(columns),
        topics=None if topics is None else topic_patterns(topics),
        isolation=isolation,
        on_damage=on_damage,
        bounds=Bounds.between(from_offset, to_offset, from_timestamp, to_timestamp),
        partition_bytes=partition_bytes,
        storage_options=storage_options or {},
    )
    schema = schema_of(request.column_definitions)
    pieces = task_pieces(request)
    return frame_of_work(spark, "ottla.spark.source.read:read_pieces", request, pieces, schema)


def read_pieces(work: tuple[Request, Packed]) -> Reader:
    """Returns the work of a task: from its number to the rows of its pieces of files."""
    request, packed = work
    return rows_of_work(packed, lambda _, pieces: pieces.rows(request))
