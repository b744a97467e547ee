"""A log directory's disk in the hand of a test: full, or failing to sync."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from ottla.broker.faults import Names
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.plane import DataPlane

__all__ = ["DISK_FAULTS", "Disk", "DiskFault"]

FULL: Final = "full"
FSYNC: Final = "fsync"
DISK_FAULTS: Final = (FULL, FSYNC)


class DiskFault:
    """What a disk does to the logs that it is limited to.

    Attributes:
        kind: one of `DISK_FAULTS`.
        names: topic and partition; a fault of neither is one of everything in the directory.
        error: what clients are told.
    """

    api = None
    client = None
    is_paused = False
    is_spent = False
    error = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, kind: str, names: Names, count: Callable[[DiskFault], int]) -> None:
        self.kind = kind
        self.names = names
        self._count = count
        # What was counted before it was set, or until it was taken away, is another matter.
        self._offset = -count(self)
        self._is_over = False

    @property
    def hits(self) -> int:
        """How many writes, or syncs, it has refused."""
        return self._offset + (0 if self._is_over else self._count(self))

    @property
    def is_of_all(self) -> bool:
        """Whether it is limited to nothing."""
        return self.names == Names()

    def covers(self, topic: str, partition: int) -> bool:
        """Whether it is about this log."""
        return self.names.topic in {None, topic} and self.names.partition in {None, partition}

    def end(self) -> None:
        """Counts no longer."""
        self._offset, self._is_over = self.hits, True


class Disk:
    """The disk of a log directory, as far as a test has it do something.

    Args:
        plane: what writes the logs.

    Attributes:
        faults: those that are set.
        look: called where the disk is full, or is no longer.
    """

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._logs: dict[int, tuple[str, int]] = {}
        self._refused: dict[tuple[str, tuple[str, int] | None], int] = {}
        self._counted: dict[int, int] = {}
        self.faults: list[DiskFault] = []
        self.look: Callable[[], None] = _nothing

    @property
    def is_full(self) -> bool:
        """Whether all of it is."""
        return any(fault.kind == FULL and fault.is_of_all for fault in self.faults)

    def fail(self, kind: str, names: Names) -> DiskFault:
        """Sets a fault; returns it.

        Raises:
            ValueError: there is no such fault.
        """
        if kind not in DISK_FAULTS:
            raise ValueError(f"{kind!r} is no fault of a disk: expected {' or '.join(DISK_FAULTS)}")
        fault = DiskFault(kind, names, self._count)
        self.faults.append(fault)
        self._apply()
        return fault

    def mend(self, fault: DiskFault) -> None:
        """Takes a fault away; nothing if it is gone. A directory that is offline stays so."""
        if fault in self.faults:
            fault.end()
            self.faults.remove(fault)
            self._apply()

    def opened(self, handle: int, topic: str, partition: int) -> None:
        """A log is open."""
        self._logs[handle] = topic, partition
        if self.faults:
            self._apply()

    def closed(self, handle: int) -> None:
        """A log is closed, or is about to be."""
        if self.faults:
            self._take_counts()
        self._logs.pop(handle, None)
        self._counted.pop(handle, None)

    def before_write(self) -> None:
        """What is no partition's is about to be written.

        Raises:
            OSError: there is no room.
        """
        if self.is_full:
            self._refuse(FULL, None, errno.ENOSPC)

    def before_sync(self, handle: int | None) -> None:
        """A log is about to be synced, or what is no partition's.

        Raises:
            OSError: that fails.
        """
        for fault in self.faults:
            if fault.kind != FSYNC:
                continue
            log = None if handle is None else self._logs.get(handle)
            if fault.is_of_all or (log is not None and fault.covers(*log)):
                self._refuse(FSYNC, log, errno.EIO)

    def _refuse(self, kind: str, log: tuple[str, int] | None, number: int) -> None:
        self._refused[kind, log] = self._refused.get((kind, log), 0) + 1
        raise OSError(number, os.strerror(number))

    def _count(self, fault: DiskFault) -> int:
        self._take_counts()
        return sum(
            count
            for (kind, log), count in tuple(self._refused.items())
            if kind == fault.kind and (fault.is_of_all or (log is not None and fault.covers(*log)))
        )

    def _apply(self) -> None:
        self._take_counts()
        self.look()

    def _take_counts(self) -> None:
        """Has each log find room, or none, and takes over how often it found none."""
        full = [fault for fault in self.faults if fault.kind == FULL]
        for handle, log in self._logs.items():
            is_full = any(fault.covers(*log) for fault in full)
            try:
                count = self._plane.set_full(handle, is_full)
            except KafkaError:
                # Its partition is offline: nothing is written to it any more.
                continue
            more = count - self._counted.get(handle, 0)
            self._counted[handle] = count
            if more:
                self._refused[FULL, log] = self._refused.get((FULL, log), 0) + more


def _nothing() -> None:
    """Nobody looks."""
