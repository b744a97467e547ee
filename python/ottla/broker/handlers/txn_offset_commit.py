"""TxnOffsetCommit (key 28), versions 0 to 6: a group has read so far, if a transaction commits.

Version 2 has leader epochs (KIP-320), 3 is flexible and names the member (KIP-447), 4 has the
error TRANSACTION_ABORTABLE, 5 adds the group to the transaction by itself (KIP-890), 6 names topics
by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import (
    group_error,
    may,
    name_of,
    transactional_id_error,
)
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.broker.transactions.verification import offsets_error
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.transactions.metadata import TopicPartition
    from ottla.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
        TxnOffsetCommitRequestTopic,
    )

__all__ = ["handle", "refuse"]

_ADDS_BY_ITSELF = 5
# Of the batch that the coordinator writes.
_BASE_SEQUENCE = 0


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse:
    """Commits each offset that is not refused, pending until the transaction ends."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    error = transactional_id_error(broker, context, request.transactional_id) or _transaction_error(
        broker, request, context
    )
    if error:
        return refuse(request, context, error, None)
    denied = [
        topic
        for topic in request.topics
        if not may(broker, context, Operation.READ, name_of(context, topic.name, topic.topic_id))
    ]
    request.topics = [topic for topic in request.topics if topic not in denied]
    answer = broker.groups.commits.commit_transactional(request, context.now_ms)
    answer.topics += [_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied]
    return answer


class _Asked(NamedTuple):
    """What the coordinator of the transaction is asked."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


def _transaction_error(broker: Broker, request: TxnOffsetCommitRequest, context: Context) -> int:
    """Asks whether the offsets of the group are part of the transaction, or adds them (KIP-890)."""
    verifies = broker.config.flag("transaction.partition.verification.enable")
    if context.version < _ADDS_BY_ITSELF and not verifies:
        return ErrorCode.NONE
    asked = _Asked(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        ((CONSUMER_OFFSETS, broker.groups.partition_of(request.group_id)),),
    )
    return _epoch_error(broker, request, context) or offsets_error(
        broker.transactions, asked, context.version, context.now_ms
    )


def _epoch_error(broker: Broker, request: TxnOffsetCommitRequest, context: Context) -> int:
    """Asks the partition of the group's log whether the producer's epoch is over."""
    topic = broker.topics.internal(CONSUMER_OFFSETS, context.now_ms)
    partition = broker.groups.partition_of(request.group_id)
    try:
        broker.plane.begin_verification(
            topic.partitions[partition].handle,
            request.producer_id,
            request.producer_epoch,
            _BASE_SEQUENCE,
            now_ms=context.now_ms,
        )
    except KafkaError as refusal:
        return refusal.error_code
    return ErrorCode.NONE


def refuse(
    request: TxnOffsetCommitRequest, _context: Context, error: int, _message: str | None
) -> TxnOffsetCommitResponse:
    """Answers with an error for each partition."""
    return TxnOffsetCommitResponse(topics=[_failed(topic, error) for topic in request.topics])


def _failed(topic: TxnOffsetCommitRequestTopic, error: int) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )
