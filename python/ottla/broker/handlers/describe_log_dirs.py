"""DescribeLogDirs (key 35), versions 1 to 5: the log directory and the size of what is in it.

Version 2 is flexible, 3 has an error of the whole answer, 4 the room of a directory (KIP-827), 5
whether it takes new logs (KIP-1066). How much room there is, is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

__all__ = ["handle", "refuse"]

_ERROR_OF_ALL = 3


def handle(
    broker: Broker, request: DescribeLogDirsRequest, context: Context
) -> DescribeLogDirsResponse:
    """Answers with the partitions that are asked for and are there; null asks for all."""
    error = cluster_error(broker, context, Operation.DESCRIBE)
    if error:
        return DescribeLogDirsResponse(error_code=error)
    asked = _asked(request, context)
    fault = next(
        (
            error
            for topic, indexes in asked.items()
            for index in indexes
            if (error := partition_fault(broker, context, topic, index))
        ),
        0,
    )
    if fault:
        return refuse(request, context, fault, None)
    topics = []
    for name, indexes in asked.items():
        found = [context.image.partition(name, index) for index in indexes]
        sizes = [
            DescribeLogDirsPartition(
                partition_index=partition.partition_index,
                partition_size=sum(size for _, size in broker.plane.segments(partition.handle)),
            )
            for partition in found
            if partition is not None and partition.leader_id == broker.node_id
        ]
        if sizes:
            topics.append(DescribeLogDirsTopic(name=name, partitions=sizes))
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir=broker.log_dir, topics=topics)]
    )


def _asked(request: DescribeLogDirsRequest, context: Context) -> dict[str, list[int]]:
    if request.topics is None:
        return {
            name: [*range(len(topic.partitions))] for name, topic in context.image.topics.items()
        }
    asked: dict[str, list[int]] = {}
    for topic in request.topics:
        asked.setdefault(topic.topic, []).extend(topic.partitions)
    return {name: [*dict.fromkeys(indexes)] for name, indexes in asked.items()}


def refuse(
    _request: DescribeLogDirsRequest, context: Context, error: int, _message: str | None
) -> DescribeLogDirsResponse:
    """Answers with an error; before version 3 it is that of a directory."""
    if context.version >= _ERROR_OF_ALL:
        return DescribeLogDirsResponse(error_code=error)
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(error_code=error)])
