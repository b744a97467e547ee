"""Features of the cluster (KIP-584), as ApiVersions tells them to clients."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FEATURES", "Feature"]


class Feature(NamedTuple):
    """A feature, the levels that are supported, and the one that is in force."""

    name: str
    lowest: int
    highest: int
    level: int


FEATURES: Final = (
    # Consumer groups (KIP-848).
    Feature("group.version", 0, 1, 1),
    # Transactions whose producers get a new epoch at each end (KIP-890).
    Feature("transaction.version", 0, 2, 2),
)
"""A client takes the protocols of both from the level in force."""
