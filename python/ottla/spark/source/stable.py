"""What the markers of a growing log decide about the part of it that a trigger reads (KIP-98).

With `read_committed`, a partition is read up to the last stable offset of what is there, without
the records of aborted transactions. The markers that decide may be behind what is read: from there
on, the log is looked at until all transactions of that part are decided, and no further.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from ottla.logs.segment import find_offset, partition_transactions
from ottla.spark.source.growing import Spot

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.spark.source.continuity import Stretch
    from ottla.spark.source.growing import GrowingLog
    from ottla.spark.source.spans import Transaction

Found = tuple[tuple["Transaction", ...], "tuple[int, int] | None"]


class Decided(NamedTuple):
    """What is decided about a part of a log."""

    aborted: tuple[Transaction, ...]
    """Aborted transactions that may have records there, in the order of their markers."""
    first_open: int | None = None
    """The first offset of an open transaction there; None if all are decided."""
    producer_id: int = -1
    """Of that transaction."""

    def digest(self, first: int, following: int) -> int:
        """Returns a hash of the transactions with records from one offset to before another.

        It does not depend on where looking for them began; 0 without any.
        """
        told = [
            (producer_id, max(start, first), marker)
            for producer_id, start, marker in self.aborted
            if marker >= first and start < following
        ]
        if not told:
            return 0
        return int.from_bytes(hashlib.blake2b(repr(told).encode(), digest_size=8).digest(), "big")


class Transactions:
    """Finds the transactions of logs, each part of a log once for as long as it does not grow."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[object, Found]] = {}

    def decide(
        self,
        log: GrowingLog,
        start: Spot,
        stretch: Stretch,
        look_ahead: Callable[[int], Stretch],
    ) -> Decided:
        """Returns what is decided about a part of a log.

        Args:
            log: the log.
            start: where to look from on; not behind the part.
            stretch: the part.
            look_ahead: returns more of the log: at least so many bytes from where the part begins,
                fewer only at the end of what can be read.

        Raises:
            SparkError: what is behind the part cannot be followed.
            OSError: a segment cannot be read.
        """
        size, seen = stretch.byte_count, stretch
        while True:
            aborted, first_open = self._between(log, start, seen.end)
            if first_open is None or first_open[0] >= stretch.next_offset:
                return Decided(aborted)
            if seen is not stretch and seen.byte_count < size:
                return Decided(aborted, *first_open)
            size = max(2 * size, 1 << 20)
            seen = look_ahead(size)

    def _between(self, log: GrowingLog, start: Spot, end: Spot) -> Found:
        segments = log.segments[start.number : end.number + 1]
        bases = tuple(segment.base_offset for segment in segments)
        key = (bases, start.position, end.position)
        known = self._found.get(log.name)
        if known is None or known[0] != key:
            places = [(segment.place, segment.base_offset) for segment in segments]
            aborted, first_open = partition_transactions(
                places, position=start.position, stop=end.position
            )
            known = key, (tuple(aborted), first_open)
            self._found[log.name] = known
        return known[1]


def spot_before(log: GrowingLog, stretch: Stretch, offset: int) -> Spot:
    """Returns where a part of a log ends that is to end before the batch of an offset.

    Raises:
        OSError: a segment cannot be read.
    """
    for part in stretch.parts:
        position = find_offset(part.segment.place, offset, part.start)
        if position is not None and position < part.stop:
            number = log.bases.index(part.segment.base_offset)
            if position == 0 and number > 0:
                # The same place, before what may be missing between the segments.
                return Spot(number - 1, log.segments[number - 1].size)
            return Spot(number, position)
    return stretch.end
