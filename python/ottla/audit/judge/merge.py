"""The request to merge the scanned files of a log, with everything known about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.audit.judge.context import settings_of
from ottla.logs.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.judge.context import Surroundings
    from ottla.audit.plan.logs import Log
    from ottla.logs.inventory import FileEntry
    from ottla.logs.names import FileKind
    from ottla.storage import Files, Place


class MergeRequest(NamedTuple):
    """Consecutive files of a log, and everything known about them."""

    is_consumer_offsets: bool
    orphans: tuple[int, ...]
    """Base offsets of index files without a segment."""
    topic: str | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    high_watermark: int | None = None
    first_dirty_offset: int | None = None
    leader_epochs: tuple[tuple[int, int], ...] = ()
    """Epochs and their start offsets."""
    cleanup_policy: str | None = None
    remote_storage: bool | None = None
    max_message_bytes: int | None = None
    is_preallocated: bool | None = None
    is_growing: bool = False
    """Whether the active segment has grown since it was listed."""
    is_head: bool = False
    """Whether the first file is the first of its partition."""
    snapshots: tuple[tuple[int, Place], ...] = ()
    """Producer snapshots, by offset."""
    transaction_indexes: tuple[Place | None, ...] = ()
    """The `.txnindex` of each file; empty if files beside the segments are not checked."""

    def knows_beyond(self, log_end_offset: int | None) -> bool:
        """Whether a checkpoint has a later end of the log than its segments."""
        ends = (self.recovery_point, self.high_watermark)
        return any(end is not None and end > (log_end_offset or 0) for end in ends)

    def without_ends(self) -> MergeRequest:
        """Returns the request without what checkpoints know of the end of the log."""
        return self._replace(recovery_point=None, high_watermark=None)

    def merge(self, scans: Sequence[tuple[int, _engine.SegmentScan]]) -> _engine.PartitionScan:
        """Merges scans, each given with the index of its file in the log."""
        return _engine.merge_partition(
            scans,
            topic=self.topic,
            log_start_offset=self.log_start_offset,
            recovery_point=self.recovery_point,
            high_watermark=self.high_watermark,
            first_dirty_offset=self.first_dirty_offset,
            leader_epochs=self.leader_epochs,
            cleanup_policy=self.cleanup_policy,
            remote_storage=self.remote_storage,
            max_message_bytes=self.max_message_bytes,
            is_preallocated=self.is_preallocated,
            is_growing=self.is_growing,
            is_head=self.is_head,
            is_consumer_offsets=self.is_consumer_offsets,
            orphans=self.orphans,
            snapshots=self.snapshots,
            transaction_indexes=self.transaction_indexes,
        )


def merge_request(
    log: Log,
    run: Sequence[int],
    *,
    beside: Mapping[tuple[FileKind, int], FileEntry],
    leader_epochs: Sequence[tuple[int, int]],
    surroundings: Surroundings,
    files: Files,
) -> MergeRequest:
    """Returns the request to merge files of a log, given by their indexes.

    `beside` are the files beside the log's segments.
    """
    partition = log.partition
    is_whole = partition is not None and partition.is_whole and log.is_whole
    is_compared = is_whole and len(run) == len(log.files)
    request = MergeRequest(
        is_consumer_offsets=log.is_consumer_offsets,
        orphans=log.orphans,
        snapshots=_snapshots(beside, files) if is_compared else (),
        transaction_indexes=_transaction_indexes(log, beside, files) if is_compared else (),
    )
    if partition is None or partition.topic is None:
        return request
    first = log.files[run[0]]
    is_live = first.kind == "segment" and first.state == "live"
    checkpoints = surroundings.checkpoints
    # Both are about the end of the live log.
    has_end = is_live and partition.state == "live" and run[-1] == len(log.files) - 1
    return request._replace(
        topic=partition.topic,
        log_start_offset=checkpoints.offset(partition, LOG_START_OFFSETS),
        recovery_point=checkpoints.offset(partition, RECOVERY_POINTS) if has_end else None,
        high_watermark=checkpoints.offset(partition, HIGH_WATERMARKS) if has_end else None,
        first_dirty_offset=checkpoints.offset(partition, CLEANER_OFFSETS),
        leader_epochs=tuple(leader_epochs) if is_live else (),
        is_growing=has_end and _has_grown(log.files[run[-1]], files),
        is_head=is_live and partition.live_base_offsets[:1] == (first.base_offset,),
        **settings_of(surroundings.topic_config(partition.topic)),
    )


def _has_grown(file: FileEntry, files: Files) -> bool:
    """Returns whether a local file is longer than when it was listed."""
    try:
        return files.place(file.path, file.size).size > file.size
    except OSError:
        return False


def _snapshots(
    beside: Mapping[tuple[FileKind, int], FileEntry], files: Files
) -> tuple[tuple[int, Place], ...]:
    return tuple(
        (offset, files.place(file.path, file.size))
        for (kind, offset), file in sorted(beside.items(), key=lambda item: item[0])
        if kind == "producer-snapshot"
    )


def _transaction_indexes(
    log: Log, beside: Mapping[tuple[FileKind, int], FileEntry], files: Files
) -> tuple[Place | None, ...]:
    indexes = (beside.get(("transaction-index", file.base_offset or 0)) for file in log.files)
    return tuple(file and files.place(file.path, file.size) for file in indexes)
