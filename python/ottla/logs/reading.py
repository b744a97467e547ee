"""Reads a partition offline: what a consumer would receive, continuing after damage."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from ottla import _engine
from ottla.arguments import of_kinds
from ottla.errors import DamageWarning, NotAPartitionError
from ottla.logs.checkpoints import Checkpoints
from ottla.logs.listing import take_inventory
from ottla.logs.live import has_grown, start_behind
from ottla.logs.names import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    MAX_OFFSET,
    RECOVERY_POINTS,
    display,
)
from ottla.severity import severity_of
from ottla.storage import files_within, full_path
from ottla.text import visible
from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.logs.inventory import FileEntry, Inventory, Partition
    from ottla.severity import Severity
    from ottla.storage import Files, Place, Source

Isolation = Literal["read_uncommitted", "read_committed"]
"""Which records: all, or those below the last stable offset without aborted ones (KIP-98)."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a log that was skipped because it cannot be read.

    Attributes:
        file: the file it begins in, named as by the audit.
        position: where it begins, in bytes from the start of the file.
        size: its size in bytes.
        first_offset: the first offset lost; ``None`` if no offset is lost.
        last_offset: the last offset lost; ``None`` at the end of the log, where it is unknown.
        next_good_offset: the offset at which reading continues; ``None`` if it does not.
        severity: as reported by `ottla.audit`; ``"info"`` for the torn end that a killed broker
            leaves, ``"error"`` for segments that were deleted while the log was read.
        message: what is wrong.

    As text, it contains all of this except the severity.
    """

    file: str
    position: int
    size: int
    first_offset: int | None
    last_offset: int | None
    next_good_offset: int | None
    severity: Severity
    message: str

    def __str__(self) -> str:
        parts = [f"{self.file}: {self.message}"]
        first, last = self.first_offset, self.last_offset
        if first is not None:
            if last is None:
                parts.append(f"nothing from offset {first} on can be read")
            elif first == last:
                parts.append(f"offset {first} is lost")
            else:
                parts.append(f"offsets {first} to {last} are lost")
        if self.next_good_offset is not None:
            parts.append(f"reading continues at offset {self.next_good_offset}")
        return visible("; ".join(parts))


OnDamage = Callable[[Damage], object]

PartitionRecords = _engine.PartitionRecords
"""What `read_partition` returns."""


@of_kinds
def read_partition(
    directory: Source,
    *,
    isolation: Isolation = "read_uncommitted",
    from_offset: int | None = None,
    to_offset: int | None = None,
    on_damage: OnDamage | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionRecords:
    """Returns the records of a partition that a consumer would receive, without a broker.

    They start at the log start offset (``log-start-offset-checkpoint`` beside the directory, else
    the first segment) and end at the end of the log; with ``read_committed`` they end at the last
    stable offset, where the first open transaction begins, without records of aborted
    transactions. End markers in the log decide, not the ``.txnindex``. No control record returns.

    A consumer stops at the first byte it cannot read. Here, reading continues at the next valid
    batch, and what was skipped is reported, as are offsets behind the end of the log that its
    recovery point, high watermark or newest snapshot knows. Offsets missing between two valid
    batches are not, because compaction removes records too: `ottla.audit` distinguishes them.
    Segments that a broker deletes from the start of the log before they are read are reported, too.
    The log is read in windows, so memory does not grow with its size; with ``read_committed``, a
    log with transactions is read twice.

    Args:
        directory: a partition directory, or one segment file; with a single file, transactions that
            end in a later one are open.
        isolation: ``"read_uncommitted"`` or ``"read_committed"``.
        from_offset: the first offset to return; at least the log start offset.
        to_offset: the offset to stop before.
        on_damage: called with each `Damage`, between the records before and after it; without it,
            a `DamageWarning` is issued.
        storage_options: see `audit`.

    Returns:
        An iterator of `Record`, and a table: ``polars.DataFrame(records)``; its methods ``batches``
        and ``columns`` tell more. Its attribute ``stopped_by`` is in the end the open transaction
        at which ``read_committed`` stopped, as offset and producer id, or ``None``, and
        ``log_end_offset`` the offset behind the log's last batch, ``None`` behind ``to_offset``.

    Raises:
        NotAPartitionError: it is neither a partition directory nor a segment.
        ValueError: there is no such isolation, or an offset is negative.
        OSError: a file cannot be read; also raised while iterating.

    >>> import ottla
    >>> records = ottla.read_partition("examples/data/refunds-0", isolation="read_committed")
    >>> [record.offset for record in records]
    [0, 1, 2, 3]
    >>> records.stopped_by
    (8, 1001)
    >>> records.log_end_offset
    25
    """
    _check_range(isolation, from_offset, to_offset)
    (files := files_within([directory], storage_options)).stat(full_path(directory))
    inventory = take_inventory([directory], files=files)
    partition, segments = _segments(directory, inventory.partitions, files)
    log_start = log_start_offset_of(partition, Checkpoints(files))
    teller = _Teller(inventory, partition, segments, log_start, on_damage)
    return PartitionRecords(
        [(files.place(file.path, file.size), file.base_offset) for file in segments],
        isolation=isolation,
        start_offset=max(from_offset or 0, log_start),
        end_offset=MAX_OFFSET if to_offset is None else to_offset,
        stopped_cleanly=partition.stopped_cleanly,
        on_damage=teller.damage,
        on_end=teller.end,
        on_missing=teller.next_segment,
    )


def _check_range(isolation: str, from_offset: int | None, to_offset: int | None) -> None:
    if isolation not in get_args(Isolation):
        raise ValueError(f"isolation is {isolation!r}, not one of {', '.join(get_args(Isolation))}")
    for name, offset in (("from_offset", from_offset), ("to_offset", to_offset)):
        if offset is not None and not 0 <= offset <= MAX_OFFSET:
            raise ValueError(f"{name} is {offset}, not an offset from 0 to {MAX_OFFSET}")


def damage_of(row: Mapping[str, Any], names: Sequence[str]) -> Damage:
    """Returns damage as the engine reports it, in files of these names."""
    return Damage(
        file=names[row["segment"]],
        position=row["position"],
        size=row["size"],
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
        next_good_offset=row["next_good_offset"],
        severity=severity_of(row["severity"]),
        message=row["message"],
    )


class _Teller:
    """Tells damage of a partition, and what is lost behind the end of its log."""

    def __init__(
        self,
        inventory: Inventory,
        partition: Partition,
        segments: Sequence[FileEntry],
        log_start_offset: int,
        on_damage: OnDamage | None,
    ) -> None:
        self._inventory = inventory
        self._partition = partition
        self._segments = segments
        self._last = segments[-1] if segments else None
        self._names = [inventory.display(segment.path) for segment in segments]
        self._log_start_offset = log_start_offset
        self._on_damage = on_damage
        self._has_torn_end = False

    def damage(self, row: Mapping[str, Any]) -> None:
        """Damage as the engine reports it."""
        damage = damage_of(row, self._names)
        if damage.next_good_offset is None and damage.first_offset is not None:
            self._has_torn_end = True
            damage = _with_witnesses(damage, self._partition, self._inventory.files)
        self._tell(damage)

    def end(self, log_end_offset: int) -> None:
        """The end of the log: it may be at a whole batch, and yet not where it was."""
        if self._has_torn_end:
            return
        offset = max(log_end_offset, self._log_start_offset)
        whole = Damage(
            file=self._inventory.display(
                self._last.path if self._last else self._partition.directory
            ),
            position=self._last.size if self._last else 0,
            size=0,
            first_offset=offset,
            last_offset=None,
            next_good_offset=None,
            severity="info",
            message=f"the log ends at offset {offset}",
        )
        damage = _with_witnesses(whole, self._partition, self._inventory.files)
        if damage is not whole:
            self._tell(damage)

    def next_segment(self, missing: int) -> int | None:
        """The first segment left where a broker deletes segments from the start; None elsewhere."""
        partition = self._partition
        if not partition.is_whole or partition.state != "live" or partition.stopped_cleanly:
            return None
        start = start_behind(partition, self._segments[missing], self._inventory.files)
        if start is None:
            return None
        return sum((segment.base_offset or 0) < start for segment in self._segments)

    def _tell(self, damage: Damage) -> None:
        if self._on_damage is not None:
            self._on_damage(damage)
        else:
            warnings.warn(DamageWarning(str(damage), damage), stacklevel=3)


def _with_witnesses(damage: Damage, partition: Partition, files: Files) -> Damage:
    """Returns the end of a log as an error with the offsets lost, if something beside proves more.

    The audit has more to ask: indexes, leader epochs, coordinators, other copies.
    """
    end = damage.first_offset
    if end is None or not partition.is_whole:
        return damage
    checkpoints = Checkpoints(files)
    snapshots = (
        file.base_offset
        for file in partition.files
        if file.kind == "producer-snapshot" and file.state == "live" and file.base_offset
    )
    known = {
        "the recovery point": checkpoints.offset(partition, RECOVERY_POINTS),
        "the high watermark": checkpoints.offset(partition, HIGH_WATERMARKS),
        "the snapshot of offset": max(snapshots, default=None),
    }
    witnesses = [
        (f"{name} {offset}", offset)
        for name, offset in known.items()
        if offset is not None and offset > end
    ]
    proof = _engine.proved_end(end, witnesses)
    # Who writes to the log tells the checkpoints later.
    if proof is None or has_grown(partition, files):
        return damage
    names = listed([name for name, _ in witnesses], len(witnesses))
    verb = "is" if len(witnesses) == 1 else "are"
    return replace(
        damage,
        severity=proof.severity,
        last_offset=proof.last_offset,
        message=f"{damage.message}; {names} {verb} beyond its end",
    )


def _segments(
    source: Source, partitions: tuple[Partition, ...], files: Files
) -> tuple[Partition, tuple[FileEntry, ...]]:
    """Returns the only partition, and its segments to read."""
    name, path = display(os.fsencode(source)), full_path(source)
    if len(partitions) > 1:
        example = display(os.path.relpath(partitions[0].directory, path))
        raise NotAPartitionError(
            f"{name} holds {len(partitions)} partitions: give one of them, such as {example}"
        )
    if not partitions or partitions[0].directory not in (path, os.path.dirname(path)):
        raise NotAPartitionError(f"{name} is neither a partition directory nor a segment")
    partition = partitions[0]
    segments = partition.segments
    if not partition.is_whole:
        segments = tuple(file for file in partition.files if file.kind == "segment")
        if not segments:
            raise NotAPartitionError(f"{name} is not a segment: give a .log file or the directory")
    for segment in segments:
        if segment.fault is not None:
            raise OSError(errno.EINVAL, segment.fault, os.fsdecode(segment.path))
        if segment.base_offset is None and segment.size:
            rows, _ = _engine.segment_batches(files.place(segment.path, segment.size), 0, 1)
            if not rows:
                # A file of another kind, given by mistake.
                raise NotAPartitionError(f"{name}: no record batch in its {segment.size:,} bytes")
    return partition, segments


def log_start_offset(directory: Source, storage_options: Mapping[str, str] | None = None) -> int:
    """Returns the first offset that `read_partition` returns if there is a record: 0 for files.

    Raises:
        NotAPartitionError: it is neither a partition directory nor a segment.
        OSError: a directory cannot be read.
    """
    files = files_within([directory], storage_options)
    inventory = take_inventory([directory], files=files)
    partition, _ = _segments(directory, inventory.partitions, files)
    return log_start_offset_of(partition, Checkpoints(files))


def partition_files(
    directory: Source, storage_options: Mapping[str, str] | None = None
) -> list[tuple[int | None, Place]]:
    """Returns base offset and place of each segment that `read_partition` reads, in order.

    Raises:
        NotAPartitionError: it is neither a partition directory nor a segment.
        OSError: a directory cannot be read.
    """
    files = files_within([directory], storage_options)
    inventory = take_inventory([directory], files=files)
    _, segments = _segments(directory, inventory.partitions, files)
    return [(file.base_offset, files.place(file.path, file.size)) for file in segments]


def log_start_offset_of(partition: Partition, checkpoints: Checkpoints) -> int:
    """Returns the first offset that consumers get, by the checkpoint above a partition.

    It is 0 without one, or if it cannot be read.
    """
    if partition.topic is None or not partition.is_whole or partition.state != "live":
        return 0
    return checkpoints.offset(partition, LOG_START_OFFSETS) or 0
