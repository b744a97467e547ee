"""Features of the cluster (KIP-584), as ApiVersions tells them to clients."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FEATURES", "METADATA_VERSION", "Feature", "FeatureError", "level_of", "updated"]

METADATA_VERSION: Final = "metadata.version"
"""The feature by which records of the cluster's metadata are read; a controller's own."""


class Feature(NamedTuple):
    """A feature, the levels that are supported, and the one that is in force."""

    name: str
    lowest: int
    highest: int
    level: int


FEATURES: Final[tuple[Feature, ...]] = (
    # Consumer groups (KIP-848).
    Feature("group.version", 0, 1, 1),
    # Transactions whose producers get a new epoch at each end (KIP-890).
    Feature("transaction.version", 0, 2, 2),
)
"""A client takes the protocols of both from the level in force."""

_RAISE, _LOWER, _LOWER_UNSAFELY = 1, 2, 3


class FeatureError(Exception):
    """A level that a feature cannot have."""


def level_of(features: tuple[Feature, ...], name: str) -> int:
    """Returns the level of a feature that is in force; 0 of one that is not known."""
    return next((feature.level for feature in features if feature.name == name), 0)


def updated(features: tuple[Feature, ...], name: str, level: int, kind: int) -> tuple[Feature, ...]:
    """Returns features with another level of one.

    Args:
        kind: Kafka's number of the kind of change: 1 raises, 2 lowers, 3 lowers come what may.

    Raises:
        FeatureError: it does not have that level, or it is changed the other way.
    """
    feature = next((each for each in features if each.name == name), None)
    why = None
    if kind not in {_RAISE, _LOWER, _LOWER_UNSAFELY}:
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    elif feature is None:
        why = "This broker does not support this feature."
    elif not feature.lowest <= level <= feature.highest:
        why = f"This broker only supports versions {feature.lowest}-{feature.highest}"
    elif level < feature.level and kind == _RAISE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > feature.level and kind != _RAISE:
        why = "Can't downgrade to a newer version."
    if why is not None:
        raise FeatureError(f"Invalid update version {level} for feature {name}. {why}")
    return tuple(each._replace(level=level) if each.name == name else each for each in features)
