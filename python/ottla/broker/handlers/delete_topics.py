"""DeleteTopics (key 20), versions 1 to 6.

Version 4 is flexible, 5 has an error message, 6 takes topic ids (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import may, topic_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.delete_topics import DeleteTopicsRequest

__all__ = ["handle", "refuse"]

_BY_ID = 6


def _asked(request: DeleteTopicsRequest, version: int) -> list[tuple[str | None, bytes]]:
    if version >= _BY_ID:
        return [(topic.name, topic.topic_id) for topic in request.topics]
    return [(name, NO_UUID) for name in request.topic_names]


def handle(broker: Broker, request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    """Deletes each topic that is there."""
    results, found = [], []
    for asked_name, asked_id in dict.fromkeys(_asked(request, context.version)):
        name, topic_id = asked_name, asked_id
        topic, error, message = None, 0, None
        if name is not None and topic_id != NO_UUID:
            error, message = ErrorCode.INVALID_REQUEST, "You may not specify both name and id."
        elif topic_id != NO_UUID:
            topic = context.image.topics_by_id.get(topic_id)
            error = 0 if topic else ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = context.image.topics.get(name or "")
            error = 0 if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is not None:
            name, topic_id = topic.name, topic.topic_id
            error = topic_error(broker, context, Operation.DELETE, name)
            if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED and asked_name is None:
                # Whoever may not describe a topic does not learn its name by its id.
                name = name if may(broker, context, Operation.DESCRIBE, name) else None
            if not error and not broker.config.flag("delete.topic.enable"):
                error, message = ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."
        if topic is not None and not error:
            found.append(topic.name)
        results.append(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error, error_message=message
            )
        )
    broker.topics.delete(found)
    return DeleteTopicsResponse(responses=results)


def refuse(
    request: DeleteTopicsRequest, context: Context, error: int, message: str | None
) -> DeleteTopicsResponse:
    """Answers with an error for each topic."""
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error, error_message=message
            )
            for name, topic_id in _asked(request, context.version)
        ]
    )
