"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: a member of a consumer group (KIP-848).

Version 1 has regular expressions, and members that make their ids themselves (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.group_calls import caller, speaks_of_consumer_groups
from ottla.broker.handlers.permission import group_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse:
    """Takes the member one step towards what it is to have."""
    if not speaks_of_consumer_groups(broker):
        return refuse(request, context, ErrorCode.UNSUPPORTED_VERSION, None)
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    return broker.groups.consumer_heartbeat(request, caller(context), context.now_ms)


def refuse(
    _request: ConsumerGroupHeartbeatRequest, _context: Context, error: int, message: str | None
) -> ConsumerGroupHeartbeatResponse:
    """Answers with an error."""
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
