"""Reads the small text files beside segments, and the names of all files, for the engine to judge.

A file that cannot be read or parsed is a finding; the rest of the directory is audited
nevertheless.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ottla import _engine
from ottla.audit.catalogue.findings import make_finding, place_finding
from ottla.logs.checkpoints import parse_leader_epochs
from ottla.logs.live import has_grown
from ottla.logs.metadata import (
    cluster_id,
    parse_meta_properties,
    parse_partition_metadata,
    read_meta_properties,
)
from ottla.logs.names import (
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    display,
)
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.inventory import FileEntry, Inventory, LogDirectory, Partition
    from ottla.storage import Files

Content = TypeVar("Content")


def check_log_directories(
    directories: Iterable[LogDirectory],
    inventory: Inventory,
    checkpoints: Checkpoints,
    ends: Mapping[bytes, int],
) -> Iterable[PlacedFinding]:
    """Yields findings about the checkpoints and `meta.properties` of log directories.

    Args:
        directories: the log directories.
        inventory: the inventory they are in.
        checkpoints: what their checkpoints hold.
        ends: where the partitions end whose checkpoints may know of more, by directory.
    """
    disks = _Disks(inventory)
    for directory in directories:
        for partition in disks.partitions(directory):
            # A directory without segments may be one that Kafka keeps for itself.
            if partition.topic is None and partition.has_segments:
                yield _unnamed(partition.directory)
        is_of_broker = any(
            f.name == META_PROPERTIES or f.kind == "offset-checkpoint" for f in directory.files
        )
        for file in directory.files:
            if is_of_broker and file.kind == "directory" and _engine.refuses_start(file.name):
                yield _unnamed(file.path)
            if file.name == META_PROPERTIES:
                yield from _parse_file(file, inventory, parse_meta_properties)[1]
            elif file.kind == "offset-checkpoint" and file.state == "live":
                offsets, faults = _content(file, partial(checkpoints.entries, file))
                yield from faults
                if offsets is not None:
                    yield from _without_directory(file, directory, inventory, offsets, disks)
                if offsets and ends:
                    there = disks.partitions(directory)
                    yield from _beyond_end(file, there, offsets, ends, inventory.files)


class _Disks:
    """The partitions of an inventory by log directory, and by the broker that has them."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._partitions: dict[bytes | None, list[Partition]] = {}
        for partition in inventory.partitions:
            self._partitions.setdefault(partition.log_directory, []).append(partition)
        self._brokers: dict[bytes, Hashable] | None = None
        self._of_broker: dict[Hashable, set[tuple[str | None, int | None]]] = {}

    def partitions(self, directory: LogDirectory) -> Sequence[Partition]:
        """Returns the partitions in a log directory."""
        return self._partitions.get(directory.path, ())

    def of_same_broker(self, directory: LogDirectory) -> Collection[tuple[str | None, int | None]]:
        """Returns the partitions in all log directories of a broker, if it is known."""
        if self._brokers is None:
            self._brokers = {d.path: self._broker(d) for d in self._inventory.log_directories}
            for path, broker in self._brokers.items():
                there = self._of_broker.setdefault(broker, set())
                there.update((p.topic, p.partition) for p in self._partitions.get(path, ()))
        broker = self._brokers.get(directory.path)
        return () if broker is None else self._of_broker[broker]

    def _broker(self, directory: LogDirectory) -> Hashable:
        known = read_meta_properties(directory.path, self._inventory.files)
        number = known.get("node.id", known.get("broker.id"))
        return None if number is None else (known.get("cluster.id"), number)


def _unnamed(directory: bytes) -> PlacedFinding:
    """The finding about a directory that is named as no partition is."""
    found = make_finding(
        "unknown-file",
        "the name of the directory is not that of a topic and a partition: a broker with it in a"
        " log directory does not start",
        path=directory,
        directory=directory,
        expected="TOPIC-PARTITION",
        found=display(os.path.basename(directory)),
    )
    return found._replace(severity="warning")


