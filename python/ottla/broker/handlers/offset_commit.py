"""OffsetCommit (key 8), versions 2 to 10: a group has read so far.

Versions 2 to 4 say how long an offset is kept, 6 has leader epochs (KIP-320), 7 static members
(KIP-345), 8 is flexible, 9 is of consumer groups, too (KIP-848), 10 names topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import group_error, topic_errors
from ottla.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_commit import OffsetCommitRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse:
    """Commits each offset that is not refused, all of them in one batch."""
    error = group_error(broker, context, Operation.READ, request.group_id)
    if error:
        return refuse(request, context, error, None)
    refused = {}
    if broker.faults or broker.authorizer.is_enabled:
        refused = topic_errors(broker, context, Operation.READ, request.topics)
    return broker.groups.commits.commit(request, context.version, context.now_ms, refused)


def refuse(
    request: OffsetCommitRequest, _context: Context, error: int, _message: str | None
) -> OffsetCommitResponse:
    """Answers with an error for each partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
