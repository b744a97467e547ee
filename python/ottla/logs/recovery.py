"""Predicts what a broker's next start does to a partition's directory: keep, cut, delete, refuse.

The engine follows the steps of Apache Kafka 4.1, and decides what happens to the log and what to do
before. This module lists the directory and reads the checkpoints above it. Nothing is written.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from ottla import _engine
from ottla.arguments import of_kinds
from ottla.logs.checkpoints import read_offsets
from ottla.logs.lazy import LazySequence
from ottla.logs.names import LOG_START_OFFSETS, RECOVERY_POINTS, display, parse_partition_name
from ottla.logs.packed import PackedRows
from ottla.storage import ANYWHERE, AnyFiles, full_path, join, store_of
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.logs.inventory import Partition
    from ottla.storage import Files, Place, Source

StartOutcome = Literal[
    "refuses", "put-aside", "ends-early", "cuts", "empties", "exposes-aborted", "opens"
]


@dataclass(frozen=True, slots=True)
class RecoveredProducer:
    """A producer in the state of the partition after the start; -1 means none, as in Kafka."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int | None


class RecoveredProducers(LazySequence[RecoveredProducer]):
    """Producers by id, made as they are read: a partition may have any number of them."""

    __slots__ = ("_after",)

    def __init__(self, after: _engine.Recovery) -> None:
        self._after = after

    def __len__(self) -> int:
        return self._after.producer_count

    def _item(self, number: int) -> RecoveredProducer:
        return RecoveredProducer(*self._after.producer(number))


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The indexes of a segment that the start reads from the beginning."""

    offset_entries: int
    time_entries: int
    aborted_count: int
    aborted: Sequence[tuple[int, int, int, int]]
    """Producer id, first offset, offset of the marker and last stable offset of each."""
    max_timestamp: int
    """Largest timestamp in milliseconds, -1 for none."""
    fault: str | None
    """Why the batches from some position on were rejected."""


@dataclass(frozen=True, slots=True)
class RecoveryPrediction:
    """What one start of a broker does to one directory."""

    directory: str
    clean: bool
    """The broker shut down cleanly before."""
    opens: bool
    """False: the start of the broker fails, for all its partitions."""
    error: str | None
    """The exception it fails with."""
    message: str | None
    """The message of that exception."""
    is_stray: bool
    """The directory has no `partition.metadata`: brokers since 4.0 rename it to `-stray` and start
    an empty one."""
    log_start_offset: int | None
    """First offset of the log; None if it does not open."""
    log_end_offset: int | None
    """Offset of the next record; None if it does not open."""
    first_undecided_offset: int | None
    """First offset of the oldest open transaction, where read_committed consumers stop."""
    segments: Mapping[str, int]
    """Bytes kept of each segment file; if the log does not open, at the moment of failure."""
    bytes_before: Mapping[str, int]
    """Bytes of each segment file before the start."""
    bytes_cut: int
    """Bytes that the start cuts off segments, including deleted ones."""
    rebuilt: Mapping[str, RebuiltIndexes]
    """The indexes built for segments that the start has read."""
    producers: Sequence[RecoveredProducer]
    """By id."""
    leader_epochs: tuple[tuple[int, int], ...]
    """Epochs and their start offsets."""
    exposed: Sequence[tuple[int, int, int]]
    """Aborted transactions whose records read_committed consumers receive, because no transaction
    index lists them: producer id, first offset, offset of the marker."""
    files_deleted: tuple[str, ...]
    """Files that are deleted, or renamed to be deleted a minute later."""
    files_created: tuple[str, ...]
    snapshots_rewritten: tuple[str, ...]
    """Snapshots that were there, could not be read, and are written anew."""

    @property
    def segments_deleted(self) -> tuple[str, ...]:
        """Segments that are deleted completely."""
        return tuple(file for file in self.bytes_before if file not in self.segments)


@of_kinds
def predict_recovery(
    partition_directory: Source,
    *,
    clean: bool = False,
    recovery_point: int | None = 0,
    log_start_offset: int | None = None,
    aborted: Sequence[tuple[int, int, int]] | None = None,
    kafka_version: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RecoveryPrediction:
    """Predicts what Apache Kafka 4 does to a partition's directory at its next start.

    After an unclean shutdown, Kafka recovers segments from the recovery point on: it cuts the log
    at the first batch with invalid framing or a wrong checksum, and deletes all later segments.
    After a clean shutdown, it trusts the files. The topic's configuration is assumed to be Kafka's
    default.

        >>> import ottla
        >>> after = ottla.predict_recovery("examples/data/orders-0")
        >>> after.opens, after.bytes_cut
        (True, 0)

    Args:
        partition_directory: a directory such as `orders-0`, local or in an object store.
        clean: the broker has left `.kafka_cleanshutdown`, so nothing is recovered.
        recovery_point: first offset that may not be on disk. 0, the default, recovers every
            segment, as a broker does that has lost this checkpoint; None uses the entry of
            `recovery-point-offset-checkpoint` in the directory above.
        log_start_offset: None, the default, uses the entry of `log-start-offset-checkpoint` in the
            directory above, or 0.
        aborted: the log's aborted transactions as in `RecoveryPrediction.exposed`, if they are
            known; None, the default, searches every segment for them.
        kafka_version: the release of the broker, as a line (`"4.4"`) or a release (`"4.2.2"`);
            nothing that 4.1 to 4.4 are known to decide otherwise is asked by a start.
        storage_options: settings of an object store; see `audit`.

    Raises:
        OSError: the directory or a file cannot be read.
        ValueError: a release that is not known.
    """
    files = AnyFiles(storage_options)
    directory = full_path(partition_directory)
    above, name = os.path.split(directory)
    key = _key(name)
    if recovery_point is None:
        recovery_point = read_offsets(above, RECOVERY_POINTS, files).get(key, 0)
    if log_start_offset is None:
        log_start_offset = read_offsets(above, LOG_START_OFFSETS, files).get(key, 0)
    after = _engine.predict_recovery(
        list_places(directory, files),
        partition=display(name),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        aborted=None if aborted is None else PackedRows.of(aborted).data,
        kafka_version=kafka_version,
        progress=_go_on,
    )
    return _prediction(after, directory, clean=clean)


class Start(NamedTuple):
    """One possible start of a broker, over one partition."""

    is_next: bool
    """Whether the directory is in the state that leads to this start."""
    outcome: StartOutcome
    offsets_lost: int
    """Offsets at the end of the log that the broker will assign again."""
    action: str
    """What to do before the start."""
    clean: bool
    """The broker shut down cleanly before."""
    directory: bytes
    predicted: _engine.Recovery
    """What it does, as the engine tells it."""

    @property
    def after(self) -> RecoveryPrediction:
        """The same with everything that a prediction tells, in objects of Python."""
        return _prediction(self.predicted, self.directory, clean=self.clean)


def predict_starts(
    directory: bytes,
    *,
    stopped_cleanly: bool,
    recovery_point: int | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    needs_topic_id: bool,
    aborted: Sequence[tuple[int, int, int]],
    progress: Callable[[int], bool] | None = None,
    places: Mapping[bytes, Place] | None = None,
) -> list[Start]:
    """Predicts the next start over a partition, then the one after the other kind of shutdown.

    Args:
        directory: directory of the partition.
        stopped_cleanly: whether the clean shutdown marker exists.
        recovery_point: the partition's entry in `recovery-point-offset-checkpoint`.
        log_start_offset: the partition's entry in `log-start-offset-checkpoint`.
        log_end_offset: end of the log by its batches.
        needs_topic_id: whether the broker requires a `partition.metadata`, as since 2.8.
        aborted: the log's aborted transactions, as in `RecoveryPrediction.exposed`.
        progress: called with the bytes read so far; returns false to stop.
        places: the files in it, by name; those that are there by default.

    Raises:
        OSError: the directory or a file cannot be read.
        AuditCancelledError: `progress` returned false.
    """
    starts = _engine.predict_starts(
        list_places(directory, ANYWHERE) if places is None else places,
        partition=display(os.path.basename(directory)),
        stopped_cleanly=stopped_cleanly,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        needs_topic_id=needs_topic_id,
        aborted=PackedRows.of(aborted).data,
        progress=progress or _go_on,
    )
    return [
        Start(
            is_next=start.is_next,
            outcome=start.outcome,
            offsets_lost=start.offsets_lost,
            action=start.action,
            clean=start.clean,
            directory=directory,
            predicted=start.after,
        )
        for start in starts
    ]


def _go_on(_: int) -> bool:
    """Ctrl-C reaches a thread only when it calls back."""
    return True


def list_places(directory: bytes, files: Files) -> dict[bytes, Place]:
    """The files of a directory that can be read, by name.

    Raises:
        OSError: the directory cannot be listed, or has a link that is not followed: a broker
            follows it, and nobody knows to what.
    """
    places: dict[bytes, Place] = {}
    for entry in files.list(directory):
        path = join(directory, entry.name)
        if entry.leads_nowhere:
            raise OSError(errno.ELOOP, f"{display(entry.name)} is {entry.fault}", path)
        if entry.fault is None:
            places[entry.name] = files.place(path, entry.size)
    return places


def places_of(partition: Partition, files: Files) -> dict[bytes, Place]:
    """The files of a partition's directory that can be read, by name.

    Those on this machine as they are now, objects of a store as they were listed: a store lists a
    directory as slowly as it sends a file.

    Raises:
        OSError: see `list_places`.
    """
    directory = partition.directory
    if store_of(directory) is None:
        # Most hold regular files alone, of which a name is all that is asked.
        ((plain,),) = _engine.list_plain_partitions([directory])
        if plain is not None:
            _, _, names, *_ = plain
            return {name: files.place(join(directory, name)) for name in names}
        return list_places(directory, files)
    if not partition.is_whole:
        return list_places(directory, files)
    return {
        file.name: files.place(file.path, file.size)
        for file in partition.files
        if file.fault is None and file.kind != "directory"
    }


def _prediction(after: _engine.Recovery, directory: bytes, *, clean: bool) -> RecoveryPrediction:
    opens = after.error is None
    rebuilt = {
        display(file): RebuiltIndexes(
            offset_entries=indexes.offset_entries,
            time_entries=indexes.time_entries,
            aborted_count=indexes.aborted_count,
            aborted=PackedRows(indexes.aborted, 4),
            max_timestamp=indexes.max_timestamp,
            fault=indexes.fault,
        )
        for file, indexes in after.rebuilt
    }
    return RecoveryPrediction(
        directory=display(directory),
        clean=clean,
        opens=opens,
        error=after.error,
        message=None if after.message is None else visible(after.message),
        is_stray=after.is_stray,
        log_start_offset=after.log_start_offset if opens else None,
        log_end_offset=after.log_end_offset if opens else None,
        first_undecided_offset=after.first_undecided_offset if opens else None,
        segments=MappingProxyType({display(file): size for file, size in after.segments}),
        bytes_before=MappingProxyType({display(file): size for file, size in after.bytes_before}),
        bytes_cut=after.bytes_cut,
        rebuilt=MappingProxyType(rebuilt),
        producers=RecoveredProducers(after),
        leader_epochs=tuple(after.leader_epochs),
        exposed=PackedRows(after.exposed),
        files_deleted=tuple(display(file) for file in after.files_deleted),
        files_created=tuple(display(file) for file in after.files_created),
        snapshots_rewritten=tuple(display(file) for file in after.snapshots_rewritten),
    )


def _key(name: bytes) -> tuple[str, int]:
    """Returns a directory's topic and partition, as in checkpoints."""
    topic, partition, _ = parse_partition_name(name) or ("", 0, "live")
    return topic, partition
