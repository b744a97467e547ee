"""Checkpoints: offsets of the partitions in a log directory, and a partition's leader epochs.

Written by Kafka's `CheckpointFile` and `LeaderEpochCheckpointFile`.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, TypeAlias

from ottla import _engine
from ottla.logs.inventory import FileEntry
from ottla.logs.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.logs.inventory import Partition
    from ottla.storage import Files


def parse_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int]:
    r"""Parses a checkpoint, version 0, into offsets by topic and partition. It may be empty.

    >>> parse_offset_checkpoint(b"0\n1\norders 3 42\n")
    {('orders', 3): 42}

    Raises:
        SideFileError: the version, the count or an entry is not as Kafka writes it.
    """
    entries, fault = _engine.parse_offset_checkpoint(data)
    if fault is not None:
        raise SideFileError(*fault)
    return dict(entries)


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    r"""Parses a `leader-epoch-checkpoint` into epochs and start offsets, both strictly increasing.

    >>> parse_leader_epochs(b"0\n2\n0 0\n2 79\n")
    [(0, 0), (2, 79)]

    Raises:
        SideFileError: the version, the count, an entry or the order is not as Kafka writes it.
    """
    entries, fault = _engine.parse_leader_epochs(data)
    if fault is not None:
        raise SideFileError(*fault)
    return entries


def read_offsets(
    log_directory: bytes, name: bytes, files: Files = ANYWHERE
) -> dict[tuple[str, int], int]:
    """Reads the offsets of a log directory's checkpoint; returns none if it cannot be read."""
    try:
        file = FileEntry(log_directory, name, "offset-checkpoint")
        return parse_offset_checkpoint(read_side_file(file, files))
    except (OSError, SideFileError):
        return {}


OFFSET_CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
"""Names of the files of a log directory that have an offset for each partition."""


Offsets: TypeAlias = "tuple[int | None, int | None, int | None, int | None]"
"""The entries of one partition."""

_Entries: TypeAlias = "Mapping[tuple[str, int], int]"
"""The offsets in a checkpoint, by topic and partition."""


class Checkpoints:
    """The offset checkpoints of log directories, each read once; safe to share between threads."""

    def __init__(self, files: Files = ANYWHERE) -> None:
        self._files = files
        self._entries: dict[tuple[bytes, bytes], _Entries] = {}
        self._unreadable: set[tuple[bytes, bytes]] = set()
        self._all_of: dict[bytes, list[_Entries]] = {}
        """All checkpoints of a log directory, by its path."""
        self._known: dict[bytes, Mapping[bytes, int | None]] = {}
        """Offsets that were read elsewhere, by directory of the partition."""
        self._lock = threading.Lock()

    def offset(self, partition: Partition, name: bytes) -> int | None:
        """Returns a partition's entry in the checkpoint `name` beside its directory."""
        known = self._known.get(partition.directory, {})
        if name in known:
            return known[name]
        return self._read(_above(partition), name).get(_key(partition))

    def offsets(self, partition: Partition) -> Offsets:
        """Returns a partition's entries in the order of `OFFSET_CHECKPOINTS`."""
        if self._known:
            known = [self.offset(partition, name) for name in OFFSET_CHECKPOINTS]
            return known[0], known[1], known[2], known[3]
        above, key = _above(partition), _key(partition)
        checkpoints = self._all_of.get(above)
        if checkpoints is None:
            checkpoints = self._all_of[above] = [self._read(above, n) for n in OFFSET_CHECKPOINTS]
        points, starts, ends, cleaned = checkpoints
        return points.get(key), starts.get(key), ends.get(key), cleaned.get(key)

    def entries(self, file: FileEntry) -> Mapping[tuple[str, int], int]:
        """Returns all offsets in a checkpoint.

        Raises:
            SideFileError: the content is not what Kafka writes.
            OSError: it cannot be read.
        """
        with self._lock:
            entries = self._entries.get((file.directory, file.name))
            if entries is None or file.fault is not None:
                entries = parse_offset_checkpoint(read_side_file(file, self._files))
                self._entries[file.directory, file.name] = entries
        return entries

    def _read(self, above: bytes, name: bytes) -> _Entries:
        """Returns all offsets in a checkpoint; none if it cannot be read."""
        if (above, name) in self._unreadable:
            return {}
        try:
            return self.entries(FileEntry(above, name, "offset-checkpoint"))
        except (OSError, SideFileError):
            self._unreadable.add((above, name))
            return {}

    def know(self, partition: Partition, offsets: Mapping[bytes, int | None]) -> None:
        """Takes a partition's entries as they were read elsewhere; none is read for it here."""
        self._known[partition.directory] = offsets


def _above(partition: Partition) -> bytes:
    return partition.log_directory or os.path.dirname(partition.directory)


def _key(partition: Partition) -> tuple[str, int]:
    return partition.topic or "", partition.partition or 0
