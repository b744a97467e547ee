"""DescribeTransactions (key 65), version 0: what the coordinator knows of some ids (KIP-664)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import topic_error, transactional_id_error
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: DescribeTransactionsRequest, context: Context
) -> DescribeTransactionsResponse:
    """Answers with the state of each id; topics that the client may not describe are left out."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _state(broker, name, context) for name in dict.fromkeys(request.transactional_ids)
        ]
    )


def _state(broker: Broker, name: str, context: Context) -> TransactionState:
    error = transactional_id_error(broker, context, name, Operation.DESCRIBE)
    known = error or broker.transactions.describe(name)
    if isinstance(known, int):
        return TransactionState(error_code=known, transactional_id=name)
    by_topic = groupby(sorted(known.partitions), key=lambda partition: partition[0])
    return TransactionState(
        transactional_id=name,
        transaction_state=known.state_name,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[index for _, index in partitions])
            for topic, partitions in by_topic
            if not topic_error(broker, context, Operation.DESCRIBE, topic)
        ],
    )


def refuse(
    request: DescribeTransactionsRequest, _context: Context, error: int, _message: str | None
) -> DescribeTransactionsResponse:
    """Answers with an error for each id."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(error_code=error, transactional_id=name)
            for name in request.transactional_ids
        ]
    )
