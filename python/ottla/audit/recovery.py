"""What the next start of a broker makes of a partition's directory: kept, cut, deleted, refused.

The engine plays Apache Kafka 4.1's own steps through; here a directory is listed, the checkpoints
above it are read, and what comes back gets its names. Nothing is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.inventory import (
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    FileEntry,
    display,
    parse_partition_name,
)
from ottla.audit.sidefiles import SideFileError, parse_offset_checkpoint, read_side_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.audit.inventory import Source


@dataclass(frozen=True, slots=True)
class RecoveredProducer:
    """A producer as the partition knows it after the start; -1 is Kafka's word for none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int | None


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The indexes of a segment that the start reads from its beginning."""

    offset_entries: int
    time_entries: int
    aborted_count: int
    aborted: tuple[tuple[int, int, int, int], ...]
    """Producer id, first offset, offset of the marker, last stable offset of each."""
    max_timestamp: int
    """Greatest timestamp in milliseconds, -1 for none."""
    fault: str | None
    """Why batches at the end were not taken."""


@dataclass(frozen=True, slots=True)
class RecoveryPrediction:
    """What one start of a broker makes of one directory."""

    directory: str
    clean: bool
    """The broker had stopped cleanly before."""
    opens: bool
    """False: the broker gives up its start, with all its partitions."""
    error: str | None
    """The exception with which it does."""
    message: str | None
    """What that exception says."""
    is_stray: bool
    """The directory has no `partition.metadata`: a broker since 4.0 renames it to `-stray` and
    begins an empty one."""
    log_start_offset: int | None
    """First offset of the log; None when it does not open."""
    log_end_offset: int | None
    """The offset that the next record gets; None when it does not open."""
    first_undecided_offset: int | None
    """First offset of the oldest open transaction, where read_committed consumers stop."""
    segments: Mapping[str, int]
    """Bytes kept of each segment file. When the log does not open: as at that moment."""
    bytes_before: Mapping[str, int]
    """Bytes of each segment file before the start."""
    rebuilt: Mapping[str, RebuiltIndexes]
    """What the start made of the indexes of segments it has read."""
    producers: tuple[RecoveredProducer, ...]
    leader_epochs: tuple[tuple[int, int], ...]
    """Epochs and their start offsets."""
    files_deleted: tuple[str, ...]
    """Files that are gone, or renamed to be deleted a minute later."""
    files_created: tuple[str, ...]

    @property
    def bytes_cut(self) -> int:
        """Bytes of segments that the start takes away, deleted ones included."""
        kept = sum(min(size, self.bytes_before.get(f, 0)) for f, size in self.segments.items())
        return sum(self.bytes_before.values()) - kept

    @property
    def segments_deleted(self) -> tuple[str, ...]:
        """Segments of which nothing is left."""
        return tuple(file for file in self.bytes_before if file not in self.segments)


def predict_recovery(
    partition_directory: Source,
    *,
    clean: bool = False,
    recovery_point: int | None = 0,
    log_start_offset: int | None = None,
) -> RecoveryPrediction:
    """Tells what Apache Kafka 4.1 makes of a partition's directory at its next start.

    After an unclean stop Kafka recovers segments from the recovery point on: it cuts the log at the
    first batch it cannot frame or whose checksum is wrong, and deletes every later segment. After a
    clean stop it believes what it finds. Topic configuration is taken to be Kafka's default.

        >>> import ottla
        >>> after = ottla.predict_recovery("examples/data/orders-0")
        >>> after.opens, after.bytes_cut
        (True, 0)

    Args:
        partition_directory: a directory like `orders-0`.
        clean: the broker has left `.kafka_cleanshutdown`, so nothing is recovered.
        recovery_point: first offset not known to be on disk. 0, the default, recovers every
            segment, as a broker does that has lost this checkpoint; None takes the entry of
            `recovery-point-offset-checkpoint` in the directory above.
        log_start_offset: None, the default, takes the entry of `log-start-offset-checkpoint` in the
            directory above, or 0.

    Raises:
        OSError: the directory or a file cannot be read.
    """
    directory = os.path.abspath(os.fsencode(partition_directory))
    name = os.path.basename(directory)
    if recovery_point is None:
        recovery_point = _checkpointed(directory, RECOVERY_POINTS)
    if log_start_offset is None:
        log_start_offset = _checkpointed(directory, LOG_START_OFFSETS)
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_file()]
    row = _engine.predict_recovery(
        directory,
        names,
        partition=display(name),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    )
    sizes = {file: os.stat(os.path.join(directory, file)).st_size for file in names}
    before = {display(file): sizes[file] for file in sorted(names) if file.endswith(b".log")}
    return _prediction(row, directory=display(directory), clean=clean, before=before)


def _prediction(
    row: dict[str, Any], *, directory: str, clean: bool, before: dict[str, int]
) -> RecoveryPrediction:
    opens = row["error"] is None
    segments = {display(segment["file"]): segment for segment in row["segments"]}
    rebuilt = {
        file: RebuiltIndexes(
            offset_entries=segment["offset_entries"],
            time_entries=segment["time_entries"],
            aborted_count=segment["aborted_count"],
            aborted=tuple(segment["aborted"]),
            max_timestamp=segment["max_timestamp"],
            fault=segment["fault"],
        )
        for file, segment in segments.items()
        if segment["is_rebuilt"]
    }
    return RecoveryPrediction(
        directory=directory,
        clean=clean,
        opens=opens,
        error=row["error"],
        message=row["message"],
        is_stray=row["is_stray"],
        log_start_offset=row["log_start_offset"] if opens else None,
        log_end_offset=row["log_end_offset"] if opens else None,
        first_undecided_offset=row["first_undecided_offset"] if opens else None,
        segments=MappingProxyType({file: segments[file]["bytes"] for file in segments}),
        bytes_before=MappingProxyType(before),
        rebuilt=MappingProxyType(rebuilt),
        producers=tuple(RecoveredProducer(*producer) for producer in row["producers"]),
        leader_epochs=tuple(row["leader_epochs"]),
        files_deleted=tuple(display(file) for file in row["files_deleted"]),
        files_created=tuple(display(file) for file in row["files_created"]),
    )


def _checkpointed(directory: bytes, checkpoint: bytes) -> int:
    """The entry of a partition in a checkpoint above it; as in Kafka, 0 where there is none."""
    above, name = os.path.split(directory)
    known = parse_partition_name(name)
    if known is None:
        return 0
    try:
        offsets = parse_offset_checkpoint(
            read_side_file(FileEntry(above, checkpoint, "offset-checkpoint"))
        )
    except (OSError, SideFileError):
        return 0
    topic, partition, _ = known
    return offsets.get((topic, partition), 0)
