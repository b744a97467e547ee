"""ListGroups (key 16), versions 0 to 5: the groups that a broker coordinates.

Version 3 is flexible, 4 has states and a filter for them (KIP-518), 5 the same of types (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation, ResourceType
from ottla.broker.handlers.permission import cluster_error, is_visible
from ottla.protocol.messages.list_groups import ListGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.list_groups import ListGroupsRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """Answers with the groups that pass both filters, and that the client may describe."""
    groups = broker.groups.listed(request.states_filter, request.types_filter)
    if cluster_error(broker, context, Operation.DESCRIBE):
        groups = [
            group
            for group in groups
            if is_visible(broker, context, ResourceType.GROUP, group.group_id)
        ]
    return ListGroupsResponse(groups=groups)


def refuse(
    _request: ListGroupsRequest, _context: Context, error: int, _message: str | None
) -> ListGroupsResponse:
    """Answers with an error."""
    return ListGroupsResponse(error_code=error)
