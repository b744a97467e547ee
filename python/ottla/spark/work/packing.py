"""Dividing work into tasks: what goes into one task, and how many bytes that should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ottla.spark.work.kind import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

Item = TypeVar("Item")


def group_items(
    items: Iterable[Item],
    size_of: Callable[[Item], int],
    *,
    max_bytes: int,
    max_items: int | None = None,
) -> Iterator[list[Item]]:
    """Groups neighbouring items into tasks; an item larger than a task is a task of its own.

    >>> list(group_items([3, 3, 9, 1], lambda size: size, max_bytes=6))
    [[3, 3], [9], [1]]
    """
    group: list[Item] = []
    total = 0
    for item in items:
        size = size_of(item)
        if group and (total + size > max_bytes or len(group) == max_items):
            yield group
            group, total = [], 0
        group.append(item)
        total += size
    if group:
        yield group


def cores_of(spark: SparkSession) -> int | None:
    """Returns how many tasks run at once, None on Spark Connect, which does not tell."""
    return None if is_connect(spark) else int(spark.sparkContext.defaultParallelism)


@dataclass(frozen=True, slots=True)
class TaskSize:
    """How many bytes a task should have."""

    max_bytes: int
    min_bytes: int
    """Minimum if there is little work for each core: less is not worth a task."""
    tasks_per_core: int
    """If there is enough work: several, so that cores finish together."""
    tasks_on_connect: int = 1
    """Spark Connect does not report the number of cores."""

    def bytes_for(self, spark: SparkSession, byte_count: int) -> int:
        """Returns the size of a task for a total size: worth a task, and enough for every core."""
        cores = cores_of(spark)
        tasks = self.tasks_on_connect if cores is None else cores * self.tasks_per_core
        return min(self.max_bytes, max(self.min_bytes, -(-byte_count // tasks)))
