"""AddOffsetsToTxn (key 25), versions 0 to 4: the offsets of a group join a transaction (KIP-98).

Version 1 throttles after the answer, 2 knows PRODUCER_FENCED (KIP-588), 3 is flexible, 4 knows
TRANSACTION_ABORTABLE (KIP-890). Producers of transaction version 2 do without: TxnOffsetCommit 5
adds the group's partition by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, transactional_id_error
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.broker.transactions.error_codes import known_to
from ottla.protocol.api_key import ApiKey
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: AddOffsetsToTxnRequest, context: Context
) -> AddOffsetsToTxnResponse:
    """Adds the partition of ``__consumer_offsets`` that the group belongs to."""
    name, group = request.transactional_id, request.group_id
    error = transactional_id_error(broker, context, name) or group_error(
        broker, context, Operation.READ, group
    )
    if error:
        return refuse(request, context, error, None)
    error = broker.transactions.add_partitions(
        name,
        request.producer_id,
        request.producer_epoch,
        [(CONSUMER_OFFSETS, broker.groups.partitions.of(group))],
        context.now_ms,
    )
    return AddOffsetsToTxnResponse(
        error_code=known_to(ApiKey.ADD_OFFSETS_TO_TXN, context.version, error)
    )


def refuse(
    _request: AddOffsetsToTxnRequest, _context: Context, error: int, _message: str | None
) -> AddOffsetsToTxnResponse:
    """Answers with an error."""
    return AddOffsetsToTxnResponse(error_code=error)
