"""`mapInArrow`, `applyInArrow` and frames from and to Arrow, with every release of PySpark.

Pandas is not needed: PySpark asks for it without using it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.work.private import is_connect, map_in_arrow_without_pandas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["apply_in_arrow", "frame_of_arrow", "map_in_arrow", "rows_of"]


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: str | StructType,
) -> DataFrame:
    """Returns `frame.mapInArrow(function, columns)`."""
    if _has_pandas() or is_connect(frame.sparkSession):
        return frame.mapInArrow(function, columns)
    return map_in_arrow_without_pandas(frame, function, columns)


def apply_in_arrow(
    frame: DataFrame, by: str, function: Callable[[pa.Table], pa.Table], columns: str
) -> DataFrame:
    """Returns `frame.groupBy(by).applyInArrow(function, columns)`, which is new in PySpark 4.0.

    Spark plans both alike: a shuffle by the column, and a sort. A worker holds one group.
    """
    ordered = frame.repartition(by).sortWithinPartitions(by)
    return map_in_arrow(ordered, _by_group(frame.columns.index(by), function), columns)


def rows_of(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """Yields the rows of a frame, through Arrow where PySpark can: 4.0 and newer.

    Binary values are `bytes`.
    """
    if not hasattr(frame, "toArrow"):
        for row in frame.collect():
            yield {
                name: bytes(value) if isinstance(value, bytearray) else value
                for name, value in row.asDict().items()
            }
        return
    for batch in frame.toArrow().to_batches():
        yield from batch.to_pylist()


def frame_of_arrow(spark: SparkSession, table: pa.Table, columns: str) -> DataFrame:
    """Returns a frame of a table on the driver, through Arrow where PySpark can: 4.0 and newer."""
    if hasattr(spark, "dataSource"):
        return spark.createDataFrame(table, columns)
    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], columns)


def _by_group(
    key: int, function: Callable[[pa.Table], pa.Table]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function, pickled by value, from rows ordered by a column to those of groups."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        group: list[pa.RecordBatch] = []
        value = None
        for batch in batches:
            values = batch.column(key).to_pylist()
            start = 0
            for at, found in enumerate(values):
                if group or at > start:
                    if found == value:
                        continue
                    group.append(batch.slice(start, at - start))
                    yield from function(pa.Table.from_batches(group)).to_batches()
                    group, start = [], at
                value = found
            if start < len(values):
                group.append(batch.slice(start))
        if group:
            yield from function(pa.Table.from_batches(group)).to_batches()

    return run


def _has_pandas() -> bool:
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        return False
    return True
