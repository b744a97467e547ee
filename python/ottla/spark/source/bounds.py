"""Bounds of the records that a query asks for."""

from __future__ import annotations

from typing import NamedTuple

from ottla.logs.names import MAX_OFFSET

# One less is a bound that is behind it, in 64 bits.
MIN_TIMESTAMP = -(2**63) + 1


class Bounds(NamedTuple):
    """Bounds of the requested records, inclusive. All rows within them are returned, maybe more."""

    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None

    @classmethod
    def between(
        cls,
        from_offset: int | None,
        to_offset: int | None,
        from_timestamp: int | None,
        to_timestamp: int | None,
    ) -> Bounds:
        """Returns bounds from the first that is asked for to before the last.

        >>> Bounds.between(5, 9, None, None)
        Bounds(min_offset=5, max_offset=8, min_timestamp=None, max_timestamp=None)

        Raises:
            ValueError: one of them is no offset or timestamp.
        """
        given = {
            "from_offset": from_offset,
            "to_offset": to_offset,
            "from_timestamp": from_timestamp,
            "to_timestamp": to_timestamp,
        }
        for name, value in given.items():
            lowest = 0 if name.endswith("offset") else MIN_TIMESTAMP
            if value is not None and not lowest <= value <= MAX_OFFSET:
                raise ValueError(f"{name} is {value}, not from {lowest} to {MAX_OFFSET}")
        return cls(
            from_offset,
            None if to_offset is None else to_offset - 1,
            from_timestamp,
            None if to_timestamp is None else to_timestamp - 1,
        )

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


EVERYTHING = Bounds()
