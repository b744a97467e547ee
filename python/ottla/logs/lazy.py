"""Sequences whose items are made as they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from operator import eq
from typing import TypeVar, overload

Item_co = TypeVar("Item_co", covariant=True)


class LazySequence(Sequence[Item_co]):
    """Items that are held in another form; a slice, and a comparison, is of a tuple of them."""

    __slots__ = ()

    @abstractmethod
    def _item(self, number: int) -> Item_co:
        """Makes an item; `number` is less than the length."""

    @overload
    def __getitem__(self, index: int) -> Item_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item_co, ...]: ...
    def __getitem__(self, index: int | slice) -> Item_co | tuple[Item_co, ...]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return tuple(map(self._item, numbers))
        return self._item(numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (LazySequence, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
