"""DescribeTopicPartitions (key 75), version 0: topics page by page (KIP-966).

Topics are answered in the order of their names. What does not fit into the limit of partitions is
named by a cursor, with which the client goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import may, topic_error, topic_operations
from ottla.broker.topics import TopicError, check_name
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.image import Partition
    from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Answers with one page."""
    image, cursor = context.image, request.cursor
    first = "" if cursor is None else cursor.topic_name
    asked = {topic.name for topic in request.topics} or {
        name for name in image.topics if may(broker, context, Operation.DESCRIBE, name)
    }
    left = min(
        max(request.response_partition_limit, 1),
        broker.config.number("max.request.partition.size.limit"),
    )
    response = DescribeTopicPartitionsResponse()
    for name in sorted(name for name in asked if name >= first):
        topic = image.topics.get(name)
        error = topic_error(broker, context, Operation.DESCRIBE, name)
        if error or topic is None:
            response.topics.append(_failed(name, error or _error_of(name)))
            continue
        begin = 0
        if cursor is not None and name == cursor.topic_name:
            begin = max(cursor.partition_index, 0)
        partitions = topic.partitions[begin : begin + left]
        if left <= 0 or (topic.partitions[begin:] and not partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=begin)
            break
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                topic_authorized_operations=topic_operations(broker, context, name),
                partitions=[_described(partition) for partition in partitions],
            )
        )
        left -= len(partitions)
        if begin + len(partitions) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=begin + len(partitions))
            break
    return response


def refuse(
    request: DescribeTopicPartitionsRequest, _context: Context, error: int, _message: str | None
) -> DescribeTopicPartitionsResponse:
    """Answers with an error for each topic."""
    return DescribeTopicPartitionsResponse(
        topics=[_failed(topic.name, error) for topic in request.topics]
    )


def _error_of(name: str) -> int:
    try:
        check_name(name)
    except TopicError as refusal:
        return refusal.error
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _failed(name: str, error: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=error)


def _described(partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition_index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
