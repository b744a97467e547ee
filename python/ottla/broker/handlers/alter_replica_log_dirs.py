"""AlterReplicaLogDirs (key 34), versions 1 and 2: moves logs to other directories (KIP-113).

Version 2 is flexible. All logs are in one directory, where they stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: AlterReplicaLogDirsRequest, context: Context
) -> AlterReplicaLogDirsResponse:
    """Answers for each partition: it is where it is to be, or there is no such directory."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)

    def error_of(path: str, topic: str, index: int) -> int:
        fault = partition_fault(broker, context, topic, index)
        if fault:
            return fault
        if path != broker.log_dir:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if context.image.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    return _response(request, error_of)


def refuse(
    request: AlterReplicaLogDirsRequest, _context: Context, error: int, _message: str | None
) -> AlterReplicaLogDirsResponse:
    """Answers with an error for each partition."""
    return _response(request, lambda _path, _topic, _index: error)


def _response(
    request: AlterReplicaLogDirsRequest, error_of: Callable[[str, str, int], int]
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=error_of(log_dir.path, topic.name, index),
                    )
                    for index in topic.partitions
                ],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )
