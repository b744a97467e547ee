"""TxnOffsetCommit (key 28), versions 0 to 6: a group has read so far, if a transaction commits.

Version 2 has leader epochs (KIP-320), 3 is flexible and names the member (KIP-447), 4 has the
error TRANSACTION_ABORTABLE, 5 adds the group to the transaction by itself (KIP-890), 6 names topics
by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.handlers.group_calls import group_fault
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.broker.transactions.verification import offsets_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse:
    """Commits each offset that is not refused, pending until the transaction ends."""
    error = group_fault(broker, context, request.group_id) or _transaction_error(
        broker, request, context
    )
    if error:
        return refuse(request, context, error, None)
    return broker.groups.commits.commit_transactional(request, context.now_ms)


class _Asked(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[tuple[str, int], ...]


def _transaction_error(broker: Broker, request: TxnOffsetCommitRequest, context: Context) -> int:
    """Asks the transaction coordinator whether the group's log is in the transaction (KIP-890)."""
    if not broker.config.flag("transaction.partition.verification.enable"):
        return ErrorCode.NONE
    asked = _Asked(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        ((CONSUMER_OFFSETS, broker.groups.partition_of(request.group_id)),),
    )
    return offsets_error(broker.transactions, asked, context.version, context.now_ms)


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
