"""Which partition a record goes to."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from ottla.records import murmur2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RoundRobin", "Sticky", "partition_of_key"]

_POSITIVE = 0x7FFF_FFFF


def partition_of_key(key: bytes, partition_count: int) -> int:
    """Returns the partition that Kafka's own client sends a key to.

    >>> partition_of_key(b"21", 10)
    0
    """
    return (murmur2(key) & _POSITIVE) % partition_count


class RoundRobin:
    """Each record to the next partition."""

    def __init__(self) -> None:
        self._next = -1

    def next(self, partitions: Sequence[int]) -> int:
        """Returns the partition of the next record.

        Args:
            partitions: to choose from, one at least.
        """
        self._next += 1
        return partitions[self._next % len(partitions)]


class Sticky:
    """The same partition until a batch of it is full, then another one (KIP-794).

    So batches are full where little is sent, and each partition gets as much as the others. Where
    batches queue up, partitions whose leaders are quick get more.

    Args:
        random: draws from [0, 1).

    Attributes:
        partition: where records go now; -1 before the first.
        closed_bytes: what the partition's queue had closed when it was chosen.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self.partition = -1
        self.closed_bytes = 0
        self._random = random

    def choose(self, partitions: Sequence[int], waiting: Sequence[int] | None = None) -> int:
        """Goes to another partition by chance, and returns it.

        Args:
            partitions: to choose from, one at least.
            waiting: how many batches wait for each; ``None`` to have all the same chance.
        """
        if waiting is None or len(set(waiting)) == 1:
            place = int(self._random() * len(partitions))
        else:
            most = max(waiting) + 1
            weights = list(accumulate(most - one for one in waiting))
            place = bisect_right(weights, int(self._random() * weights[-1]))
        self.partition = partitions[place]
        return self.partition
