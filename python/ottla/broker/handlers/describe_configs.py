"""DescribeConfigs (key 32), versions 1 to 4: settings of topics, groups and brokers; loggers.

Version 1 says where a value comes from and its synonyms (KIP-226), 3 the type and documentation
(KIP-569), 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.configs.resources import describe
from ottla.broker.handlers.permission import config_error
from ottla.broker.topics import TopicError
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.configs.described import Described
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

__all__ = ["handle", "refuse"]

_PASSWORD = 9
"""The type of a value that is not told (KIP-569)."""


def handle(
    broker: Broker, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResponse:
    """Describes each resource, or says why it cannot."""
    results = []
    for resource in request.resources:
        error = config_error(
            broker,
            context,
            Operation.DESCRIBE_CONFIGS,
            resource.resource_type,
            resource.resource_name,
        )
        if error:
            results.append(_failed(resource, error, None))
            continue
        try:
            found = describe(broker, resource.resource_type, resource.resource_name)
        except TopicError as refusal:
            results.append(_failed(resource, refusal.error, refusal.message))
            continue
        keys = frozenset(resource.configuration_keys or ())
        configs = [
            _described(each, request) for each in found if not keys or each.setting.name in keys
        ]
        results.append(
            DescribeConfigsResult(
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=configs,
            )
        )
    return DescribeConfigsResponse(results=results)


def _described(each: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    setting = each.setting
    synonyms = each.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if setting.is_sensitive else each.value,
        read_only=each.is_read_only,
        config_source=each.source,
        is_sensitive=setting.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=name, value=None if setting.is_sensitive else value, source=source
            )
            for name, value, source in synonyms
        ],
        config_type=_PASSWORD if setting.is_sensitive else setting.type,
        documentation=setting.documentation if request.include_documentation else None,
    )


def refuse(
    request: DescribeConfigsRequest, _context: Context, error: int, message: str | None
) -> DescribeConfigsResponse:
    """Answers with an error for each resource."""
    return DescribeConfigsResponse(
        results=[_failed(resource, error, message) for resource in request.resources]
    )


def _failed(
    resource: DescribeConfigsResource, error: int, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
