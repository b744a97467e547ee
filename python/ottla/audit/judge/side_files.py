"""The small text files of a broker beside its segments: what they say, and whether it can be true.

Kafka's `CheckpointFile`, `LeaderEpochCheckpointFile`, `PartitionMetadataFile` and
`MetaPropertiesEnsemble` write them. They are read leniently: what cannot be parsed is a finding,
and the rest of the directory is audited all the same.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ottla.audit.catalogue.findings import Finding
from ottla.logs.checkpoints import parse_leader_epochs, parse_offset_checkpoint
from ottla.logs.metadata import cluster_id, parse_meta_properties, parse_partition_metadata
from ottla.logs.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    display,
)
from ottla.logs.side_files import SideFileError, read_side_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from ottla.logs.inventory import FileEntry, Inventory, LogDirectory, Partition
    from ottla.severity import Severity

Parsed = TypeVar("Parsed")

# What an offset checkpoint holds, how grave it is when that lies behind the end of a log, and what
# Kafka makes of it then.
_MEANING: dict[bytes, tuple[str, Severity, str]] = {
    RECOVERY_POINTS: (
        "recovery point",
        "warning",
        "after an unclean stop Kafka would not read the last segment again",
    ),
    LOG_START_OFFSETS: (
        "log start offset",
        "warning",
        "at the next start Kafka deletes every segment and begins there",
    ),
    HIGH_WATERMARKS: (
        "high watermark",
        "warning",
        "at the next start Kafka goes by the end of the log, and nobody notices",
    ),
    CLEANER_OFFSETS: (
        "first dirty offset",
        "info",
        "the cleaner begins at the log start again",
    ),
}


@dataclass(frozen=True, slots=True)
class LogRange:
    """Where a partition's log starts and ends, as its segments tell."""

    start_offset: int
    end_offset: int


def check_log_directory(
    directory: LogDirectory, inventory: Inventory, ranges: Mapping[bytes, LogRange]
) -> Iterable[Finding]:
    """Findings about the checkpoints and `meta.properties` of one log directory.

    Args:
        directory: the log directory.
        inventory: what it was found in.
        ranges: start and end of the partitions whose every segment was read, by directory.
    """
    for file in directory.files:
        name = display(file.name)
        if file.name == META_PROPERTIES:
            yield from _fault(file, inventory, "metadata-mismatch", parse_meta_properties)[1]
        elif file.kind == "offset-checkpoint" and file.state == "live":
            offsets, faults = _fault(
                file, inventory, "checkpoint-mismatch", parse_offset_checkpoint
            )
            yield from faults
            if offsets is None or file.name not in _MEANING:
                continue
            meaning, severity, consequence = _MEANING[file.name]
            for partition in inventory.partitions:
                if partition.log_directory != directory.path or partition.state != "live":
                    continue
                log = ranges.get(partition.directory)
                offset = offsets.get((partition.topic or "", partition.partition or 0))
                if log is None or offset is None or offset <= log.end_offset:
                    continue
                yield Finding(
                    name="checkpoint-mismatch",
                    severity=severity,
                    file=inventory.display(file.path),
                    topic=partition.topic,
                    partition=partition.partition,
                    message=f"{name} says {meaning} {offset} of"
                    f" {partition.topic}-{partition.partition}, whose log ends at"
                    f" {log.end_offset}: the last {offset - log.end_offset} offsets are gone;"
                    f" {consequence}",
                    first_offset=log.end_offset,
                    last_offset=offset - 1,
                    expected=f"at most {log.end_offset}",
                    found=str(offset),
                )


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """What the text files of a partition's directory say, each read once."""

    leader_epochs: Sequence[tuple[int, int]] | None
    """Of `leader-epoch-checkpoint`; `None` without one that can be read."""
    topic_id: str | None
    """Of `partition.metadata`."""
    findings: Sequence[Finding]
    """Why one cannot be read."""


def read_small_files(partition: Partition, inventory: Inventory) -> SmallFiles:
    """Reads the text files of a partition's directory."""
    epochs = topic_id = None
    findings: list[Finding] = []
    if partition.is_whole:
        for file in partition.files:
            if file.state != "live":
                continue
            if file.kind == "partition-metadata":
                topic_id, faults = _fault(
                    file, inventory, "metadata-mismatch", parse_partition_metadata, partition
                )
                findings += faults
            elif file.kind == "leader-epoch-checkpoint":
                epochs, faults = _fault(
                    file, inventory, "epoch-checkpoint-mismatch", parse_leader_epochs, partition
                )
                findings += faults
    # The partitions of a topic share its id.
    return SmallFiles(epochs, topic_id and sys.intern(topic_id), findings)


