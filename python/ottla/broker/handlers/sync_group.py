"""SyncGroup (key 14), versions 0 to 5: a member of a classic group asks for its assignment.

Version 3 has static members (KIP-345), 4 is flexible, 5 names the protocol, which has to be the
group's (KIP-559).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.context import LATER
from ottla.broker.handlers.permission import group_error
from ottla.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.protocol.messages.sync_group import SyncGroupRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: SyncGroupRequest, context: Context
) -> SyncGroupResponse | Later:
    """Answers when the leader has assigned, or at once if it is refused."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    broker.groups.sync(request, context.now_ms, context.reply)
    return LATER


def refuse(
    _request: SyncGroupRequest, _context: Context, error: int, _message: str | None
) -> SyncGroupResponse:
    """Answers with an error."""
    return SyncGroupResponse(error_code=error)
