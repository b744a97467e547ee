"""The releases of Kafka that a broker may have, between bounds: what a command is held against."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Release: TypeAlias = tuple[int, int]
"""Major and minor."""


class Releases(NamedTuple):
    """The releases that may have written a log directory."""

    since: Release | None = None
    """The first; None if it is not known."""
    before: Release | None = None
    """The first after the last; None if it is not known."""

    def has(self, since: Release) -> bool | None:
        """Whether the broker has what came with a release; None if it is not known.

        >>> Releases(since=(3, 7)).has((3, 0)), Releases(since=(3, 7)).has((4, 1))
        (True, None)
        >>> Releases(before=(4, 0)).has((4, 1))
        False
        """
        if self.since is not None and self.since >= since:
            return True
        return False if self.before is not None and self.before <= since else None
