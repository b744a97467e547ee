"""ListOffsets (key 2), versions 1 to 11: the offset of a time, or of an end of the log.

Version 2 has an isolation level, 4 leader epochs (KIP-320), 6 is flexible, 7 asks for the offset of
the largest timestamp (KIP-734), 8 and 9 for ends of the local and the tiered log (KIP-405,
KIP-1005), 10 has a time-out (KIP-1075), 11 asks for what is to be tiered next (KIP-1023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import find_partition
from ottla.broker.repeated import repeated
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest

__all__ = ["handle", "refuse"]

_LEAST_VERSIONS = {-3: 7, -4: 8, -5: 9, -6: 11}
"""From which version on a timestamp has a meaning of its own."""
_EARLIEST_OF_ALL = -6


def handle(broker: Broker, request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Answers for each partition by itself; one that is named twice is refused."""
    twice = repeated((t.name, p.partition_index) for t in request.topics for p in t.partitions)

    def found(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if (topic, asked.partition_index) in twice:
            return _failed(asked, ErrorCode.INVALID_REQUEST)
        least = _LEAST_VERSIONS.get(asked.timestamp, 0)
        if asked.timestamp < _EARLIEST_OF_ALL or context.version < least:
            return _failed(asked, ErrorCode.UNSUPPORTED_VERSION)
        partition, error = find_partition(
            broker,
            context,
            Operation.DESCRIBE,
            topic,
            asked.partition_index,
            leader_epoch=asked.current_leader_epoch,
        )
        if partition is None:
            return _failed(asked, error)
        offset, timestamp, leader_epoch = broker.plane.find_offset(
            partition.handle,
            asked.timestamp,
            request.isolation_level,
        )
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            offset=offset,
            timestamp=timestamp,
            leader_epoch=leader_epoch if context.version >= _HAS_LEADER_EPOCHS else -1,
        )

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[found(topic.name, each) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


_HAS_LEADER_EPOCHS = 4


def refuse(
    request: ListOffsetsRequest, _context: Context, error: int, _message: str | None
) -> ListOffsetsResponse:
    """Answers with an error for each partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(each, error) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(asked: ListOffsetsPartition, error: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
