"""AlterClientQuotas (key 49), versions 0 and 1: quotas to set and to remove (KIP-546).

Version 1 is flexible. Each entry is applied as a whole, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: AlterClientQuotasRequest, context: Context
) -> AlterClientQuotasResponse:
    """Changes the quotas of each entity."""
    error = cluster_error(broker, context, Operation.ALTER_CONFIGS)
    if error:
        return refuse(request, context, error, None)
    results = []
    for entry in request.entries:
        entity = [(each.entity_type, each.entity_name) for each in entry.entity]
        changes = {each.key: None if each.remove else each.value for each in entry.ops}
        error, message = broker.quotas.alter(entity, changes, validate_only=request.validate_only)
        results.append(_result(entry, error, message))
    return AlterClientQuotasResponse(entries=results)


def refuse(
    request: AlterClientQuotasRequest, _context: Context, error: int, message: str | None
) -> AlterClientQuotasResponse:
    """Answers with an error for each entity."""
    return AlterClientQuotasResponse(
        entries=[_result(entry, error, message) for entry in request.entries]
    )


def _result(entry: EntryData, error: int, message: str | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=error,
        error_message=message,
        entity=[
            ResponseEntityData(entity_type=each.entity_type, entity_name=each.entity_name)
            for each in entry.entity
        ],
    )
