"""How long to wait before what failed is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Backoff"]

_JITTER: Final = 0.2
_MOST_DOUBLINGS: Final = 30


class Backoff:
    """Twice as long each time, up to a bound, and a fifth more or less by chance (KIP-580).

    Args:
        first_ms: after the first failure.
        most_ms: the bound.
        random: draws from [0, 1).
    """

    def __init__(self, first_ms: int, most_ms: int, random: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = max(first_ms, most_ms)
        self._random = random

    def delay_ms(self, failures: int) -> int:
        """Returns how long to wait after so many failures in a row."""
        doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
        delay = min(self._first_ms << doublings, self._most_ms)
        return int(delay * (1 + _JITTER * (2 * self._random() - 1)))
