"""Work sent to tasks by number: task i unpacks item i and returns its rows.

`spark.range` in n partitions passes each task one number, on classic Spark and on Connect, and
keeps rows in the order of the items without a shuffle. A task receives its own item with some of
its neighbours, which stay packed: large plans are sent in parts.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

from ottla.spark.work.arrow import map_in_arrow
from ottla.spark.work.packing import group_items
from ottla.spark.work.worker import run_in_worker
from ottla.storage import sending_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Reader = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """A function from task numbers to rows."""

    Packed = Mapping[int, bytes]
    """Packed items by the numbers of their tasks."""

__all__ = ["frame_of_work", "parts_of", "rows_of_work", "union_of"]

PART_BYTES = 256 << 10
"""Packed items that a task receives: reading them takes a fraction of the task's own time."""

MAX_PARTS = 64
"""Spark plans each part for itself."""


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
    frames = []
    for first, part in parts_of(packed):
        work = shared, dict(enumerate(part, first))
        numbers = spark.range(first, first + len(part), 1, max(1, len(part)))
        run = run_in_worker(target, work, spark)
        frames.append(map_in_arrow(numbers, run, columns))
    return union_of(frames)


def parts_of(packed: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields neighbouring items, with the number of the first: one part if there are none."""
    part_bytes = max(PART_BYTES, -(-sum(map(len, packed)) // MAX_PARTS))
    first = 0
    for part in group_items(packed, len, max_bytes=part_bytes):
        yield first, part
        first += len(part)
    if not packed:
        yield 0, []


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """Returns the rows of frames, one after the other, in a plan of little depth."""
    while len(frames) > 1:
        pairs = [frames[at : at + 2] for at in range(0, len(frames), 2)]
        frames = [pair[0].union(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs]
    return frames[0]


def rows_of_work(packed: Packed, rows: Callable[[int, Any], Iterable[pa.RecordBatch]]) -> Reader:
    """Returns the work of a task: `rows` of each item whose number arrives, and of its number."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # Packed by `frame_of_work`, in the driver of this job.
                yield from rows(number, pickle.loads(zlib.decompress(packed[number])))

    return run
