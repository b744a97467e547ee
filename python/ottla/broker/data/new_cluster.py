"""What a new cluster begins with: levels of features, as `kafka-storage format` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.data.metadata_snapshot import snapshot_bytes
from ottla.broker.features import FEATURES, METADATA_VERSION
from ottla.protocol.messages.cluster_metadata import FeatureLevelRecord
from ottla.protocol.metadata_record import record_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["bootstrap_snapshot"]

_KAFKA_4: Final = (4, 0)
_LEVEL_OF_4_0: Final = 25
"""The highest that 4.0 knows, and with it everything later."""
_LEVEL_OF_3_9: Final = 21
"""The last one before Kafka 4."""


def bootstrap_snapshot(release: tuple[int, int] | None, now_ms: int) -> bytes:
    """Returns a ``bootstrap.checkpoint`` that a release and all later ones can start on."""
    values = [
        record_bytes(FeatureLevelRecord(name=name, feature_level=level))
        for name, level in _levels(release).items()
    ]
    return snapshot_bytes(values, now_ms)


def _levels(release: tuple[int, int] | None) -> Mapping[str, int]:
    if release is not None and release < _KAFKA_4:
        return {METADATA_VERSION: _LEVEL_OF_3_9}
    return {METADATA_VERSION: _LEVEL_OF_4_0, **{each.name: each.level for each in FEATURES}}
