"""What handlers of single partitions have in common: is it there, and is it led here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.permission import topic_error
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.image import Partition

__all__ = ["NO_LEADER_EPOCH", "find_partition", "partition_fault"]

NO_LEADER_EPOCH = -1


def partition_fault(broker: Broker, context: Context, topic: str, index: int) -> int:
    """Returns the error that is set for a partition whose topic needs no permission, 0 for none."""
    if not broker.faults:
        return ErrorCode.NONE
    return broker.faults.error(context, topic=topic, partition=index)


def find_partition(
    broker: Broker,
    context: Context,
    operation: int,
    topic: str,
    index: int,
    *,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> tuple[Partition | None, int]:
    """Returns a partition, or `None` and the error that a client gets instead of it.

    Args:
        operation: what the client is going to do.
        leader_epoch: what the client believes (KIP-320); -1 if it says nothing.
    """
    error = topic_error(broker, context, operation, topic, index)
    if error:
        return None, error
    partition = context.image.partition(topic, index)
    if partition is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader_id != broker.node_id:
        return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader_epoch != NO_LEADER_EPOCH:
        if leader_epoch < partition.leader_epoch:
            return None, ErrorCode.FENCED_LEADER_EPOCH
        if leader_epoch > partition.leader_epoch:
            return None, ErrorCode.UNKNOWN_LEADER_EPOCH
    return partition, 0
