"""A coordinator of transactions and of groups' offsets, in as few rules as hold their promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ModelCoordinator"]

Partition = tuple[str, int]
_FIRST_ID = 4_000


class Transactions:
    """Of one transactional id."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = 0
        self.last_epoch = -1
        self.state: Literal["empty", "ongoing", "committed", "aborted"] = "empty"
        self.partitions: set[Partition] = set()
        self.offsets: dict[str, dict[Partition, int]] = {}
        self.groups: set[str] = set()


class ModelCoordinator:
    """All transactional ids, and the offsets that groups have committed.

    Args:
        write_end: appends the end of a transaction: partition, producer id, epoch, whether it is a
            commit.

    Attributes:
        committed: offsets by group and partition.
        bumps: whether the end of a transaction gives the next epoch (transaction version 2).
    """

    def __init__(
        self, write_end: Callable[[Partition, int, int, bool], None], *, bumps: bool = False
    ) -> None:
        self.committed: dict[str, dict[Partition, int]] = {}
        self.bumps = bumps
        self._write_end = write_end
        self._known: dict[str, Transactions] = {}
        self._ids = 0

    def new_id(self) -> int:
        """Returns a producer id that was never given."""
        self._ids += 1
        return _FIRST_ID + self._ids

    def is_open(self) -> bool:
        """Whether any transaction has no end."""
        return any(one.state == "ongoing" for one in self._known.values())

    def init(self, name: str, producer_id: int, epoch: int) -> tuple[int, int, int]:
        """Returns an error code, an id and an epoch; ends what is open first."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = Transactions(self.new_id())
            return ErrorCode.NONE, known.producer_id, known.epoch
        if producer_id >= 0:
            if producer_id != known.producer_id:
                return ErrorCode.INVALID_PRODUCER_ID_MAPPING, -1, -1
            if epoch == known.last_epoch and known.state != "ongoing":
                return ErrorCode.NONE, known.producer_id, known.epoch
            if epoch != known.epoch:
                return ErrorCode.PRODUCER_FENCED, -1, -1
        if known.state == "ongoing":
            # Its epoch is fenced with the end, so that only a new producer gets one.
            known.epoch += 1
            known.last_epoch = -1
            self._end(known, is_commit=False)
            return ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1
        known.last_epoch = known.epoch if producer_id >= 0 else -1
        known.epoch += 1
        known.state = "empty"
        return ErrorCode.NONE, known.producer_id, known.epoch

    def add(self, name: str, producer_id: int, epoch: int, partitions: set[Partition]) -> int:
        """Adds partitions to a transaction."""
        known, code = self._current(name, producer_id, epoch)
        if known is not None:
            self._begin(known)
            known.partitions |= partitions
        return code

    def add_group(self, name: str, producer_id: int, epoch: int, group: str) -> int:
        """Adds a group."""
        known, code = self._current(name, producer_id, epoch)
        if known is not None:
            self._begin(known)
            known.groups.add(group)
        return code

    def add_offsets(
        self, name: str, producer_id: int, epoch: int, group: str, offsets: dict[Partition, int]
    ) -> int:
        """Keeps offsets until the end; without its group, only where that is added by itself."""
        known, code = self._current(name, producer_id, epoch)
        if known is None:
            return code
        if group not in known.groups:
            if not self.bumps:
                return ErrorCode.INVALID_TXN_STATE
            self._begin(known)
            known.groups.add(group)
        known.offsets.setdefault(group, {}).update(offsets)
        return ErrorCode.NONE

    def end(
        self, name: str, producer_id: int, epoch: int, *, is_commit: bool
    ) -> tuple[int, int, int]:
        """Ends a transaction; returns an error code, and the next id and epoch if it gives one."""
        known = self._known.get(name)
        wished = "committed" if is_commit else "aborted"
        if known is None or known.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, -1, -1
        if self.bumps and epoch == known.last_epoch and known.state == wished:
            return ErrorCode.NONE, known.producer_id, known.epoch
        if known.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED, -1, -1
        if known.state != "ongoing":
            if self.bumps:
                if is_commit:
                    return ErrorCode.INVALID_TXN_STATE, -1, -1
                known.state = "ongoing"
            elif known.state != wished:
                return ErrorCode.INVALID_TXN_STATE, -1, -1
            else:
                return ErrorCode.NONE, -1, -1
        if not self.bumps:
            self._end(known, is_commit=is_commit)
            return ErrorCode.NONE, -1, -1
        known.last_epoch = known.epoch
        known.epoch += 1
        self._end(known, is_commit=is_commit)
        return ErrorCode.NONE, known.producer_id, known.epoch

    def check_writer(
        self, name: str | None, producer_id: int, epoch: int, partition: Partition
    ) -> int:
        """Returns why a transactional batch is not taken; adds its partition where that is due."""
        known = self._known.get(name or "")
        if known is None or known.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if partition not in known.partitions:
            if not self.bumps:
                return ErrorCode.INVALID_TXN_STATE
            self._begin(known)
            known.partitions.add(partition)
        return ErrorCode.NONE

    def _current(self, name: str, producer_id: int, epoch: int) -> tuple[Any, int]:
        known = self._known.get(name)
        if known is None or known.producer_id != producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return None, ErrorCode.PRODUCER_FENCED
        return known, ErrorCode.NONE

    def _begin(self, known: Transactions) -> None:
        if known.state != "ongoing":
            known.state = "ongoing"
            known.partitions = set()
            known.groups = set()
            known.offsets = {}

    def _end(self, known: Transactions, *, is_commit: bool) -> None:
        known.state = "committed" if is_commit else "aborted"
        for partition in sorted(known.partitions):
            self._write_end(partition, known.producer_id, known.epoch, is_commit)
        if is_commit:
            for group, offsets in known.offsets.items():
                self.committed.setdefault(group, {}).update(offsets)
        known.partitions = set()
        known.groups = set()
        known.offsets = {}
