"""InitProducerId (key 22), versions 0 to 5: an id and epoch to produce with (KIP-98).

Version 1 throttles after the answer, 2 is flexible, 3 has a producer resume with its id and epoch
(KIP-360), 4 knows PRODUCER_FENCED (KIP-588), 5 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation, ResourceType
from ottla.broker.handlers.permission import cluster_error, transactional_id_error
from ottla.broker.transactions.error_codes import known_to
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.init_producer_id import InitProducerIdRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse:
    """Answers with an id and epoch."""
    name = request.transactional_id
    if name is None:
        error = _idempotence_error(broker, context)
    else:
        error = transactional_id_error(broker, context, name)
    if error:
        return refuse(request, context, error, None)
    answer = broker.transactions.init_producer_id(
        name,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
        context.now_ms,
    )
    return InitProducerIdResponse(
        error_code=known_to(ApiKey.INIT_PRODUCER_ID, context.version, answer.error_code),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def _idempotence_error(broker: Broker, context: Context) -> int:
    """Whoever may write to any topic may do so idempotently (KIP-679)."""
    writes = broker.authorizer.allows_any(
        context.principal, context.connection.host, Operation.WRITE, ResourceType.TOPIC
    )
    if writes:
        return ErrorCode.NONE
    return cluster_error(broker, context, Operation.IDEMPOTENT_WRITE)


def refuse(
    _request: InitProducerIdRequest, _context: Context, error: int, _message: str | None
) -> InitProducerIdResponse:
    """Answers with an error."""
    return InitProducerIdResponse(error_code=error, producer_epoch=-1)
