"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where a leader epoch ended (KIP-101, KIP-320).

Version 2 says which leader epoch the client believes in, 3 tells followers from consumers, 4 is
flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import find_partition
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse:
    """Answers for each partition by itself."""

    def found(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        partition, error = find_partition(
            broker,
            context,
            Operation.DESCRIBE,
            topic,
            asked.partition,
            leader_epoch=asked.current_leader_epoch,
        )
        if partition is None:
            return EpochEndOffset(partition=asked.partition, error_code=error)
        leader_epoch, end_offset = broker.plane.end_of_epoch(partition.handle, asked.leader_epoch)
        return EpochEndOffset(
            partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset
        )

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[found(topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse(
    request: OffsetForLeaderEpochRequest, _context: Context, error: int, _message: str | None
) -> OffsetForLeaderEpochResponse:
    """Answers with an error for each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=each.partition, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