def _without_directory(
    file: FileEntry,
    directory: LogDirectory,
    inventory: Inventory,
    offsets: Mapping[tuple[str, int], int],
    disks: _Disks,
) -> Iterable[PlacedFinding]:
    """Yields the finding about partitions that a checkpoint knows and the directory lacks."""
    # The others have entries of the same partitions, or are kept longer.
    if file.name != HIGH_WATERMARKS:
        return
    above, files = directory.path, inventory.files
    here = {(p.topic, p.partition) for p in disks.partitions(directory)}
    lacking = [
        (topic, number, offset)
        for (topic, number), offset in offsets.items()
        if (topic, number) not in here
        and not files.exists(join(above, os.fsencode(f"{topic}-{number}")))
    ]
    if lacking:
        moved = disks.of_same_broker(directory)
        lacking = [entry for entry in lacking if entry[:2] not in moved]
    found = _engine.partitions_without_directory(file.name, lacking)
    if found is not None:
        yield place_finding(found, path=file.path, directory=None)


def _beyond_end(
    file: FileEntry,
    partitions: Iterable[Partition],
    offsets: Mapping[tuple[str, int], int],
    ends: Mapping[bytes, int],
    files: Files,
) -> Iterable[PlacedFinding]:
    """Yields findings about the offsets that a checkpoint has for live partitions."""
    known: list[Partition] = []
    described: list[tuple[str, int, int, int]] = []
    for partition in partitions:
        topic, number = partition.topic or "", partition.partition or 0
        offset, end = offsets.get((topic, number)), ends.get(partition.directory)
        if offset is not None and end is not None and partition.state == "live":
            known.append(partition)
            described.append((topic, number, offset, end))
    for index, found in _engine.offsets_beyond_end(file.name, described):
        if not has_grown(known[index], files):
            yield place_finding(found, path=file.path, directory=known[index].directory)


class SmallFiles(NamedTuple):
    """The content of the text files in a partition's directory, each read once."""

    leader_epochs: Sequence[tuple[int, int]] | None
    """From `leader-epoch-checkpoint`; `None` if there is none that can be read."""
    topic_id: str | None
    """From `partition.metadata`."""
    findings: Sequence[PlacedFinding]
    """Why a file cannot be read."""


def read_small_files(partition: Partition, inventory: Inventory) -> SmallFiles:
    """Reads the text files of a partition's directory."""
    epochs = topic_id = None
    findings: list[PlacedFinding] = []
    if partition.is_whole:
        for file in partition.files:
            if file.state != "live":
                continue
            if file.kind == "partition-metadata":
                topic_id, faults = _parse_file(file, inventory, parse_partition_metadata, partition)
                findings += faults
            elif file.kind == "leader-epoch-checkpoint":
                epochs, faults = _parse_file(file, inventory, parse_leader_epochs, partition)
                findings += faults
    # All partitions of a topic share one string.
    return SmallFiles(epochs, topic_id and sys.intern(topic_id), findings)


def check_partition(
    partition: Partition, end_offset: int | None, small: SmallFiles
) -> Iterable[PlacedFinding]:
    """Yields findings about the files beside the segments of a partition."""
    files, directory = partition.files, partition.directory
    found = _engine.check_names(
        [(file.name, file.kind == "directory") for file in files],
        state=partition.state,
        is_whole=partition.is_whole,
    )
    for index, finding in found:
        yield place_finding(finding, path=files[index].path, directory=directory)
    yield from small.findings
    if small.leader_epochs and end_offset is not None:
        beyond = _engine.epoch_beyond_end(small.leader_epochs, end_offset)
        if beyond is not None:
            path = os.path.join(directory, LEADER_EPOCHS)
            yield place_finding(beyond, path=path, directory=directory)


