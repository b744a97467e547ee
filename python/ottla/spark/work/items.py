"""Work sent to tasks by number: task i unpacks item i and returns its rows.

`spark.range` in n partitions passes each task one number, on classic Spark and on Connect, and
keeps rows in the order of the items without a shuffle. An item stays packed until its own task
unpacks it, because every task receives all of them.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.worker import run_in_worker
from ottla.storage import sending_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Reader = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """A function from task numbers to rows."""

__all__ = ["frame_of_work", "rows_of_work"]


def frame_of_work(
    spark: SparkSession, target: str, shared: Any, items: Iterable[Any], columns: str | StructType
) -> DataFrame:
    """Returns the rows that tasks compute from items, in order.

    Args:
        spark: a session.
        target: ``"module:function"`` of Ottla. It takes `shared` and the packed items, and returns
            what `rows_of_work` returns.
        shared: an object for every task.
        items: one for each task; any objects that can be pickled.
        columns: names and types of the rows.
    """
    with sending_secrets():
        packed = [zlib.compress(pickle.dumps(item, protocol=5), 1) for item in items]
    numbers = spark.range(0, len(packed), 1, max(1, len(packed)))
    return map_in_arrow(numbers, run_in_worker(target, (shared, packed)), columns)


def rows_of_work(
    packed: Sequence[bytes], rows: Callable[[int, Any], Iterable[pa.RecordBatch]]
) -> Reader:
    """Returns the work of a task: `rows` of each item whose number arrives, and of its number."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # Packed by `frame_of_work`, in the driver of this job.
                yield from rows(number, pickle.loads(zlib.decompress(packed[number])))

    return run
