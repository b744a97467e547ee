"""Work handed to tasks by number: task i unpacks item i and gives its rows.

`spark.range` in n partitions gives each task one number, on classic Spark and on Connect alike, and
keeps rows in the order of the items without a shuffle. An item is bytes until its own task unpacks
it, since all of them travel with every task.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.worker import run_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Reader = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """Numbers of tasks in, rows out."""

__all__ = ["frame_of_work", "rows_of_work"]


def frame_of_work(
    spark: SparkSession, target: str, shared: Any, items: Iterable[Any], columns: str | StructType
) -> DataFrame:
    """The rows that tasks make of items, in their order.

    Args:
        spark: a session.
        target: ``"module:function"`` of ours. It takes `shared` and the packed items, and gives
            what `rows_of_work` does.
        shared: what every task needs.
        items: of each task one; anything that pickle takes.
        columns: names and types of the rows.
    """
    packed = [zlib.compress(pickle.dumps(item, protocol=5), 1) for item in items]
    numbers = spark.range(0, len(packed), 1, max(1, len(packed)))
    return map_in_arrow(numbers, run_in_worker(target, (shared, packed)), columns)


def rows_of_work(
    packed: Sequence[bytes], rows: Callable[[int, Any], Iterable[pa.RecordBatch]]
) -> Reader:
    """The work of a task: `rows` of the items whose numbers come in, which it gets, too."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # Packed by `frame_of_work`, in the driver of this job.
                yield from rows(number, pickle.loads(zlib.decompress(packed[number])))

    return run
