"""Records on their way to a partition, and the batches that they travel in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["NO_SEQUENCE", "SEQUENCES", "Batch", "Identity", "QueuedRecord", "sequence_after"]

NO_SEQUENCE = -1
SEQUENCES = 2**31
"""Sequences of a producer begin again at 0 behind the last `int32`."""


def sequence_after(sequence: int, count: int) -> int:
    """Returns the sequence behind some records, or before them where the count is negative."""
    return (sequence + count) % SEQUENCES


class Identity(NamedTuple):
    """A producer as leaders know it; both are -1 without idempotence."""

    producer_id: int = -1
    epoch: int = -1


class QueuedRecord:
    """One record, until its fate is known.

    Attributes:
        row: what the engine's builder takes.
        created_ms: when it was given to the producer: from then on its time runs.
        settle: called once, with its offset or with what went wrong; an offset of -1 is one that
            the leader no longer knows.
    """

    __slots__ = ("created_ms", "row", "settle")

    def __init__(
        self, row: Any, created_ms: int, settle: Callable[[int, BaseException | None], None]
    ) -> None:
        self.row = row
        self.created_ms = created_ms
        self.settle = settle


class Batch:
    """Records that are sent as one batch.

    Attributes:
        records: in order.
        identity: whose sequences it has.
        base_sequence: of its first record; `NO_SEQUENCE` until it is first sent.
        sent_sequence: what stands in the bytes that were sent last.
        is_under_way: whether an answer is to come.
        attempts: how often it was sent.
        may_be_written: whether an answer of an attempt never came.
        is_renumbered: whether it got another sequence than it was sent with: an error of order is
            then what was to be expected.
        not_before_ms: when it may be sent again.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "identity",
        "is_renumbered",
        "is_under_way",
        "may_be_written",
        "not_before_ms",
        "records",
        "sent_sequence",
    )

    def __init__(self, records: Sequence[QueuedRecord]) -> None:
        self.records = list(records)
        self.identity = Identity()
        self.base_sequence = self.sent_sequence = NO_SEQUENCE
        self.is_under_way = False
        self.attempts = 0
        self.may_be_written = False
        self.is_renumbered = False
        self.not_before_ms = 0

    @property
    def count(self) -> int:
        """How many records it has."""
        return len(self.records)

    @property
    def created_ms(self) -> int:
        """When the oldest of them was given to the producer."""
        return min(record.created_ms for record in self.records)

    def number(self, identity: Identity, base_sequence: int) -> None:
        """Gives it sequences."""
        self.is_renumbered = self.attempts > 0
        self.identity = identity
        self.base_sequence = base_sequence

    def succeed(self, base_offset: int) -> None:
        """Its records are in the log."""
        for index, record in enumerate(self.records):
            record.settle(base_offset + index if base_offset >= 0 else -1, None)

    def fail(self, error: BaseException) -> None:
        """Its records are not, or nobody knows."""
        for record in self.records:
            record.settle(-1, error)
