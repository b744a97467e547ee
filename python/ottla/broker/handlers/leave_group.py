"""LeaveGroup (key 13), versions 0 to 5: members leave a classic group, or are removed from it.

Version 3 names many members, also by instance id (KIP-345), and answers for each; 4 is flexible, 5
has a reason (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.groups.error import GroupError
from ottla.broker.handlers.permission import group_error
from ottla.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.leave_group import LeaveGroupRequest

__all__ = ["handle", "refuse"]

_MANY_MEMBERS = 3


def handle(broker: Broker, request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    """Removes members; before version 3 the error of the only one is that of the answer."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    identities = request.members
    if context.version < _MANY_MEMBERS:
        identities = [MemberIdentity(member_id=request.member_id)]
    try:
        codes = broker.groups.leave(request.group_id, identities, context.now_ms)
    except GroupError as refusal:
        return refuse(request, context, refusal.error_code, None)
    if context.version < _MANY_MEMBERS:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=code,
            )
            for identity, code in zip(identities, codes, strict=True)
        ]
    )


def refuse(
    _request: LeaveGroupRequest, _context: Context, error: int, _message: str | None
) -> LeaveGroupResponse:
    """Answers with an error."""
    return LeaveGroupResponse(error_code=error)
