"""ListConfigResources (key 74), versions 0 and 1: what has settings, by name (KIP-1142).

Version 0 lists subscriptions to metrics of clients alone, of which there are none here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.configs.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest

__all__ = ["handle", "refuse"]

_BY_TYPE = 1


def handle(
    broker: Broker, request: ListConfigResourcesRequest, context: Context
) -> ListConfigResourcesResponse:
    """Answers with the names of each type that is asked for; without any, of all types."""
    error = cluster_error(broker, context, Operation.DESCRIBE_CONFIGS)
    if error:
        return refuse(request, context, error, None)
    brokers = [str(node_id) for node_id in context.image.brokers]
    names: dict[int, list[str]] = {
        GROUP: [*broker.group_settings],
        CLIENT_METRICS: [],
        BROKER_LOGGER: brokers,
        BROKER: brokers,
        TOPIC: [*context.image.topics],
    }
    asked = request.resource_types or [*names]
    if context.version < _BY_TYPE:
        asked = [CLIENT_METRICS]
    if not set(asked) <= names.keys():
        return refuse(request, context, ErrorCode.UNSUPPORTED_VERSION, None)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in dict.fromkeys(asked)
            for name in names[resource_type]
        ]
    )


def refuse(
    _request: ListConfigResourcesRequest, _context: Context, error: int, _message: str | None
) -> ListConfigResourcesResponse:
    """Answers with an error."""
    return ListConfigResourcesResponse(error_code=error)
