"""TxnOffsetCommit (key 28), versions 0 to 6: a group has read so far, if a transaction commits.

Version 2 has leader epochs (KIP-320), 3 is flexible and names the member (KIP-447), 4 has the
error TRANSACTION_ABORTABLE, 5 adds the group to the transaction by itself (KIP-890), 6 names topics
by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.authorizer import Operation
from ottla.broker.context import LATER
from ottla.broker.coordinator_errors import error_of_log
from ottla.broker.handlers.permission import (
    group_error,
    topic_errors,
    transactional_id_error,
)
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.broker.transactions.verification import offsets_error, once_offsets_are_added
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

__all__ = ["handle", "refuse"]

# From this version on the group's partition joins the transaction by the commit itself.
_ADDS = 5
# Of the batch that the coordinator writes.
_BASE_SEQUENCE = 0


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse | Later:
    """Commits each offset that is not refused, pending until the transaction ends."""
    error = transactional_id_error(broker, context, request.transactional_id) or group_error(
        broker, context, Operation.READ, request.group_id
    )
    if error:
        return refuse(request, context, error, None)
    index = broker.groups.partitions.of(request.group_id)
    partition = context.image.partition(CONSUMER_OFFSETS, index)
    if partition is None:
        return refuse(request, context, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    try:
        guard = broker.plane.begin_verification(
            partition.handle,
            request.producer_id,
            request.producer_epoch,
            _BASE_SEQUENCE,
            now_ms=context.now_ms,
            transaction_version=2 if context.version >= _ADDS else 0,
        )
    except KafkaError as refusal:
        return refuse(request, context, error_of_log(refusal.error_code), None)
    if guard is not None:
        asked = _Asked(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(CONSUMER_OFFSETS, index)],
        )
        error = offsets_error(broker.transactions, asked, context.version, context.now_ms)
        if error:
            return refuse(request, context, error, None)
    refused = {}
    if broker.faults or broker.authorizer.is_enabled:
        refused = topic_errors(broker, context, Operation.READ, request.topics)

    def commit() -> TxnOffsetCommitResponse:
        return broker.groups.commits.commit_transactional(request, context.now_ms, guard, refused)

    def go_on(is_synced: bool) -> None:
        if is_synced:
            context.reply(commit())
        else:
            context.send(None)

    if guard is None:
        return commit()
    once_offsets_are_added(broker.transactions, request.transactional_id, context.version, go_on)
    return LATER


class _Asked(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: list[tuple[str, int]]


def refuse(
    request: TxnOffsetCommitRequest, _context: Context, error: int, _message: str | None
) -> TxnOffsetCommitResponse:
    """Answers with an error for each partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
