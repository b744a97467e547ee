"""DescribeGroups (key 15), versions 0 to 6: classic groups with their members.

Version 3 may ask for authorized operations (KIP-430), 4 has static members (KIP-345), 5 is
flexible, 6 tells of a group that is not there by an error, and not by its state alone (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, group_operations
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_groups import DescribeGroupsRequest

__all__ = ["handle", "refuse"]

_NOT_FOUND = 6


def handle(
    broker: Broker, request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    """Answers for each group; one that is not there is dead."""
    found = []
    for group_id in request.groups:
        error = group_error(broker, context, Operation.DESCRIBE, group_id)
        described = _refused(group_id, error) if error else broker.groups.describe(group_id)
        if context.version < _NOT_FOUND:
            if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND and not error:
                described.error_code = 0
            described.error_message = None
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = group_operations(broker, context, group_id)
        found.append(described)
    return DescribeGroupsResponse(groups=found)


def refuse(
    request: DescribeGroupsRequest, context: Context, error: int, message: str | None
) -> DescribeGroupsResponse:
    """Answers with an error for each group."""
    shown = message if context.version >= _NOT_FOUND else None
    return DescribeGroupsResponse(
        groups=[_refused(group_id, error, shown) for group_id in request.groups]
    )


def _refused(group_id: str, error: int, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)
