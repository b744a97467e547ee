"""Settings and bounds of the transaction coordinator."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["EXPIRY_RETRY_MS", "MARKER_RETRY_MS", "MAX_TRANSACTIONAL_IDS", "TransactionSettings"]

MAX_TRANSACTIONAL_IDS: Final = 100_000
"""Each takes about 1 KiB of memory with its place in the log; more is a leak of a client's."""

MARKER_RETRY_MS: Final = 100
"""After that time a marker is written again that a partition did not take."""

EXPIRY_RETRY_MS: Final = 60_000
"""After that time an id expires whose tombstone the log did not take."""


class TransactionSettings(NamedTuple):
    """Settings by Kafka's names, with Kafka's defaults.

    Attributes:
        max_timeout_ms: ``transaction.max.timeout.ms``.
        id_expiration_ms: ``transactional.id.expiration.ms``, since the last change of an id.
        partition_count: ``transaction.state.log.num.partitions``.
        transaction_version: the feature level ``transaction.version`` (KIP-890): 0 writes values of
            version 0 to the log, 1 of version 1; 2 raises epochs with every end.
    """

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    partition_count: int = 50
    transaction_version: int = 2
