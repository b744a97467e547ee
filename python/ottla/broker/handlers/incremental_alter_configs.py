"""IncrementalAlterConfigs (key 44), versions 0 to 1: changes settings one by one (KIP-339).

A setting is set, deleted, added to or taken from; the others stay. Version 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.configs.resources import alter_increments
from ottla.broker.handlers.permission import config_error
from ottla.broker.topics import TopicError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.incremental_alter_configs import (
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    """Changes each resource, or says why it cannot."""
    responses = []
    for resource in request.resources:
        error, message = 0, None
        try:
            _change(broker, resource, context, validate_only=request.validate_only)
        except TopicError as refusal:
            error, message = refusal.error, refusal.message
        responses.append(_response(resource, error, message))
    return IncrementalAlterConfigsResponse(responses=responses)


def _change(
    broker: Broker, resource: AlterConfigsResource, context: Context, *, validate_only: bool
) -> None:
    error = config_error(
        broker, context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name
    )
    if error:
        raise TopicError(error, "")
    alter_increments(
        broker,
        resource.resource_type,
        resource.resource_name,
        [(each.name, each.config_operation, each.value) for each in resource.configs],
        validate_only=validate_only,
    )


def refuse(
    request: IncrementalAlterConfigsRequest, _context: Context, error: int, message: str | None
) -> IncrementalAlterConfigsResponse:
    """Answers with an error for each resource."""
    return IncrementalAlterConfigsResponse(
        responses=[_response(resource, error, message) for resource in request.resources]
    )


def _response(
    resource: AlterConfigsResource, error: int, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
