"""DeleteGroups (key 42), versions 0 to 3: groups that nobody is in, with their offsets (KIP-229).

Version 2 is flexible, 3 has an error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.delete_groups import DeleteGroupsRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse:
    """Deletes each group that is empty."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id,
                error_code=group_error(broker, context, Operation.DELETE, group_id)
                or broker.groups.delete(group_id, context.now_ms),
            )
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )


def refuse(
    request: DeleteGroupsRequest, _context: Context, error: int, message: str | None
) -> DeleteGroupsResponse:
    """Answers with an error for each group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error, error_message=message)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
