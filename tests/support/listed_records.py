"""The records of a batch as a list, in place of the engine's builder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla import NewRecord

__all__ = ["ListedRecords"]


class ListedRecords:
    """Records that can be looked at."""

    def __init__(self, rows: list[NewRecord]) -> None:
        self.rows = rows

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def size_bytes(self) -> int:
        return 61 + sum(10 + len(row.key or b"") + len(row.value or b"") for row in self.rows)

    def without(self, indexes: Sequence[int]) -> ListedRecords:
        return ListedRecords([row for i, row in enumerate(self.rows) if i not in set(indexes)])

    def split(self, at: int) -> tuple[ListedRecords, ListedRecords]:
        return ListedRecords(self.rows[:at]), ListedRecords(self.rows[at:])
