"""What became of many rows that were given in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ottla.client.delivery.promises import Place

__all__ = ["Receipt", "ReceiptRun"]


class Receipt:
    """What became of each row of `produce_many`.

    Attributes:
        topic: where they went.
        partitions: of each row; -1 where a row never got one.
        offsets: of each row; -1 where it failed, or the leader did not say.
        errors: what went wrong, by row.
    """

    def __init__(self, topic: str, count: int, when_done: Callable[[Receipt], None]) -> None:
        import numpy as np

        self.topic = topic
        self.partitions: NDArray[np.int32] = np.full(count, -1, np.int32)
        self.offsets: NDArray[np.int64] = np.full(count, -1, np.int64)
        self.errors: dict[int, BaseException] = {}
        self._open = count
        self._when_done = when_done
        if count == 0:
            when_done(self)

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        return (
            f"Receipt(topic={self.topic!r}, rows={len(self)}, open={self._open}, "
            f"errors={len(self.errors)})"
        )

    @property
    def is_done(self) -> bool:
        """Whether the fate of each row is known."""
        return self._open == 0

    def raise_first(self) -> None:
        """Raises the error of the first row that has one, with a note of how many have."""
        if self.errors:
            row = min(self.errors)
            error = self.errors[row]
            note = f"row {row} of {len(self)}; {len(self.errors)} failed"
            if note not in getattr(error, "__notes__", ()):
                _add_note(error, note)
            raise error

    def settled(self, count: int) -> None:
        """The fate of some rows is known."""
        self._open -= count
        if self._open == 0:
            self._when_done(self)


def _add_note(error: BaseException, note: str) -> None:
    # Python 3.10 has no notes.
    add: Any = getattr(error, "add_note", None)
    if add is not None:
        add(note)


class ReceiptRun:
    """Some rows of a receipt that are in one batch, one behind the other.

    Args:
        receipt: whose they are.
        rows: which, a slice of those that follow each other.
    """

    __slots__ = ("_receipt", "_rows")

    def __init__(self, receipt: Receipt, rows: range | NDArray[np.int64]) -> None:
        self._receipt = receipt
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def part(self, start: int, stop: int) -> ReceiptRun:
        """Returns those who wait for some of them."""
        return ReceiptRun(self._receipt, self._rows[start:stop])

    def succeed(self, place: Place) -> None:
        """The records are in the log."""
        import numpy as np

        rows: Any = self._rows
        if isinstance(rows, range):
            rows = slice(rows.start, rows.stop)
        self._receipt.partitions[rows] = place.partition
        if place.base_offset >= 0:
            end = place.base_offset + len(self._rows)
            self._receipt.offsets[rows] = np.arange(place.base_offset, end)
        self._receipt.settled(len(self._rows))

    def fail(self, error: BaseException) -> None:
        """They are not, or nobody knows."""
        self._receipt.errors.update((int(row), error) for row in self._rows)
        self._receipt.settled(len(self._rows))
