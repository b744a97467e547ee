"""Bounds of the records that a query asks for."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """Bounds of the requested records, inclusive. All rows within them are returned, maybe more."""

    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None

    def meet(self, name: str, value: int) -> Bounds:
        """Returns these bounds narrowed by one more."""
        value = min(max(value, -(2**63)), 2**63 - 1)
        known = getattr(self, name)
        if known is not None:
            value = max(known, value) if name.startswith("min") else min(known, value)
        return self._replace(**{name: value})

    def within(self, min_offset: int | None, max_offset: int | None) -> Bounds:
        """Returns these bounds with bounds of offsets beside them."""
        low = self if min_offset is None else self.meet("min_offset", min_offset)
        return low if max_offset is None else low.meet("max_offset", max_offset)
