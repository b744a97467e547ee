"""Checkpoints: offsets of the partitions of a log directory, and the leader epochs of a partition.

Kafka's `CheckpointFile` and `LeaderEpochCheckpointFile` write them.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from ottla import _engine
from ottla.logs.inventory import FileEntry
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.logs.inventory import Partition
    from ottla.storage import Files


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
