"""Plans which files to scan, in which order, and which of them form one log.

A plan is data, run by threads or by tasks of a cluster.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ottla.arguments import of_kinds
from ottla.audit.plan.logs import FEW_FILES, Log, Logs, Tasks
from ottla.logs.listing import take_inventory
from ottla.logs.names import display, topic_patterns
from ottla.logs.near import near_paths
from ottla.storage import HeldFiles, files_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.plan.copies import Copies
    from ottla.logs.inventory import FileEntry, Inventory, LogDirectory, Partition
    from ottla.storage import Source

SPLIT_BYTES = 64 << 20
"""Size of the ranges into which larger files are split for several threads: small enough for
threads to finish together, large compared to the cost of a split."""

MIN_SPLIT_BYTES = 64 << 10
"""Below this size, most of the work would be batches read on both sides of a split."""


class Plan(NamedTuple):
    """Everything to scan, largest files first, so that all threads finish together."""

    inventory: Inventory
    log_directories: tuple[LogDirectory, ...]
    partitions: tuple[Partition, ...]
    logs: Logs
    """In the order of the partitions, then those without a partition."""
    tasks: Tasks
    unmatched_topics: tuple[str, ...]
    """Patterns that match no topic."""
    copies: tuple[Copies, ...] = ()
    """Partitions with several copies, to be compared."""
    repeated: tuple[tuple[Partition, ...], ...] = ()
    """Directories of one partition that one broker has: it does not start with them."""
    findings: tuple[PlacedFinding, ...] = ()
    """Findings about the directories as a whole."""

    @property
    def byte_count(self) -> int:
        """Number of bytes to read."""
        return self.tasks.byte_count

    def split(self, split_bytes: int | None) -> Plan:
        """Returns the plan with larger files split into ranges; `None` for no splitting."""
        return self._replace(tasks=self.tasks.split(split_bytes))


@of_kinds
def plan_audit(
    source: Source | Sequence[Source] = (),
    *,
    topics: str | Sequence[str] | None = None,
    replicas: Mapping[str, Source | Sequence[Source]] | None = None,
    storage_options: Mapping[str, str] | None = None,
    follow_links: bool = False,
    must_exist: bool = False,
    threads: int = 1,
) -> Plan:
    """Plans an audit, for any runner; files are not split yet.

    So many `threads` list the partitions on this machine.

    Raises:
        OSError: with `must_exist`, if none of the sources is there.
        ValueError: there is nothing to audit, or an empty list of topics.
        StorageError: a URI does not lead to a store.
    """
    if topics is not None and not topics:
        raise ValueError("topics is empty: leave it out for all topics")
    sources = _paths(source)
    named = [(name, path) for name, paths in (replicas or {}).items() for path in _paths(paths)]
    if not sources and not named:
        raise ValueError("no source and no replica to audit")
    everything = [*sources, *(path for _, path in named)]
    files = files_within(everything, storage_options, follow_links=follow_links)
    planning = _Planning(topic_patterns(topics))
    # Each partition is planned while the next ones are listed.
    inventory = take_inventory(sources, named, files=files, threads=threads, each=planning.add)
    if must_exist:
        _raise_if_none_is_there(inventory)
    return planning.plan(inventory)


def _raise_if_none_is_there(inventory: Inventory) -> None:
    """Raises for the first source if none of them is there, with what is near by that name."""
    if inventory.partitions or inventory.log_directories:
        return
    faults: list[OSError] = []
    for path in (unreadable.path for unreadable in inventory.unreadable):
        try:
            inventory.files.under(path).stat(path)
        except OSError as error:
            faults.append(_with_near_names(error, path))
    if faults and len(faults) == len(inventory.unreadable):
        raise faults[0]


def _with_near_names(error: OSError, path: bytes) -> OSError:
    if error.errno is None or error.strerror is None:
        return error
    said = f"{error.strerror}{near_paths(path)}"
    return type(error)(error.errno, said, display(path))


@contextmanager
def holding(plan: Plan) -> Iterator[Plan]:
    """Yields the plan with files that hold small objects of stores until the block ends."""
    if plan.inventory.is_local:
        yield plan
        return
    held = HeldFiles(plan.inventory.files)
    try:
        yield plan._replace(inventory=plan.inventory._replace(files=held))
    finally:
        held.release()


def make_plan(
    inventory: Inventory, topics: Sequence[str] = (), *, split_bytes: int | None = None
) -> Plan:
    """Plans the audit of an inventory, for the topics that match a pattern, or all without one.

    Directories scheduled for deletion and leftover files are listed but not scanned, since Kafka
    removes them. A `.swap` segment is scanned, since Kafka will put it in place. Files larger than
    `split_bytes` are split into ranges.
    """
    planning = _Planning(topics, split_bytes)
    for partition in inventory.partitions:
        planning.add(partition)
    return planning.plan(inventory)


class _Planning:
    """A plan being made, to which partitions are added in order; see `make_plan`."""

    def __init__(self, topics: Sequence[str], split_bytes: int | None = None) -> None:
        self._topics = topics
        self._split_bytes = split_bytes
        self._partitions: list[Partition] = []
        self._logs: list[Log | Partition] = []
        self._places: list[tuple[int, int, int]] = []
        """See `Tasks`."""

    def add(self, partition: Partition) -> None:
        """Adds a partition, if its topic is asked for."""
        if self._topics and not partition.is_of_topics(self._topics):
            return
        self._partitions.append(partition)
        if partition.state == "delete":
            return
        segments = partition.plain_segments
        if segments is None or len(segments) > FEW_FILES:
            for log in _logs(partition):
                self._add_log(log)
        elif segments:
            index, sizes = len(self._logs), partition.sizes
            self._logs.append(partition)
            for number, at in enumerate(segments):
                self._places.append((index, number, sizes[at]))

    def _add_log(self, log: Log) -> None:
        index = len(self._logs)
        self._logs.append(log)
        for number, file in enumerate(log.files):
            if file.fault is None:
                self._places.append((index, number, file.size))

    def plan(self, inventory: Inventory) -> Plan:
        """Returns the plan, once all partitions of the inventory are added."""
        topics = self._topics
        directories = () if topics else inventory.log_directories
        for directory in directories:
            for file in directory.files:
                if file.kind == "metadata-snapshot" and file.state == "live":
                    self._add_log(Log(None, (file,), is_whole=False))
        copies, repeated, findings = _copies(inventory, self._partitions)
        logs, places = Logs(self._logs), self._places
        places.sort(key=itemgetter(2), reverse=True)
        if copies:
            places.sort(key=_copies_together(places, logs, copies))
        names = {p.topic for p in inventory.partitions if p.topic is not None} if topics else set()
        return Plan(
            inventory=inventory,
            log_directories=directories,
            partitions=tuple(self._partitions),
            logs=logs,
            tasks=Tasks(logs, places, self._split_bytes),
            unmatched_topics=tuple(
                pattern for pattern in topics if not any(fnmatchcase(n, pattern) for n in names)
            ),
            copies=tuple(copies),
            repeated=tuple(repeated),
            findings=tuple(findings),
        )


def _copies(
    inventory: Inventory, partitions: Sequence[Partition]
) -> tuple[Sequence[Copies], Sequence[tuple[Partition, ...]], Sequence[PlacedFinding]]:
    """See `find_copies`, which has nothing to find where each partition has one directory."""
    if len({(each.topic, each.partition) for each in partitions}) == len(partitions):
        return (), (), ()
    from ottla.audit.plan.copies import find_copies

    return find_copies(inventory, partitions)


def _copies_together(
    places: Sequence[tuple[int, int, int]], logs: Logs, copies: Sequence[Copies]
) -> Callable[[tuple[int, int, int]], tuple[int, ...]]:
    """Returns the sort key of tasks: largest first, copies of a partition one after another.

    This way, few copies are held in memory until the last of their partition is scanned.
    """
    by_directory = {p.directory: number for number, c in enumerate(copies) for p in c.partitions}
    groups = [None if p is None else by_directory.get(p.directory) for p in logs.partitions]
    largest: dict[int, int] = {}
    for log, _, size in places:
        if (group := groups[log]) is not None:
            largest[group] = max(largest.get(group, 0), size)

    def order(place: tuple[int, int, int]) -> tuple[int, ...]:
        log, _, size = place
        group = groups[log]
        if group is None:
            return -size, -1, 0
        return -largest[group], group, -size

    return order


def _logs(partition: Partition) -> list[Log]:
    files = partition.files_of(("segment", "metadata-snapshot"))
    live = [
        f for f in files if f.kind == "segment" and f.state == "live" and f.base_offset is not None
    ]
    if partition.is_whole:
        logs = [Log(partition, tuple(live), is_whole=True, is_live=True)] if live else []
    else:
        logs = _runs(partition, live)
    if len(live) == len(files):
        return logs
    scanned_alone = (
        ("live", "swap") if partition.is_whole else ("live", "swap", "cleaned", "deleted")
    )
    logs.extend(
        Log(partition, (file,), is_whole=False)
        for file in files
        if file.state in scanned_alone
        and (
            file.kind == "metadata-snapshot"
            or (file.kind == "segment" and (file.state != "live" or file.base_offset is None))
        )
    )
    return logs


def _runs(partition: Partition, live: Sequence[FileEntry]) -> list[Log]:
    """Returns the logs that the given segments of a partition form, without one missing between."""
    runs: list[list[FileEntry]] = []
    if live:
        runs.append([live[0]])
    for before, after in pairwise(live):
        if after.base_offset in (before.base_offset, partition.next_base_offset(before)):
            runs[-1].append(after)
        else:
            runs.append([after])
    return [
        Log(
            partition,
            tuple(run),
            is_whole={f.base_offset for f in run} == set(partition.live_base_offsets),
            is_live=True,
        )
        for run in runs
    ]


def _paths(source: Source | Sequence[Source]) -> list[Source]:
    if isinstance(source, (str, bytes, os.PathLike)):
        return [source]
    return list(source)
