"""Builds the files beside segments again from the segments, in a new directory.

`.index`, `.timeindex`, `.txnindex`, `.snapshot` and `leader-epoch-checkpoint` are derived from the
log. The engine builds them as a broker does when it recovers a segment; this module walks
directories and writes files. The broker's own files are never modified.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ottla import _engine
from ottla.arguments import of_kinds
from ottla.logs.listing import take_inventory
from ottla.logs.names import LEADER_EPOCHS, file_name, topic_patterns
from ottla.logs.near import near_names, near_paths
from ottla.logs.output import check_output
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import files_within
from ottla.storage.directory import new_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.logs.inventory import FileEntry, Partition
    from ottla.storage import Files, Place, Source

DEFAULT_INDEX_INTERVAL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RebuiltPartition:
    """What was built for one partition."""

    directory: str
    """The directory of the segments."""
    target: str
    """The directory with the built files, named after the partition."""
    files: tuple[str, ...]
    """Names of the built files."""
    fault: str | None
    """Why the files end before the log does: batches that a broker rejects in recovery. It cuts the
    log there and deletes the later segments."""


@of_kinds
def rebuild_side_files(
    source: Source | Sequence[Source],
    directory: str | os.PathLike[str],
    *,
    topics: str | Sequence[str] | None = None,
    index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[RebuiltPartition, ...]:
    """Builds indexes, producer snapshots and leader epochs of partitions in a new directory.

    They equal what Kafka builds when it recovers every segment. A log whose start was deleted
    begins with the producers in the snapshot at its first segment, if that snapshot is valid.
    Leader epochs without batches are missing. To use the files, stop the broker and copy those of a
    partition over its own.

        >>> import ottla, tempfile
        >>> home = tempfile.mkdtemp()
        >>> built = ottla.rebuild_side_files("examples/data", home + "/new", topics=["orders"])
        >>> [partition.fault for partition in built]
        [None, None]

    Args:
        source: one or several paths; see `audit`.
        directory: a new or an empty one; it appears complete or not at all.
        topics: a shell pattern of the topics to build for, or several; all by default.
        index_interval_bytes: bytes of batches between two entries of an index, the topic's
            `index.interval.bytes`.
        storage_options: settings of object stores; see `audit`.

    Raises:
        FileExistsError: the directory exists and is not empty.
        OSError: a segment cannot be read, or a file cannot be written.
        ValueError: there are no files of Kafka, no topic matches or is named, the directory is
            inside a source, or `index_interval_bytes` is negative.
    """
    if topics is not None and not topics:
        raise ValueError("topics is empty: leave it out for all topics")
    if index_interval_bytes < 0:
        raise ValueError(f"index_interval_bytes is {index_interval_bytes}, must be at least 0")
    sources = (
        [source] if isinstance(source, (str, bytes)) or hasattr(source, "__fspath__") else source
    )
    sources = list(sources)
    check_output(directory, sources)
    files = files_within(sources, storage_options)
    inventory = take_inventory(sources, files=files)
    for unreadable in inventory.unreadable:
        missing = unreadable.reason + near_paths(unreadable.path)
        raise ValueError(f"{inventory.display(unreadable.path)}: {missing}")
    patterns = topic_patterns(topics)
    _check_patterns(patterns, {p.topic for p in inventory.partitions if p.topic is not None})
    partitions = [
        p
        for p in inventory.partitions
        if p.is_of_topics(patterns) and p.is_whole and p.state == "live" and p.has_segments
    ]
    target = os.path.abspath(os.fspath(directory))
    built = []
    with new_directory(target) as partial:
        for partition in partitions:
            relative = inventory.display(partition.directory).lstrip("/")
            place = os.path.join(partial, relative)
            os.makedirs(place, exist_ok=True)
            names, fault = _rebuild(partition, files, place, index_interval_bytes)
            place = os.path.join(target, relative)
            built.append(RebuiltPartition(relative, place, tuple(names), fault))
    return tuple(built)


def _check_patterns(patterns: tuple[str, ...], topics: set[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(topic, pattern) for topic in topics):
            near = near_names(pattern, topics, "topics")
            raise ValueError(f"no topic matches {pattern!r}{near}")


def _rebuild(
    partition: Partition, files: Files, place: str, interval: int
) -> tuple[list[str], str | None]:
    """Writes the files of one partition. Returns their names, and why they end early, if so."""
    names: list[str] = []

    def write(name: bytes, data: bytes) -> None:
        text = name.decode()
        with open(os.path.join(place, text), "xb") as file:
            file.write(data)
        names.append(text)

    snapshot = _first_snapshot(partition, files)
    rebuild = _begun(snapshot, interval)
    fault: str | None = None
    for segment, next_base_offset in _segments(partition):
        base_offset = segment.base_offset or 0
        name = file_name("segment", base_offset).decode()
        try:
            log = files.place(segment.path, segment.size)
            if names or snapshot is None:
                built = rebuild.segment(log, base_offset)
            else:
                rebuild, built = _first(rebuild, log, base_offset, interval)
        except ValueError as error:
            fault = f"{name}: {error}"
            break
        write(file_name("offset-index", base_offset), built.offset_index)
        write(file_name("time-index", base_offset), built.time_index)
        if built.transaction_index:
            write(file_name("transaction-index", base_offset), built.transaction_index)
        if built.valid_bytes < segment.size:
            reason = built.fault or "no batch"
            fault = f"{name}, position {built.valid_bytes}: {reason}"
        end = built.next_offset if fault or next_base_offset is None else next_base_offset
        if end > base_offset:
            write(file_name("producer-snapshot", end), built.snapshot)
        if fault:
            break
    write(LEADER_EPOCHS, rebuild.leader_epochs())
    return names, fault


def _begun(snapshot: bytes | None, interval: int) -> _engine.Rebuild:
    try:
        return _engine.Rebuild(snapshot, index_interval_bytes=interval)
    except ValueError:
        # Kafka deletes a snapshot that it cannot read, and starts without one.
        return _engine.Rebuild(index_interval_bytes=interval)


def _first(
    rebuild: _engine.Rebuild, log: Place, base_offset: int, interval: int
) -> tuple[_engine.Rebuild, _engine.SideFiles]:
    """The files of the first segment; where Kafka gives up, without the snapshot before it."""
    try:
        return rebuild, rebuild.segment(log, base_offset)
    except ValueError:
        rebuild = _engine.Rebuild(index_interval_bytes=interval)
        return rebuild, rebuild.segment(log, base_offset)


def _segments(partition: Partition) -> Iterator[tuple[FileEntry, int | None]]:
    for segment in partition.segments:
        if segment.fault is not None:
            raise OSError(f"{os.fsdecode(segment.path)}: {segment.fault}")
        if segment.base_offset is not None:
            yield segment, partition.next_base_offset(segment)


def _first_snapshot(partition: Partition, files: Files) -> bytes | None:
    """Returns the snapshot at the start of the log, if older records were deleted."""
    base = partition.live_base_offsets[0]
    for file in partition.files:
        is_live = file.kind == "producer-snapshot" and file.state == "live"
        if base > 0 and is_live and file.base_offset == base:
            try:
                return read_side_file(file, files)
            except (OSError, SideFileError):
                return None
    return None
