"""What handlers ask before they do anything: may this client do that, and is a fault set for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_commit import OffsetCommitRequestTopic
    from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestTopic

__all__ = [
    "cluster_error",
    "cluster_operations",
    "config_error",
    "creation_error",
    "group_error",
    "group_operations",
    "is_visible",
    "may",
    "name_of",
    "topic_error",
    "topic_errors",
    "topic_operations",
    "transactional_id_error",
]

_TOPIC_RESOURCE, _GROUP_RESOURCE = 2, 32
"""Numbers among the resources that have settings."""


def _error(broker: Broker, context: Context, operation: int, resource_type: int, name: str) -> int:
    host = context.connection.host
    return broker.authorizer.error(context.principal, host, operation, resource_type, name)


def cluster_error(broker: Broker, context: Context, operation: int) -> int:
    """Returns CLUSTER_AUTHORIZATION_FAILED, or 0 if the client may do that to the cluster."""
    return _error(broker, context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def may(broker: Broker, context: Context, operation: int, topic: str) -> bool:
    """Whether the client may do that to a topic."""
    return not _error(broker, context, operation, ResourceType.TOPIC, topic)


def is_visible(broker: Broker, context: Context, resource_type: int, name: str) -> bool:
    """Whether the client is told of something that its request does not name."""
    return not _error(broker, context, Operation.DESCRIBE, resource_type, name)


def name_of(context: Context, name: str, topic_id: bytes) -> str:
    """Returns the name of a topic, which a request has named by one or the other."""
    topic = None if name else context.image.topics_by_id.get(topic_id)
    return name if topic is None else topic.name


def topic_error(
    broker: Broker, context: Context, operation: int, topic: str, partition: int | None = None
) -> int:
    """Returns an error of a topic or partition, or 0 if the client may do that to it."""
    denied = _error(broker, context, operation, ResourceType.TOPIC, topic)
    if denied or not broker.faults:
        return denied
    return broker.faults.error(context, topic=topic, partition=partition)


def topic_errors(
    broker: Broker,
    context: Context,
    operation: int,
    topics: list[OffsetCommitRequestTopic] | list[TxnOffsetCommitRequestTopic],
) -> dict[tuple[str, int], int]:
    """Returns the errors of those partitions of a commit to which the client may not do that."""
    by_id = context.image.topics_by_id
    named = [
        (by_id[topic.topic_id].name if topic.topic_id in by_id else topic.name, each)
        for topic in topics
        for each in topic.partitions
    ]
    found = {
        (name, each.partition_index): topic_error(
            broker, context, operation, name, each.partition_index
        )
        for name, each in named
    }
    return {partition: error for partition, error in found.items() if error}


def creation_error(broker: Broker, context: Context, topic: str) -> int:
    """Returns an error of a topic, or 0 if the client may create it, or any."""
    if not cluster_error(broker, context, Operation.CREATE):
        return broker.faults.error(context, topic=topic) if broker.faults else ErrorCode.NONE
    return topic_error(broker, context, Operation.CREATE, topic)


def config_error(
    broker: Broker, context: Context, operation: int, resource_type: int, name: str
) -> int:
    """Returns an error of the settings of something, or 0 if the client may do that to them."""
    if resource_type == _TOPIC_RESOURCE:
        return topic_error(broker, context, operation, name)
    if resource_type == _GROUP_RESOURCE:
        return group_error(broker, context, operation, name)
    fault = broker.faults.error(context) if broker.faults else ErrorCode.NONE
    return cluster_error(broker, context, operation) or fault


def topic_operations(broker: Broker, context: Context, topic: str) -> int:
    """Returns what the client may do with a topic, a bit each (KIP-430)."""
    host = context.connection.host
    return broker.authorizer.authorized_operations(
        context.principal, host, ResourceType.TOPIC, topic
    )


def group_operations(broker: Broker, context: Context, group: str) -> int:
    """Returns what the client may do with a group, a bit each (KIP-430)."""
    host = context.connection.host
    return broker.authorizer.authorized_operations(
        context.principal, host, ResourceType.GROUP, group
    )


def cluster_operations(broker: Broker, context: Context) -> int:
    """Returns what the client may do with the cluster; nothing if it may not even describe it."""
    if cluster_error(broker, context, Operation.DESCRIBE):
        return 0
    host = context.connection.host
    return broker.authorizer.authorized_operations(
        context.principal, host, ResourceType.CLUSTER, CLUSTER_NAME
    )


def group_error(broker: Broker, context: Context, operation: int, group: str) -> int:
    """Returns an error of a group, or 0 if the client may do that to it."""
    fault = broker.faults.error(context, group=group) if broker.faults else ErrorCode.NONE
    return _error(broker, context, operation, ResourceType.GROUP, group) or fault


def transactional_id_error(
    broker: Broker, context: Context, transactional_id: str, operation: int = Operation.WRITE
) -> int:
    """Returns an error of a transactional id, or 0 if the client may use it so."""
    denied = _error(broker, context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)
    if denied or not broker.faults:
        return denied
    return broker.faults.error(context, transactional_id=transactional_id)
