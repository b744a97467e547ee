"""ListTransactions (key 66), versions 0 to 2: the ids that this broker coordinates (KIP-664).

Version 1 filters by how long a transaction takes already (KIP-994), 2 by a regular expression that
an id has to match as a whole (KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import ResourceType
from ottla.broker.handlers.permission import is_visible
from ottla.broker.transactions.metadata import STATE_NAMES
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.list_transactions import (
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.transactions.metadata import TransactionMetadata
    from ottla.protocol.messages.list_transactions import ListTransactionsRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: ListTransactionsRequest, context: Context
) -> ListTransactionsResponse:
    """Answers with the ids that all filters take, and with names of states that there are not."""
    matched = None
    if request.transactional_id_pattern:
        # Only clients that filter by one pay for it.
        from ottla.broker.groups.pattern_parser import PatternError  # noqa: PLC0415
        from ottla.broker.groups.topic_pattern import text_pattern  # noqa: PLC0415

        try:
            ids = (known.transactional_id for known in broker.transactions.transactions())
            matched = set(text_pattern(request.transactional_id_pattern).matching(ids))
        except PatternError:
            return refuse(request, context, ErrorCode.INVALID_REGULAR_EXPRESSION, None)
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATE_NAMES],
        transaction_states=[
            TransactionState(
                transactional_id=known.transactional_id,
                producer_id=known.producer_id,
                transaction_state=known.state_name,
            )
            for known in broker.transactions.transactions()
            if _is_taken(known, request, context.now_ms)
            and (matched is None or known.transactional_id in matched)
            and is_visible(broker, context, ResourceType.TRANSACTIONAL_ID, known.transactional_id)
        ],
    )


def _is_taken(known: TransactionMetadata, request: ListTransactionsRequest, now_ms: int) -> bool:
    if request.state_filters and known.state_name not in request.state_filters:
        return False
    if request.producer_id_filters and known.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter >= 0:
        return not known.is_idle and now_ms - known.start_ms > request.duration_filter
    return True


def refuse(
    _request: ListTransactionsRequest, _context: Context, error: int, _message: str | None
) -> ListTransactionsResponse:
    """Answers with an error."""
    return ListTransactionsResponse(error_code=error)
