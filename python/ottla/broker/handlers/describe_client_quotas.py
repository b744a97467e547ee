"""DescribeClientQuotas (key 48), versions 0 and 1: quotas that a filter takes (KIP-546).

Version 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import cluster_error
from ottla.broker.quotas import Component
from ottla.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: DescribeClientQuotasRequest, context: Context
) -> DescribeClientQuotasResponse:
    """Answers with the quotas of each entity."""
    error = cluster_error(broker, context, Operation.DESCRIBE_CONFIGS)
    if error:
        return refuse(request, context, error, None)
    components = [
        Component(each.entity_type, each.match_type, each.match) for each in request.components
    ]
    (error, message), found = broker.quotas.describe(components, strict=request.strict)
    if error:
        return refuse(request, context, error, message)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found
        ]
    )


def refuse(
    _request: DescribeClientQuotasRequest, _context: Context, error: int, message: str | None
) -> DescribeClientQuotasResponse:
    """Answers with an error."""
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
