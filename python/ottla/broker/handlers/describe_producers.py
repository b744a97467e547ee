"""DescribeProducers (key 61), version 0: the producers that partitions know (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import find_partition
from ottla.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_producers import DescribeProducersRequest

__all__ = ["handle", "refuse"]

_NONE = -1


def handle(
    broker: Broker, request: DescribeProducersRequest, context: Context
) -> DescribeProducersResponse:
    """Answers with the producers of each partition that this broker leads."""

    def described(topic: str, index: int) -> PartitionResponse:
        partition, error = find_partition(broker, context, Operation.READ, topic, index)
        if partition is None:
            return PartitionResponse(partition_index=index, error_code=error)
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp_ms,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=_NONE
                    if producer.transaction_first_offset is None
                    else producer.transaction_first_offset,
                )
                for producer in broker.plane.producers(partition.handle)
            ],
        )

    return _response(request, described)


def refuse(
    request: DescribeProducersRequest, _context: Context, error: int, message: str | None
) -> DescribeProducersResponse:
    """Answers with an error for each partition."""
    return _response(
        request,
        lambda _topic, index: PartitionResponse(
            partition_index=index, error_code=error, error_message=message
        ),
    )


def _response(
    request: DescribeProducersRequest, partition_of: Callable[[str, int], PartitionResponse]
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[partition_of(topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