def check_segments(partition: Partition, checkpoints: Checkpoints) -> Iterable[PlacedFinding]:
    """Yields the finding about a live partition without a segment."""
    if partition.state != "live" or not partition.is_whole:
        return
    if partition.has_segments:
        return
    live = [f for f in partition.files if f.state == "live" and f.base_offset is not None]
    found = _engine.missing_log(
        log_start_offset=checkpoints.offset(partition, LOG_START_OFFSETS),
        recovery_point=checkpoints.offset(partition, RECOVERY_POINTS),
        high_watermark=checkpoints.offset(partition, HIGH_WATERMARKS),
        orphans=[f.base_offset or 0 for f in live if f.kind.endswith("-index")],
        snapshots=sorted(f.base_offset or 0 for f in live if f.kind == "producer-snapshot"),
    )
    yield place_finding(found, path=partition.directory, directory=partition.directory)


def check_topic_ids(
    inventory: Inventory, partitions: Sequence[Partition], topic_ids: Mapping[bytes, str | None]
) -> Iterable[PlacedFinding]:
    """Yields a finding for each partition whose topic id differs from most of its topic's.

    Only partitions of one cluster are compared: another may have a topic of the same name.

    Args:
        inventory: the inventory of the audit.
        partitions: the audited partitions.
        topic_ids: the topic id in their `partition.metadata`, by directory.
    """
    differing = _topics_with_several_ids(partitions, topic_ids)
    if not differing:
        return
    clusters = {d.path: cluster_id(d, inventory.files) for d in inventory.log_directories}
    topics: dict[tuple[str | bytes, str], list[tuple[str, Partition]]] = {}
    for partition in partitions:
        topic_id = topic_ids.get(partition.directory)
        if topic_id is None or partition.topic is None or partition.state != "live":
            continue
        if partition.topic in differing:
            above = partition.log_directory or os.path.dirname(partition.directory)
            key = clusters.get(above) or above, partition.topic
            topics.setdefault(key, []).append((topic_id, partition))
    for entries in topics.values():
        if len({topic_id for topic_id, _ in entries}) == 1:
            continue
        named = [(topic_id, inventory.display(_metadata_path(p))) for topic_id, p in entries]
        for index, finding in _engine.foreign_topic_ids(named):
            _, partition = entries[index]
            path = _metadata_path(partition)
            yield place_finding(finding, path=path, directory=partition.directory)


def _topics_with_several_ids(
    partitions: Iterable[Partition], topic_ids: Mapping[bytes, str | None]
) -> Collection[str | None]:
    """Returns the topics whose partitions have not all the same id, in whatever cluster."""
    named = {(partition.topic, topic_ids.get(partition.directory)) for partition in partitions}
    ids = Counter(topic for topic, topic_id in named if topic_id is not None)
    return {topic for topic, several in ids.items() if several > 1}


def _metadata_path(partition: Partition) -> bytes:
    return os.path.join(partition.directory, PARTITION_METADATA)


def _parse_file(
    file: FileEntry,
    inventory: Inventory,
    parse: Callable[[bytes], Content],
    partition: Partition | None = None,
) -> tuple[Content | None, list[PlacedFinding]]:
    """See `_content`: the file is read and parsed."""
    return _content(file, lambda: parse(read_side_file(file, inventory.files)), partition)


def _content(
    file: FileEntry, read: Callable[[], Content], partition: Partition | None = None
) -> tuple[Content | None, list[PlacedFinding]]:
    """Returns the content of a file, or the finding that says why it cannot be read."""
    try:
        return read(), []
    except SideFileError as error:
        fault, expected, found = str(error), error.expected, error.found
    except OSError as error:
        fault, expected, found = f"cannot be read: {error.strerror}", "a readable file", "none"
    finding = _engine.unreadable_text_file(file.name, fault, expected, found)
    directory = partition.directory if partition else None
    return None, [place_finding(finding, path=file.path, directory=directory)]
