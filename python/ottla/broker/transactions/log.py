"""Records of ``__transaction_state``, in Kafka's layouts: one key, the id; one value, its metadata.

The values' version 0 has no tags: it lacks what a producer needs whose epochs are used up, and is
written where ``transaction.version`` is 0 (KIP-890).
"""

from __future__ import annotations

from itertools import groupby

from ottla.broker.transactions.metadata import (
    STATE_NAMES,
    TransactionMetadata,
    TransactionState,
)
from ottla.errors import MalformedFrameError
from ottla.protocol.coordinator_record import key_bytes, read_key, read_value, value_bytes
from ottla.protocol.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

__all__ = ["key_of", "read_record", "value_of"]

_KEYS = (TransactionLogKey,)


def key_of(transactional_id: str) -> bytes:
    """Returns the key of an id's records."""
    return key_bytes(TransactionLogKey(transactional_id=transactional_id))


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
    return value_bytes(value, version)


def read_record(
    key: bytes | None, value: bytes | None
) -> tuple[str | None, TransactionMetadata | None]:
    """Returns the id of a record, and its metadata or `None` for a tombstone.

    Both are `None` for a record of another kind or of a later Kafka, as for one that is damaged:
    what the coordinator cannot read it leaves alone.
    """
    try:
        found_key = None if key is None else read_key(key, _KEYS)
        if not isinstance(found_key, TransactionLogKey):
            return None, None
        transactional_id = found_key.transactional_id
        if value is None:
            return transactional_id, None
        found = read_value(value, TransactionLogValue)
    except MalformedFrameError:
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
