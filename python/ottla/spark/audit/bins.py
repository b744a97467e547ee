"""Divides a plan into bins, the work of tasks: large ranges first, small files packed together.

The result of an audit does not depend on the bins. A bin is bytes until its own task unpacks it,
because thousands of them are sent with every task.
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ottla.audit.run.scan import ScanRequest, scan_request
from ottla.logs.checkpoints import OFFSET_CHECKPOINTS, Checkpoints
from ottla.spark.work.items import parts_of
from ottla.spark.work.packing import group_items
from ottla.storage import sending_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.audit.plan.copies import Copies
    from ottla.audit.plan.logs import Log, ScanTask
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Inventory
    from ottla.storage import Files

MAX_FILES = 2_000
"""Maximum number of files in a bin: opening them may take longer than reading them."""

CACHED_LOGS = 256
"""Logs whose file names are held while bins are packed."""


@dataclass(frozen=True, slots=True)
class ScanItem:
    """A range of a file, or a whole file, to be scanned by a task."""

    group: int
    """See `LogItem.group`."""
    log: int
    """Index into the plan's logs."""
    index: int
    """Index into the files of that log."""
    number: int
    """Number of the range, from the left."""
    count: int
    """Number of ranges in the file."""
    start: int
    stop: int
    size: int
    """Bytes to read."""
    request: ScanRequest


@dataclass(frozen=True, slots=True)
class LogItem:
    """A log, sent with the first of its files in any bin, for whoever judges it."""

    log: int
    group: int
    """Logs with the same number are judged together: copies of a partition; others alone."""
    value: Log
    requests: Mapping[int, ScanRequest]
    """Requests of the files that are split into ranges, by index."""
    copies: Copies | None
    offsets: Mapping[bytes, int | None]
    """What checkpoints have of the partition, by their names: no task reads them for it."""

    def read_by(self, files: Files) -> LogItem:
        """Returns the item as it was sent; in a row, it has no secrets of stores."""
        requests = {index: request.read_by(files) for index, request in self.requests.items()}
        return replace(self, requests=requests)


Bin = tuple[tuple[LogItem, ...], tuple[ScanItem, ...]]


@dataclass(frozen=True, slots=True)
class Bins:
    """The work of each task, in the order in which tasks start."""

    packed: tuple[bytes, ...]
    files: Files
    """Where tasks read objects of stores."""
    max_mb_per_s: float | None = None
    """How fast each task may read, in 10⁶ bytes per second."""

    def __len__(self) -> int:
        return len(self.packed)

    def parts(self) -> Iterator[Bins]:
        """Yields the bins in order, as many at a time as are sent with a task."""
        for _, part in parts_of(self.packed):
            yield replace(self, packed=tuple(part))

    def load(self, number: int) -> Bin:
        """Unpacks the work of one task."""
        # Packed by `make_bins`, in the driver of this job.
        logs, items = pickle.loads(zlib.decompress(self.packed[number]))
        return logs, items


def names_of(inventory: Inventory) -> Inventory:
    """Returns the small part of an inventory that is needed to display names."""
    return inventory._replace(log_directories=(), partitions=(), unreadable=())


def make_bins(plan: Plan, *, level: str, now_ms: int, bin_bytes: int) -> Bins:
    """Packs the tasks of a plan into bins of about `bin_bytes`, or of `MAX_FILES` files.

    Ranges of at least a quarter of a bin come first, longest first. Smaller ones are packed log by
    log, so that a task reads neighbouring files.
    """
    return _Packer(plan, level, now_ms).bins(bin_bytes)


class _Packer:
    def __init__(self, plan: Plan, level: str, now_ms: int) -> None:
        self._plan = plan
        self._level = level
        self._now_ms = now_ms
        self._checkpoints = Checkpoints(plan.inventory.files)
        self._copies: dict[bytes, tuple[int, Copies]] = {
            partition.directory: (len(plan.logs) + number, copies)
            for number, copies in enumerate(plan.copies)
            for partition in copies.partitions
        }
        self._cut: dict[int, list[ScanTask]] = {}
        for task in plan.tasks:
            if len(task.ranges) > 1:
                self._cut.setdefault(task.log, []).append(task)
        self._beside = lru_cache(CACHED_LOGS)(lambda index: plan.logs[index].beside)

    def bins(self, bin_bytes: int) -> Bins:
        bins: list[tuple[int, bytes]] = []
        described: set[int] = set()
        items = self._items(bin_bytes)
        for group in group_items(items, _size_of, max_bytes=bin_bytes, max_items=MAX_FILES):
            new = dict.fromkeys(item.log for item in group if item.log not in described)
            described.update(new)
            logs = tuple(self._log_item(log) for log in new)
            with sending_secrets():
                data = pickle.dumps((logs, tuple(group)), protocol=5)
            bins.append((sum(map(_size_of, group)), zlib.compress(data, 1)))
        bins.sort(key=lambda entry: -entry[0])
        return Bins(tuple(data for _, data in bins), self._plan.inventory.files)

    def _items(self, bin_bytes: int) -> Iterator[ScanItem]:
        large: list[ScanTask] = []
        small: list[ScanTask] = []
        for task in self._plan.tasks:
            (large if _longest(task) * 4 >= bin_bytes else small).append(task)
        small.sort(key=lambda task: (task.log, task.file_index))
        for task in (*large, *small):
            request = self._request(task)
            ranges = task.ranges
            for number, (start, stop) in enumerate(ranges):
                size = min(stop, task.file.size) - start
                yield ScanItem(
                    group=self._group(task.log)[0],
                    log=task.log,
                    index=task.file_index,
                    number=number,
                    count=len(ranges),
                    start=start,
                    stop=stop,
                    size=size,
                    request=request,
                )

    def _request(self, task: ScanTask) -> ScanRequest:
        log = self._plan.logs[task.log]
        return scan_request(
            task,
            log,
            self._beside(task.log),
            self._plan.inventory.files,
            level=self._level,
            now_ms=self._now_ms,
            is_compared=log.is_whole and self._copies_of(log) is not None,
        )

    def _log_item(self, index: int) -> LogItem:
        group, copies = self._group(index)
        requests = {task.file_index: self._request(task) for task in self._cut.get(index, ())}
        log = self._plan.logs[index]
        offsets: dict[bytes, int | None] = {}
        if log.partition is not None:
            known = self._checkpoints.offsets(log.partition)
            offsets = dict(zip(OFFSET_CHECKPOINTS, known, strict=True))
        return LogItem(index, group, log, requests, copies, offsets)

    def _group(self, index: int) -> tuple[int, Copies | None]:
        log = self._plan.logs[index]
        # Only complete logs of a partition are compared.
        return (self._copies_of(log) if log.is_whole else None) or (index, None)

    def _copies_of(self, log: Log) -> tuple[int, Copies] | None:
        return None if log.partition is None else self._copies.get(log.partition.directory)


def _size_of(item: ScanItem) -> int:
    return item.size


def _longest(task: ScanTask) -> int:
    """Size of the longest range of a task."""
    return min(task.file.size, task.split_bytes or task.file.size)
