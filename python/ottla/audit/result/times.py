"""When the records of an event were written, as far as what is left of the log shows it."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.logs.inventory import Partition

Span: TypeAlias = "tuple[int | None, int | None]"
"""The earliest and the latest time, in ms since 1970; None where nothing bounds it."""


class _SegmentTimes(NamedTuple):
    """The timestamps of a segment that has any."""

    base_offset: int
    next_offset: int
    min_timestamp: int
    max_timestamp: int


class _Extremes:
    """The least or the greatest of any run of numbers, by a tree of those of pairs.

    A batch may claim to reach to the end of the log, and so may each of thousands.
    """

    def __init__(self, numbers: Sequence[int], best: Callable[[int, int], int]) -> None:
        self._best = best
        self._size = len(numbers)
        self._tree = [*numbers, *numbers]
        for index in range(self._size - 1, 0, -1):
            self._tree[index] = best(self._tree[2 * index], self._tree[2 * index + 1])

    def of(self, start: int, stop: int) -> int:
        """That of a run that is not empty."""
        tree, best = self._tree, self._best
        left, right = start + self._size, stop + self._size
        found = tree[left]
        while left < right:
            if left % 2:
                found = best(found, tree[left])
                left += 1
            if right % 2:
                right -= 1
                found = best(found, tree[right])
            left, right = left // 2, right // 2
        return found


@dataclass(slots=True)
class LogTimes:
    """The timestamps of a log, segment by segment."""

    segments: list[_SegmentTimes] = field(default_factory=list)
    """In the order of offsets, without those that have no timestamp."""
    by_stem: dict[bytes, _SegmentTimes] = field(default_factory=dict)
    """The same by the part of the file name that files beside a segment share with it."""
    _known_bounds: tuple[list[int], list[int]] | None = None
    _known_extremes: tuple[_Extremes, _Extremes] | None = None

    def span(self, path: bytes | None, first: int | None, last: int | None) -> Span:
        """Returns when records were written.

        Args:
            path: the file that shows what happened to them.
            first: their first offset, None if that is not known.
            last: their last offset.
        """
        if first is None:
            found = self.by_stem.get(_stem(path or b""))
            return (None, None) if found is None else (found.min_timestamp, found.max_timestamp)
        last = first if last is None else last
        bases, ends = self._bounds()
        start, stop = bisect_right(ends, first), bisect_left(bases, last + 1)
        if start < stop:
            return self._extremes(start, stop)
        before = self.segments[stop - 1].max_timestamp if stop else None
        behind = self.segments[start].min_timestamp if start < len(self.segments) else None
        return before, behind

    def _bounds(self) -> tuple[list[int], list[int]]:
        """Where the segments begin, and where they end."""
        if self._known_bounds is None:
            bases = [segment.base_offset for segment in self.segments]
            self._known_bounds = bases, [segment.next_offset for segment in self.segments]
        return self._known_bounds

    def _extremes(self, start: int, stop: int) -> tuple[int, int]:
        """The least and the greatest timestamp of a run of segments that is not empty."""
        if stop - start == 1:
            _, _, oldest, newest = self.segments[start]
            return oldest, newest
        if self._known_extremes is None:
            self._known_extremes = (
                _Extremes([segment.min_timestamp for segment in self.segments], min),
                _Extremes([segment.max_timestamp for segment in self.segments], max),
            )
        oldest_of, newest_of = self._known_extremes
        return oldest_of.of(start, stop), newest_of.of(start, stop)


NO_TIMES = LogTimes()
"""Those of a log that was not read."""


def written(timeline: Iterable[tuple[Partition, Mapping[str, Any]]]) -> dict[bytes, LogTimes]:
    """Returns the timestamps of logs, by directory.

    Args:
        timeline: their rows of the table of this name.
    """
    logs: dict[bytes, LogTimes] = {}
    for partition, row in timeline:
        oldest, newest = row["min_timestamp"], row["max_timestamp"]
        if oldest is None or newest is None:
            continue
        base = row["base_offset"] or 0
        end = base if row["next_offset"] is None else row["next_offset"]
        times = _SegmentTimes(base, end, oldest, newest)
        log = logs.setdefault(partition.directory, LogTimes())
        log.segments.append(times)
        log.by_stem[_stem(row["file"])] = times
    for log in logs.values():
        log.segments.sort()
    return logs


def _stem(path: bytes) -> bytes:
    return os.path.basename(path).partition(b".")[0]
