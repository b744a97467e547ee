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
from ottla.logs.checkpoints import read_offsets
from ottla.logs.names import LOG_START_OFFSETS, RECOVERY_POINTS, display, parse_partition_name
from ottla.storage import ANYWHERE, AnyFiles, full_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.storage import Files, Source


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
    exposed: tuple[tuple[int, int, int], ...]
    """Aborted transactions whose records read_committed consumers get, as no transaction index has
    them: producer id, first offset, offset of the marker."""
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
    aborted: Sequence[tuple[int, int, int]] | None = None,
    storage_options: Mapping[str, str] | None = None,
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
        partition_directory: a directory like `orders-0`, here or in an object store.
        clean: the broker has left `.kafka_cleanshutdown`, so nothing is recovered.
        recovery_point: first offset not known to be on disk. 0, the default, recovers every
            segment, as a broker does that has lost this checkpoint; None takes the entry of
            `recovery-point-offset-checkpoint` in the directory above.
        log_start_offset: None, the default, takes the entry of `log-start-offset-checkpoint` in the
            directory above, or 0.
        aborted: the log's aborted transactions as in `RecoveryPrediction.exposed`, where they are
            known; None, the default, looks for them in every segment.
        storage_options: settings of an object store, as of `audit`.

    Raises:
        OSError: the directory or a file cannot be read.
    """
    files = AnyFiles(storage_options)
    directory = full_path(partition_directory)
    above, name = os.path.split(directory)
    key = _key(name)
    if recovery_point is None:
        recovery_point = read_offsets(above, RECOVERY_POINTS, files).get(key, 0)
    if log_start_offset is None:
        log_start_offset = read_offsets(above, LOG_START_OFFSETS, files).get(key, 0)
    return predict_start(
        directory,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        aborted=aborted,
        files=files,
    )


def predict_start(
    directory: bytes,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    aborted: Sequence[tuple[int, int, int]] | None,
    progress: Callable[[int], bool] | None = None,
    files: Files = ANYWHERE,
) -> RecoveryPrediction:
    """`predict_recovery` with nothing left to be looked up; `progress` stops it by returning false.

    Raises:
        OSError: the directory or a file cannot be read.
        AuditCancelledError: `progress` said so.
    """
    sizes = {entry.name: entry.size for entry in files.list(directory) if entry.fault is None}
    row = _engine.predict_recovery(
        {name: files.place(os.path.join(directory, name), size) for name, size in sizes.items()},
        partition=display(os.path.basename(directory)),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        aborted=aborted,
        # Ctrl-C reaches a thread that calls back.
        progress=progress or (lambda _: True),
    )
    before = {display(file): sizes[file] for file in sorted(sizes) if file.endswith(b".log")}
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
        exposed=tuple(row["exposed"]),
        files_deleted=tuple(display(file) for file in row["files_deleted"]),
        files_created=tuple(display(file) for file in row["files_created"]),
    )


def _key(name: bytes) -> tuple[str, int]:
    """Topic and partition of a directory, as checkpoints name them."""
    topic, partition, _ = parse_partition_name(name) or ("", 0, "live")
    return topic, partition
