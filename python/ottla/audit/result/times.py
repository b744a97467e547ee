"""When the records of an event were written, as far as what is left of the log shows it."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ottla.logs.inventory import Partition

Span: TypeAlias = "tuple[int | None, int | None]"
"""The earliest and the latest time, in ms since 1970; None where nothing bounds it."""


class _SegmentTimes(NamedTuple):
    """The timestamps of a segment that has any."""

    base_offset: int
    next_offset: int
    min_timestamp: int
    max_timestamp: int


@dataclass(slots=True)
class LogTimes:
    """The timestamps of a log, segment by segment."""

    segments: list[_SegmentTimes] = field(default_factory=list)
    """In the order of offsets, without those that have no timestamp."""
    by_stem: dict[bytes, _SegmentTimes] = field(default_factory=dict)
    """The same by the part of the file name that files beside a segment share with it."""

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
        start = bisect_right(self.segments, first, key=lambda segment: segment.next_offset)
        stop = bisect_left(self.segments, last + 1, key=lambda segment: segment.base_offset)
        if start < stop:
            around = self.segments[start:stop]
            return min(s.min_timestamp for s in around), max(s.max_timestamp for s in around)
        before = self.segments[stop - 1].max_timestamp if stop else None
        behind = self.segments[start].min_timestamp if start < len(self.segments) else None
        return before, behind


NO_TIMES = LogTimes()
"""Those of a log that was not read."""


def written(
    timeline: Iterable[tuple[Partition, Mapping[str, Any]]], directories: Collection[bytes]
) -> dict[bytes, LogTimes]:
    """Returns the timestamps of logs, by directory.

    Args:
        timeline: the rows of the table of this name.
        directories: those of the partitions wanted.
    """
    logs: dict[bytes, LogTimes] = {}
    for partition, row in timeline:
        oldest, newest = row["min_timestamp"], row["max_timestamp"]
        if partition.directory not in directories or oldest is None or newest is None:
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
