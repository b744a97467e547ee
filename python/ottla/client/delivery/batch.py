"""Records that travel together, who waits for them, and their sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.delivery.promises import pieces, split_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.client.delivery.promises import Place, Run

__all__ = ["NO_SEQUENCE", "SEQUENCES", "Batch", "Identity", "Origin", "Records", "sequence_after"]

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


class Records(Protocol):
    """The records of a batch: `ottla.records.BatchBuilder`."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def size_bytes(self) -> int:
        """The size of the batch without compression."""

    def without(self, indexes: Sequence[int]) -> Any:
        """Returns the others."""

    def split(self, at: int) -> tuple[Any, Any]:
        """Returns the first ones, and the others."""


class Origin:
    """The batch that records were first put into.

    Attributes:
        unsettled: how many batches have records of it whose fate is not known.
    """

    __slots__ = ("unsettled",)

    def __init__(self) -> None:
        self.unsettled = 1


class Batch:
    """Records that are sent as one batch.

    Attributes:
        records: in order.
        runs: who waits for them.
        tail: the last of them, where it takes those who wait for one record each.
        created_ms: when the first of them was given to the producer: from then on their time runs,
            also for those that are sent again in other batches.
        reserved_bytes: what it has of the producer's buffer.
        origin: the batch that its records were first put into.
        first_sent_ms: when it was sent for the first time; -1 before.
        identity: whose sequences it has.
        base_sequence: of its first record; `NO_SEQUENCE` until it is first sent.
        sent_sequence: what stands in the bytes that were sent last.
        is_under_way: whether an answer is to come.
        attempts: how often it was sent.
        may_be_written: whether an answer of an attempt never came.
        is_passed_over: whether those behind it have to tell whether it is in the log.
        is_renumbered: whether it got another sequence than it was sent with: an error of order is
            then what was to be expected.
        not_before_ms: when it may be sent again.
        last_error: why it has to be, or `None`.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "created_ms",
        "first_sent_ms",
        "identity",
        "is_passed_over",
        "is_renumbered",
        "is_under_way",
        "last_error",
        "may_be_written",
        "not_before_ms",
        "origin",
        "records",
        "reserved_bytes",
        "runs",
        "sent_sequence",
        "tail",
    )

    def __init__(
        self,
        records: Records,
        runs: list[Run],
        created_ms: int,
        reserved_bytes: int = 0,
        origin: Origin | None = None,
    ) -> None:
        self.records: Any = records
        self.runs = runs
        self.tail: Any = None
        self.created_ms = created_ms
        self.reserved_bytes = reserved_bytes
        self.origin = origin or Origin()
        self.first_sent_ms = -1
        self.identity = Identity()
        self.base_sequence = self.sent_sequence = NO_SEQUENCE
        self.is_under_way = False
        self.attempts = 0
        self.may_be_written = False
        self.is_passed_over = False
        self.is_renumbered = False
        self.not_before_ms = 0
        self.last_error: BaseException | None = None

    @property
    def count(self) -> int:
        """How many records it has."""
        count: int = self.records.count
        return count

    def number(self, identity: Identity, base_sequence: int) -> None:
        """Gives it sequences."""
        self.is_renumbered = self.attempts > 0
        self.identity = identity
        self.base_sequence = base_sequence

    def split(self, at: int) -> tuple[Batch, Batch]:
        """Returns batches of the first records, and of the others; this one ends without a word."""
        first, second = self.records.split(at)
        runs = split_runs(self.runs, at)
        share = self.reserved_bytes * first.size_bytes // (first.size_bytes + second.size_bytes)
        origin = self.origin
        origin.unsettled += 1
        return (
            Batch(first, runs[0], self.created_ms, share, origin),
            Batch(second, runs[1], self.created_ms, self.reserved_bytes - share, origin),
        )

    def without(self, indexes: Iterable[int]) -> tuple[Batch, list[tuple[int, Run]]]:
        """Returns a batch of the other records, and who waits for each of those named."""
        named = sorted(indexes)
        kept: list[Run] = []
        failed: list[tuple[int, Run]] = []
        for index, run in pieces(self.runs, named):
            if index is None:
                kept.append(run)
            else:
                failed.append((index, run))
        records = self.records.without(named)
        survivors = Batch(records, kept, self.created_ms, self.reserved_bytes, self.origin)
        return survivors, failed

    def succeed(self, place: Place) -> None:
        """Its records are in the log."""
        for run in self.runs:
            run.succeed(place)
            if place.base_offset >= 0:
                place = place._replace(base_offset=place.base_offset + len(run))

    def fail(self, error: BaseException) -> None:
        """Its records are not, or nobody knows."""
        for run in self.runs:
            run.fail(error)
