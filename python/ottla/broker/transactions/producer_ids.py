"""Producer ids: each is given out once in the life of a cluster (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE = 1000
"""Ids that are taken from the controller at once: what is left of a block is lost at a restart."""


class ProducerIds:
    """Gives out producer ids from blocks.

    Args:
        allocate: returns the first id of a block of `BLOCK_SIZE` ids that nobody else has or will
            have, and has made sure of that before it returns.
    """

    def __init__(self, allocate: Callable[[], int]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0

    def take(self) -> int:
        """Returns an id that was never given out."""
        if self._next >= self._end:
            self._next = self._allocate()
            self._end = self._next + BLOCK_SIZE
        taken = self._next
        self._next += 1
        return taken
