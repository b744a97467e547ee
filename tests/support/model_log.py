"""A partition as a leader keeps it, in as few rules as tell a producer's faults from the leader's.

A record whose value begins with ``!`` violates the topic's rules. Producers are remembered with
their last five batches, as Kafka does.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import ottla
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CULPRIT", "ModelLog", "Verdict"]

CULPRIT = b"!"
_REMEMBERED = 5


class Verdict(NamedTuple):
    """What becomes of a batch."""

    code: int
    base_offset: int = -1
    culprits: tuple[int, ...] = ()


class Entry(NamedTuple):
    """A record, or a transaction's end without a value."""

    value: bytes | None
    producer_id: int
    is_transactional: bool
    is_commit: bool = False


class Known:
    """A producer as the leader knows it."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[tuple[int, int, int]] = deque(maxlen=_REMEMBERED)


class ModelLog:
    """One partition.

    Attributes:
        entries: all that was ever appended.
        log_start_offset: of what is left of it.
        max_records: a batch of more is too large.
    """

    def __init__(self, max_records: int = 1_000) -> None:
        self.entries: list[Entry] = []
        self.log_start_offset = 0
        self.max_records = max_records
        self._known: dict[int, Known] = {}

    def append(self, data: bytes) -> Verdict:
        """Appends a batch, or says why not."""
        (batch,) = ottla.read_batches(data)
        values = [record.value or b"" for record in batch.records()]
        culprits = tuple(i for i, value in enumerate(values) if value.startswith(CULPRIT))
        if culprits:
            return Verdict(ErrorCode.INVALID_RECORD, culprits=culprits)
        if len(values) > self.max_records:
            return Verdict(ErrorCode.MESSAGE_TOO_LARGE)
        offset = len(self.entries)
        if batch.producer_id >= 0:
            first, last = batch.base_sequence, batch.last_sequence
            verdict = self._sequenced(batch.producer_id, batch.producer_epoch, first, last)
            if verdict is not None:
                return verdict
            self._known[batch.producer_id].batches.append((first, last, offset))
        self.entries += [Entry(one, batch.producer_id, batch.is_transactional) for one in values]
        return Verdict(ErrorCode.NONE, offset)

    def _sequenced(self, producer_id: int, epoch: int, first: int, last: int) -> Verdict | None:
        """Returns why a batch is not appended; ``None`` where it is next."""
        known = self._known.get(producer_id)
        if known is None:
            if first != 0:
                return Verdict(ErrorCode.UNKNOWN_PRODUCER_ID)
        elif epoch < known.epoch:
            return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH)
        elif epoch == known.epoch and known.batches:
            for begin, end, offset in known.batches:
                if (begin, end) == (first, last):
                    return Verdict(ErrorCode.NONE, offset)
            if first != (known.batches[-1][1] + 1) % 2**31:
                return Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        elif first != 0:
            return Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if known is None or known.epoch != epoch:
            self._known[producer_id] = Known(epoch)
        return None

    def end(self, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        """Appends the end of a transaction."""
        known = self._known.setdefault(producer_id, Known(epoch))
        if epoch > known.epoch:
            self._known[producer_id] = Known(epoch)
        self.entries.append(Entry(None, producer_id, is_transactional=True, is_commit=is_commit))

    def delete_all(self) -> None:
        """Deletes all records; with them, the leader forgets who wrote them."""
        self.log_start_offset = len(self.entries)
        self._known.clear()

    def restart(self) -> None:
        """The leader starts again, from a snapshot: it has the last batch of each producer."""
        for known in self._known.values():
            for _ in range(len(known.batches) - 1):
                known.batches.popleft()

    def values(self) -> list[bytes]:
        """Every record that was appended, in order."""
        return [entry.value for entry in self.entries if entry.value is not None]

    def committed(self) -> list[bytes]:
        """Those that a reader of committed records gets: none behind an open transaction."""
        return list(self._committed())

    def is_open(self) -> bool:
        """Whether a transaction has no end."""
        last: dict[int, bool] = {}
        for entry in self.entries:
            if entry.is_transactional:
                last[entry.producer_id] = entry.value is not None
        return any(last.values())

    def _committed(self) -> Iterator[bytes]:
        for offset, entry in enumerate(self.entries):
            if entry.value is None:
                continue
            if entry.is_transactional:
                end = next(
                    (
                        later
                        for later in self.entries[offset:]
                        if later.value is None and later.producer_id == entry.producer_id
                    ),
                    None,
                )
                if end is None:
                    return
                if not end.is_commit:
                    continue
            yield entry.value
