"""OffsetDelete (key 47), version 0, never flexible: offsets of topics that a group reads no more.

An administrator's request (KIP-496).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, topic_error
from ottla.protocol.messages.offset_delete import OffsetDeleteResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_delete import OffsetDeleteRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    """Deletes each offset that is not refused, all of them in one batch."""
    error = group_error(broker, context, Operation.DELETE, request.group_id)
    # A fault of a partition is none where nothing of its group is looked at.
    error = error or broker.groups.commits.delete_error(request.group_id)
    if error:
        return refuse(request, context, error, None)
    refused = {}
    if broker.faults or broker.authorizer.is_enabled:
        refused = {
            (topic.name, each.partition_index): topic_error(
                broker, context, Operation.READ, topic.name, each.partition_index
            )
            for topic in request.topics
            for each in topic.partitions
        }
    return broker.groups.commits.delete(request, context.now_ms, refused)


def refuse(
    _request: OffsetDeleteRequest, _context: Context, error: int, _message: str | None
) -> OffsetDeleteResponse:
    """Answers with an error."""
    return OffsetDeleteResponse(error_code=error)