def check_partition(
    partition: Partition, inventory: Inventory, log: LogRange | None, small: SmallFiles
) -> Iterable[Finding]:
    """Findings about the files beside the segments of one partition."""
    files = partition.files
    names = frozenset(partition.names)
    if partition.state == "live" and not any(
        file.kind == "segment" and file.state == "live" for file in files
    ):
        yield Finding(
            name="missing-segment",
            severity="warning",
            file=inventory.display(partition.directory),
            topic=partition.topic,
            partition=partition.partition,
            message="no segment file, though Kafka keeps one in every partition",
        )
    yield from small.findings
    for file in files:
        yield from _about_name(file, names, partition, inventory)
    epochs = small.leader_epochs
    if epochs and log is not None and epochs[-1][1] > log.end_offset:
        epoch, start_offset = epochs[-1]
        yield Finding(
            name="epoch-checkpoint-mismatch",
            severity="info",
            file=inventory.display(os.path.join(partition.directory, LEADER_EPOCHS)),
            topic=partition.topic,
            partition=partition.partition,
            message=f"epoch {epoch} starts at {start_offset}, beyond the end of the log at"
            f" {log.end_offset}; Kafka drops it when it loads the log",
            first_offset=start_offset,
            expected=f"at most {log.end_offset}",
            found=str(start_offset),
        )


def _about_name(
    file: FileEntry, names: AbstractSet[bytes], partition: Partition, inventory: Inventory
) -> Iterable[Finding]:
    """What a file's name alone tells: no part of Kafka's, left over, without its indexes."""
    findings: list[tuple[str, str]] = []
    if file.kind in ("unknown", "directory"):
        findings.append(("unknown-file", "Kafka puts no such file here"))
    elif file.state != "live":
        findings.append(("leftover-file", f"a {file.state} file of an operation that did not end"))
    elif file.kind == "segment" and partition.is_whole and partition.state != "delete":
        stem = file.name.removesuffix(b".log")
        missing = [s for s in ("index", "timeindex") if stem + b"." + s.encode() not in names]
        if missing:
            findings.append(("index-missing", f"the segment has no .{' and no .'.join(missing)}"))
    for name, message in findings:
        yield Finding(
            name=name,
            severity="info",
            file=inventory.display(file.path),
            topic=partition.topic,
            partition=partition.partition,
            message=message,
        )


def check_topic_ids(
    inventory: Inventory, partitions: Sequence[Partition], topic_ids: Mapping[bytes, str | None]
) -> Iterable[Finding]:
    """A finding for every partition whose topic id is not the one most of its topic have.

    Within one cluster only: another one may have a topic of the same name.

    Args:
        inventory: what was found.
        partitions: those that are audited.
        topic_ids: what their `partition.metadata` say, by directory.
    """
    clusters = {d.path: cluster_id(d, inventory.files) for d in inventory.log_directories}
    topics: dict[tuple[str | bytes, str], list[tuple[str, Partition]]] = {}
    for partition in partitions:
        topic_id = topic_ids.get(partition.directory)
        if topic_id is not None and partition.topic is not None and partition.state == "live":
            above = os.path.dirname(partition.directory)
            key = clusters.get(above) or above, partition.topic
            topics.setdefault(key, []).append((topic_id, partition))
    for entries in topics.values():
        ((usual, _),) = Counter(topic_id for topic_id, _ in entries).most_common(1)
        example = next(partition for topic_id, partition in entries if topic_id == usual)
        for topic_id, partition in entries:
            if topic_id != usual:
                yield Finding(
                    name="metadata-mismatch",
                    severity="warning",
                    file=_metadata_path(partition, inventory),
                    topic=partition.topic,
                    partition=partition.partition,
                    message=f"topic id {topic_id}, but {_metadata_path(example, inventory)} says"
                    f" {usual}: the directories were not made for one topic",
                    expected=usual,
                    found=topic_id,
                )


def _metadata_path(partition: Partition, inventory: Inventory) -> str:
    return inventory.display(os.path.join(partition.directory, PARTITION_METADATA))


def _fault(
    file: FileEntry,
    inventory: Inventory,
    name: str,
    parse: Callable[[bytes], Parsed],
    partition: Partition | None = None,
) -> tuple[Parsed | None, list[Finding]]:
    """What a file says, or why nothing can be said."""
    try:
        return parse(read_side_file(file, inventory.files)), []
    except SideFileError as error:
        message, expected, found = str(error), error.expected, error.found
    except OSError as error:
        message, expected, found = f"cannot be read: {error.strerror}", "a readable file", "none"
    finding = Finding(
        name=name,
        severity="warning",
        file=inventory.display(file.path),
        topic=partition.topic if partition else None,
        partition=partition.partition if partition else None,
        message=f"{display(file.name)}: {message}",
        expected=expected,
        found=found,
    )
    return None, [finding]
