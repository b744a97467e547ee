"""OffsetDelete (key 47), version 0, never flexible: offsets of topics that a group reads no more.

An administrator's request (KIP-496).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, may
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestTopic,
    )

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    """Deletes each offset that is not refused, all of them in one batch."""
    error = group_error(broker, context, Operation.DELETE, request.group_id)
    if error:
        return refuse(request, context, error, None)
    denied = [
        topic for topic in request.topics if not may(broker, context, Operation.READ, topic.name)
    ]
    request.topics = [topic for topic in request.topics if topic not in denied]
    answer = broker.groups.commits.delete(request, context.now_ms)
    if not answer.error_code:
        answer.topics += [_denied(topic) for topic in denied]
    return answer


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for each in topic.partitions
        ],
    )


def refuse(
    _request: OffsetDeleteRequest, _context: Context, error: int, _message: str | None
) -> OffsetDeleteResponse:
    """Answers with an error."""
    return OffsetDeleteResponse(error_code=error)
