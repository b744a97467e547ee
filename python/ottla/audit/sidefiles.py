"""The small text files of a broker beside its segments: what they say, and whether it can be true.

Kafka's `CheckpointFile`, `LeaderEpochCheckpointFile`, `PartitionMetadataFile` and
`MetaPropertiesEnsemble` write them. They are read leniently: what cannot be parsed is a finding,
and the rest of the directory is audited all the same.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ottla import _engine
from ottla.audit.findings import Finding, Severity
from ottla.audit.inventory import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    MAX_OFFSET,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    FileEntry,
    Inventory,
    LogDirectory,
    Partition,
    display,
)
from ottla.storage import ANYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

Parsed = TypeVar("Parsed")

# The checkpoints of a broker with 200,000 partitions stay below 20 MiB.
MAX_FILE_BYTES = 64 << 20

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


class SideFileError(ValueError):
    """Text that is not what the file should hold."""

    def __init__(self, message: str, expected: str, found: str) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True)
class LogRange:
    """Where a partition's log starts and ends, as its segments tell."""

    start_offset: int
    end_offset: int


def parse_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int]:
    r"""Offsets by topic and partition of a checkpoint file, version 0. An empty file holds none.

    >>> parse_offset_checkpoint(b"0\n1\norders 3 42\n")
    {('orders', 3): 42}

    Raises:
        SideFileError: the version, the count or an entry is not as Kafka writes it.
    """
    entries, fault = _engine.parse_offset_checkpoint(data)
    if fault is not None:
        raise SideFileError(*fault)
    return {(sys.intern(topic), partition): offset for topic, partition, offset in entries}


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    r"""Epochs and their start offsets of a `leader-epoch-checkpoint`, both strictly increasing.

    >>> parse_leader_epochs(b"0\n2\n0 0\n2 79\n")
    [(0, 0), (2, 79)]

    Raises:
        SideFileError: the version, the count, an entry or the order is not as Kafka writes it.
    """
    entries, fault = _engine.parse_leader_epochs(data)
    if fault is not None:
        raise SideFileError(*fault)
    return entries


def parse_partition_metadata(data: bytes) -> str:
    """The topic id of a `partition.metadata`.

    Raises:
        SideFileError: no version, or no topic id of 22 base64url characters other than zero.
    """
    topic_id, fault = _engine.parse_partition_metadata(data)
    if topic_id is None:
        raise SideFileError(*(fault or ("no topic id", "a topic id", "none")))
    return topic_id


def parse_meta_properties(data: bytes) -> dict[str, str]:
    """The properties of a log directory: version, cluster.id, node.id or broker.id, directory.id.

    Raises:
        SideFileError: no version that Kafka knows, or no number of the broker.
    """
    fields = _properties(data, "=")
    version = fields.get("version", "none")
    if version not in ("0", "1"):
        raise SideFileError("unknown version", "version=0 or version=1", version)
    key = "broker.id" if version == "0" else "node.id"
    if not _is_number(fields.get(key, "")):
        raise SideFileError(f"no {key}", f"{key}=a number", fields.get(key, "none"))
    return fields


def read_offsets(
    log_directory: bytes, name: bytes, files: Files = ANYWHERE
) -> dict[tuple[str, int], int]:
    """The offsets of a checkpoint of a log directory; none where it cannot be read."""
    try:
        file = FileEntry(log_directory, name, "offset-checkpoint")
        return parse_offset_checkpoint(read_side_file(file, files))
    except (OSError, SideFileError):
        return {}


class Checkpoints:
    """The offset checkpoints of log directories, each read once; threads may share it."""

    def __init__(self, files: Files = ANYWHERE) -> None:
        self._files = files
        self._known: dict[tuple[bytes, bytes], Mapping[tuple[str, int], int]] = {}
        self._lock = threading.Lock()

    def offset(self, partition: Partition, name: bytes) -> int | None:
        """The entry of a partition in the checkpoint of a name, beside its directory."""
        above = os.path.dirname(partition.directory)
        with self._lock:
            entries = self._known.get((above, name))
            if entries is None:
                entries = self._known[above, name] = read_offsets(above, name, self._files)
        return entries.get((partition.topic or "", partition.partition or 0))


def read_meta_properties(log_directory: bytes, files: Files = ANYWHERE) -> dict[str, str]:
    """The `meta.properties` of a log directory; none where they cannot be read."""
    try:
        file = FileEntry(log_directory, META_PROPERTIES, "meta-properties")
        return parse_meta_properties(read_side_file(file, files))
    except (OSError, SideFileError):
        return {}


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


def cluster_id(directory: LogDirectory, files: Files = ANYWHERE) -> str | None:
    """The cluster that a log directory belongs to, as its `meta.properties` tells."""
    return read_meta_properties(directory.path, files).get("cluster.id")


def _metadata_path(partition: Partition, inventory: Inventory) -> str:
    return inventory.display(os.path.join(partition.directory, PARTITION_METADATA))


def read_side_file(file: FileEntry, files: Files = ANYWHERE) -> bytes:
    """The bytes of a small file.

    Raises:
        SideFileError: it is larger than any such file.
        OSError: it cannot be read.
    """
    if file.fault is not None:
        raise SideFileError(f"cannot be read: {file.fault}", "a file", file.fault)
    data = files.read(file.path, MAX_FILE_BYTES)
    if len(data) > MAX_FILE_BYTES:
        raise SideFileError("too large", f"at most {MAX_FILE_BYTES} bytes", "more")
    return data


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


def _is_number(digits: str) -> bool:
    """Whether this is a decimal number that fits 64 bits."""
    is_decimal = digits.isascii() and digits.isdecimal()
    return is_decimal and len(digits) <= len(str(MAX_OFFSET)) and int(digits) <= MAX_OFFSET


def _properties(data: bytes, separator: str) -> dict[str, str]:
    pairs = (
        line.split(separator, 1)
        for line in _text(data).splitlines()
        if separator in line and not line.lstrip().startswith(("#", "!"))
    )
    return {key.strip(): value.strip() for key, value in pairs}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at position {error.start}"
        raise SideFileError("no text", "UTF-8 text", found) from None
