"""DeleteRecords (key 21), versions 0 to 2: moves the log start offset (KIP-107).

An offset of -1 stands for the high watermark. Version 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import find_partition
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
    )

__all__ = ["handle", "refuse"]

_NO_OFFSET = -1


def handle(
    broker: Broker, request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse:
    """Deletes in each partition by itself; only topics that are deleted from can lose records."""
    answer = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(broker, context, topic.name, each) for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    # What is told to be deleted does not come back with a crash.
    broker.storage.keep_log_starts()
    return answer


def _delete(
    broker: Broker, context: Context, name: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    partition, error = find_partition(
        broker, context, Operation.DELETE, name, asked.partition_index
    )
    if partition is None:
        return _failed(asked, error)
    topic = context.image.topics[name]
    if topic.is_internal:
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if "delete" not in broker.config.topic_text("cleanup.policy", topic.configs):
        return _failed(asked, ErrorCode.POLICY_VIOLATION)
    start, _, high_watermark, _ = broker.plane.offsets(partition.handle)
    offset = high_watermark if asked.offset == _NO_OFFSET else asked.offset
    if not 0 <= offset <= high_watermark:
        return _failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
    low_watermark = start
    if offset > start:
        low_watermark = broker.plane.delete_records(partition.handle, offset)
        broker.moved((partition.handle,))
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark
    )


def refuse(
    request: DeleteRecordsRequest, _context: Context, error: int, _message: str | None
) -> DeleteRecordsResponse:
    """Answers with an error for each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_failed(each, error) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(asked: DeleteRecordsPartition, error: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=_NO_OFFSET, error_code=error
    )
