"""CreatePartitions (key 37), versions 0 to 3: more partitions for a topic that is there.

Version 2 is flexible, 3 may answer that a quota is exceeded (KIP-599).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import topic_error
from ottla.broker.repeated import repeated
from ottla.broker.topics import MAX_PARTITIONS, TopicError, check_partitions_of_request
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: CreatePartitionsRequest, context: Context
) -> CreatePartitionsResponse:
    """Grows each topic that can grow."""
    try:
        check_partitions_of_request(sum(_added(topic, context) for topic in request.topics))
    except TopicError as refusal:
        return refuse(request, context, refusal.error, refusal.message)
    twice = repeated(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        result = CreatePartitionsTopicResult(name=topic.name)
        results.append(result)
        if topic.name in twice:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "Duplicate topic name."
            continue
        try:
            _grow(broker, topic, context, validate_only=request.validate_only)
        except TopicError as refusal:
            result.error_code, result.error_message = refusal.error, refusal.message
    return CreatePartitionsResponse(results=results)


def _added(asked: CreatePartitionsTopic, context: Context) -> int:
    """Returns how many partitions a topic is to get; none where it can not have so many."""
    topic = context.image.topics.get(asked.name)
    added = 0 if topic is None else asked.count - len(topic.partitions)
    return added if 0 < added <= MAX_PARTITIONS else 0


def _grow(
    broker: Broker, asked: CreatePartitionsTopic, context: Context, *, validate_only: bool
) -> None:
    error = topic_error(broker, context, Operation.ALTER, asked.name)
    if error:
        raise TopicError(error, "")
    topic = context.image.topics.get(asked.name)
    if topic is None:
        raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    added = asked.count - len(topic.partitions)
    if asked.assignments is not None and added > 0:
        known = set(context.image.brokers)
        if len(asked.assignments) != added or any(
            not each.broker_ids or not set(each.broker_ids) <= known for each in asked.assignments
        ):
            raise TopicError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but the assignments are "
                f"{[each.broker_ids for each in asked.assignments]} and the brokers "
                f"{sorted(known)}.",
            )
    if validate_only:
        broker.topics.check_growth(topic, asked.count)
    else:
        broker.topics.grow(topic, asked.count, context.now_ms)


def refuse(
    request: CreatePartitionsRequest, _context: Context, error: int, message: str | None
) -> CreatePartitionsResponse:
    """Answers with an error for each topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        ]
    )
