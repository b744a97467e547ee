"""Records of ``__transaction_state``, in Kafka's layouts: one key, the id; one value, its metadata.

The values' version 0 has no tags: it lacks what a producer needs whose epochs are used up, and is
written where ``transaction.version`` is 0 (KIP-890).
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Final

from ottla.broker.transactions.metadata import (
    STATE_NAMES,
    TransactionMetadata,
    TransactionState,
)
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

__all__ = ["coordinator_partition", "key_of", "read_record", "value_of"]

_VERSION: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_VALUE_VERSIONS: Final = (0, 1)


def coordinator_partition(name: str, partition_count: int) -> int:
    """Returns the partition of a coordinator's topic that a group or transactional id belongs to.

    Java's hash of the text, without its sign, modulo the number of partitions. The one hash whose
    sign cannot be taken away, -2147483648, counts as 0.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    found = 0
    for (unit,) in struct.iter_unpack(">H", units):
        found = (31 * found + unit) & 0xFFFF_FFFF
    if found >= 1 << 31:
        found = (1 << 32) - found
    return 0 if found == 1 << 31 else found % partition_count


def key_of(transactional_id: str) -> bytes:
    """Returns the key of an id's records."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(_KEY_VERSION) + b"".join(encode(TransactionLogKey, _KEY_VERSION)(key))


def value_of(metadata: TransactionMetadata, transaction_version: int) -> bytes:
    """Returns the value of a record, of version 1 from ``transaction.version`` 1 on."""
    version = min(transaction_version, 1)
    partitions = None
    if metadata.state != TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=[index for _, index in of_topic])
            for topic, of_topic in groupby(sorted(metadata.partitions), key=lambda name: name[0])
        ]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.transaction_version
    return _VERSION.pack(version) + b"".join(encode(TransactionLogValue, version)(value))


def read_record(
    key: bytes | None, value: bytes | None
) -> tuple[str | None, TransactionMetadata | None]:
    """Returns the id of a record, and its metadata or `None` for a tombstone.

    Both are `None` for a record of another kind or of a later Kafka, as for one that is damaged:
    what the coordinator cannot read it leaves alone.
    """
    try:
        if key is None or _VERSION.unpack_from(key)[0] != _KEY_VERSION:
            return None, None
        transactional_id = decode(TransactionLogKey, _KEY_VERSION)(key, 2)[0].transactional_id
        if value is None:
            return transactional_id, None
        (version,) = _VERSION.unpack_from(value)
        if version not in _VALUE_VERSIONS:
            return None, None
        found = decode(TransactionLogValue, version)(value, 2)[0]
    except (MalformedFrameError, struct.error):
        return None, None
    if not 0 <= found.transaction_status < len(STATE_NAMES):
        return None, None
    return transactional_id, _metadata(transactional_id, found)


def _metadata(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=value.transaction_status,
        partitions=frozenset(
            (of_topic.topic, index)
            for of_topic in value.transaction_partitions or ()
            for index in of_topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        transaction_version=value.client_transaction_version,
    )
