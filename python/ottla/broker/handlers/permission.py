"""What handlers ask before they do anything: may this client do that, and is a fault set for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

__all__ = ["cluster_error", "group_error", "topic_error", "transactional_id_error"]


def _error(broker: Broker, context: Context, operation: int, resource_type: int, name: str) -> int:
    host = context.connection.host
    return broker.authorizer.error(context.principal, host, operation, resource_type, name)


def cluster_error(broker: Broker, context: Context, operation: int) -> int:
    """Returns CLUSTER_AUTHORIZATION_FAILED, or 0 if the client may do that to the cluster."""
    return _error(broker, context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def topic_error(broker: Broker, context: Context, operation: int, topic: str) -> int:
    """Returns TOPIC_AUTHORIZATION_FAILED, or 0 if the client may do that to a topic."""
    return _error(broker, context, operation, ResourceType.TOPIC, topic)


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
