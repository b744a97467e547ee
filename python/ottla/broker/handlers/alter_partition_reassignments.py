"""AlterPartitionReassignments (key 45), versions 0 and 1: moves replicas to brokers (KIP-455).

Version 1 may forbid a change of the replication factor (KIP-860). There is one broker: to be
assigned to it changes nothing, so nothing is ever under way that could be cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.broker.repeated import repeated
from ottla.broker.topics import TopicError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.image import Image
    from ottla.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """Answers for each partition: its replicas are where they are to be, or cannot be there."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)

    def outcome(topic: str, asked: ReassignablePartition) -> tuple[int, str | None]:
        fault = partition_fault(broker, context, topic, asked.partition_index)
        if fault:
            return fault, None
        try:
            _check(context.image, topic, asked)
        except TopicError as refusal:
            return refusal.error, refusal.message
        return ErrorCode.NONE, None

    return _response(request, outcome)


def _check(image: Image, topic: str, asked: ReassignablePartition) -> None:
    """Refuses what cannot be done; a replication factor of one cannot be changed either."""
    index, replicas = asked.partition_index, asked.replicas
    if topic not in image.topics:
        message = f"Unable to find a topic named {topic}."
        raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if image.partition(topic, index) is None:
        message = f"Unable to find partition {topic}:{index}."
        raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if replicas is None:
        message = "No partition reassignment is in progress."
        raise TopicError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
    assignment = "The manual partition assignment includes"
    why = None
    unknown = [broker for broker in replicas if broker not in image.brokers]
    twice = repeated(replicas)
    if not replicas:
        why = f"{assignment} an empty replica list."
    elif twice:
        first = next(broker for broker in replicas if broker in twice)
        why = f"{assignment} the broker {first} more than once."
    elif unknown:
        why = f"{assignment} broker {unknown[0]}, but no such broker is registered."
    if why is not None:
        raise TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def refuse(
    request: AlterPartitionReassignmentsRequest,
    _context: Context,
    error: int,
    message: str | None,
) -> AlterPartitionReassignmentsResponse:
    """Answers with an error, and with the same for each partition."""
    response = _response(request, lambda _topic, _asked: (error, message))
    response.error_code, response.error_message = error, message
    return response


def _response(
    request: AlterPartitionReassignmentsRequest,
    outcome: Callable[[str, ReassignablePartition], tuple[int, str | None]],
) -> AlterPartitionReassignmentsResponse:
    responses = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            code, message = outcome(topic.name, asked)
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=asked.partition_index, error_code=code, error_message=message
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=responses,
    )
