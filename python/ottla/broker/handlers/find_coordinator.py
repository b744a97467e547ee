"""FindCoordinator (key 10), versions 0 to 6: the broker that coordinates a group or a transaction.

Version 0 is of groups alone, 1 has the type of the key and an error message, 3 is flexible, 4 asks
for many keys at once (KIP-699), 5 has the error TRANSACTION_ABORTABLE (KIP-890), 6 has a key type
for share groups (KIP-932), which are not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, transactional_id_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.groups.serving import BrokerGroups
    from ottla.broker.transactions.service import BrokerTransactions
    from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

__all__ = ["handle", "refuse"]

_GROUP, _TRANSACTION = 0, 1
_MANY_KEYS = 4
_NOBODY = -1


def handle(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse:
    """Answers with the leader of the partition that a key belongs to: this broker.

    The coordinator's topic is created for whoever may ask.
    """
    if request.key_type not in {_GROUP, _TRANSACTION}:
        message = f"Unknown coordinator type {request.key_type}"
        return refuse(request, context, ErrorCode.INVALID_REQUEST, message)
    node = context.image.brokers[broker.node_id]
    host, port = node.endpoint(context.connection.listener)
    found = []
    for key in _keys(request, context):
        error = _error(broker, request.key_type, key, context)
        found.append(
            _refused(key, error)
            if error
            else Coordinator(key=key, node_id=node.node_id, host=host, port=port)
        )
    return _response(found, context)


def _error(broker: Broker, key_type: int, key: str, context: Context) -> int:
    coordinator: BrokerGroups | BrokerTransactions
    if key_type == _GROUP:
        error = group_error(broker, context, Operation.DESCRIBE, key)
        coordinator = broker.groups
    else:
        error = transactional_id_error(broker, context, key, Operation.DESCRIBE)
        coordinator = broker.transactions
    if error:
        return error
    coordinator.ensure_log(context.now_ms)
    is_led = not coordinator.partitions.error(key)
    return ErrorCode.NONE if is_led else ErrorCode.COORDINATOR_NOT_AVAILABLE


def refuse(
    request: FindCoordinatorRequest, context: Context, error: int, message: str | None
) -> FindCoordinatorResponse:
    """Answers with an error for each key."""
    keys = _keys(request, context)
    return _response([_refused(key, error, message) for key in keys], context)


def _keys(request: FindCoordinatorRequest, context: Context) -> list[str]:
    return request.coordinator_keys if context.version >= _MANY_KEYS else [request.key]


def _refused(key: str, error: int, message: str | None = None) -> Coordinator:
    return Coordinator(
        key=key, node_id=_NOBODY, port=_NOBODY, error_code=error, error_message=message
    )


def _response(found: list[Coordinator], context: Context) -> FindCoordinatorResponse:
    if context.version >= _MANY_KEYS:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
