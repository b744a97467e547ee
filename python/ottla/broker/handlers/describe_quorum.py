"""DescribeQuorum (key 55), versions 0 to 2: voters and observers of the metadata log (KIP-595).

Version 1 has times (KIP-836), 2 directory ids, nodes and messages (KIP-853). This broker controls
itself: it is the one voter, who has seen everything. Offsets are those of its metadata log; one in
memory has none, and so nothing in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest

__all__ = ["handle", "refuse"]

_METADATA = ("__cluster_metadata", 0)
_NODES = 2


def handle(
    broker: Broker, request: DescribeQuorumRequest, context: Context
) -> DescribeQuorumResponse:
    """Answers with the one voter, where the metadata log alone is asked about."""
    error = cluster_error(broker, context, Operation.DESCRIBE)
    if error:
        return refuse(request, context, error, None)
    asked = [
        (topic.topic_name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    if asked != [_METADATA]:
        return _failed(request, context, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    fault = partition_fault(broker, context, *_METADATA)
    if fault:
        return _failed(request, context, fault)
    position = broker.keeper.metadata_position()
    voter = ReplicaState(
        replica_id=broker.node_id,
        log_end_offset=position.end_offset,
        last_fetch_timestamp=context.now_ms,
        last_caught_up_timestamp=context.now_ms,
    )
    name, index = _METADATA
    partition = ResponsePartitionData(
        partition_index=index,
        error_message=None,
        leader_id=broker.node_id,
        leader_epoch=position.leader_epoch,
        high_watermark=position.end_offset,
        current_voters=[voter],
    )
    if context.version >= _NODES:
        voter.replica_directory_id = position.directory_id
    response = DescribeQuorumResponse(
        error_message=None, topics=[ResponseTopicData(topic_name=name, partitions=[partition])]
    )
    if context.version >= _NODES:
        endpoints = context.image.brokers[broker.node_id].endpoints
        listeners = [
            Listener(name=listener, host=host, port=port)
            for listener, (host, port) in endpoints.items()
        ]
        response.nodes = [Node(node_id=broker.node_id, listeners=listeners)]
    return response


def _failed(request: DescribeQuorumRequest, context: Context, error: int) -> DescribeQuorumResponse:
    """Answers with an error for each partition alone."""
    response = refuse(request, context, error, None)
    response.error_code = 0
    return response


def refuse(
    request: DescribeQuorumRequest, _context: Context, error: int, message: str | None
) -> DescribeQuorumResponse:
    """Answers with an error, and with the same for each partition."""
    return DescribeQuorumResponse(
        error_code=error,
        error_message=message,
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=error,
                        error_message=message,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
