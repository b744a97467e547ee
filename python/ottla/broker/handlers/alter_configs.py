"""AlterConfigs (key 33), versions 0 to 2: replaces all settings of a topic or a broker.

What is not named falls back to its default; IncrementalAlterConfigs changes one at a time. Version
2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.configs.resources import alter
from ottla.broker.handlers.permission import config_error
from ottla.broker.topics import TopicError
from ottla.protocol.messages.alter_configs import AlterConfigsResourceResponse, AlterConfigsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    """Changes each resource, or says why it cannot."""
    responses = []
    for resource in request.resources:
        error, message = 0, None
        try:
            _change(broker, resource, context, validate_only=request.validate_only)
        except TopicError as refusal:
            error, message = refusal.error, refusal.message
        responses.append(_response(resource, error, message))
    return AlterConfigsResponse(responses=responses)


def _change(
    broker: Broker, resource: AlterConfigsResource, context: Context, *, validate_only: bool
) -> None:
    error = config_error(
        broker, context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name
    )
    if error:
        raise TopicError(error, "")
    configs = {config.name: config.value for config in resource.configs}
    alter(
        broker,
        resource.resource_type,
        resource.resource_name,
        configs,
        validate_only=validate_only,
    )


def refuse(
    request: AlterConfigsRequest, _context: Context, error: int, message: str | None
) -> AlterConfigsResponse:
    """Answers with an error for each resource."""
    return AlterConfigsResponse(
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
