"""JoinGroup (key 11), versions 0 to 9: a member of a classic group asks for the next generation.

Version 1 has a rebalance time-out of its own, 4 gives a member its id before it joins (KIP-394),
5 has static members (KIP-345), 6 is flexible, 7 names the type of protocol (KIP-559), 8 has a
reason (KIP-800), 9 spares a static leader that returns the assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.context import LATER
from ottla.broker.groups.classic import refused_join
from ottla.broker.handlers.group_calls import caller
from ottla.broker.handlers.permission import group_error

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: JoinGroupRequest, context: Context
) -> JoinGroupResponse | Later:
    """Answers when the generation begins, or at once if it is refused."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    broker.groups.join(request, caller(context), context.now_ms, context.reply)
    return LATER


def refuse(
    request: JoinGroupRequest, _context: Context, error: int, _message: str | None
) -> JoinGroupResponse:
    """Answers with an error."""
    return refused_join(request.member_id, error)
