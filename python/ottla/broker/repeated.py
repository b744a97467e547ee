"""Names that a request has more than once, however many it has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    Name = TypeVar("Name", bound=Hashable)

__all__ = ["repeated"]


def repeated(names: Iterable[Name]) -> set[Name]:
    """Returns the names that are there twice or more often.

    >>> sorted(repeated(["orders", "users", "orders"]))
    ['orders']
    """
    return {name for name, count in Counter(names).items() if count > 1}
