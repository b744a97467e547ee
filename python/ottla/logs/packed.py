"""Rows of integers in eight bytes each.

A log may have any number of aborted transactions; as objects of Python each would take hundreds of
bytes.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeVar, cast

from ottla.logs.lazy import LazySequence

if TYPE_CHECKING:
    from collections.abc import Iterable

IntRow_co = TypeVar("IntRow_co", bound="tuple[int, ...]", covariant=True)


class PackedRows(LazySequence[IntRow_co]):
    """Tuples of integers, made as they are read; equal to a tuple of them.

        >>> PackedRows.of([(7, 0, 2), (8, 3, 9)])[1]
        (8, 3, 9)

    Args:
        data: the integers one after the other, as the engine packs them.
        width: how many make a row.
    """

    __slots__ = ("data", "width")

    def __init__(self, data: bytes, width: int = 3) -> None:
        self.data = data
        self.width = width

    @staticmethod
    def of(rows: Iterable[tuple[int, int, int]]) -> PackedRows[tuple[int, int, int]]:
        """Packs rows of three, as aborted transactions are; returns those that are packed."""
        if isinstance(rows, PackedRows):
            return rows
        numbers = array("q")
        for first, second, third in rows:
            numbers.extend((first, second, third))
        return PackedRows(numbers.tobytes())

    def __len__(self) -> int:
        return len(self.data) // (8 * self.width)

    def _item(self, number: int) -> IntRow_co:
        size = 8 * self.width
        row = memoryview(self.data)[number * size : (number + 1) * size].cast("q")
        return cast("IntRow_co", tuple(row))
