"""Heartbeat (key 12), versions 0 to 4: a member of a classic group is alive.

Version 3 has static members (KIP-345), 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error
from ottla.protocol.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.heartbeat import HeartbeatRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """Extends the session of the member; REBALANCE_IN_PROGRESS asks it to join again."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if not error:
        error = broker.groups.heartbeat(request, context.now_ms)
    return HeartbeatResponse(error_code=error)


def refuse(
    _request: HeartbeatRequest, _context: Context, error: int, _message: str | None
) -> HeartbeatResponse:
    """Answers with an error."""
    return HeartbeatResponse(error_code=error)
