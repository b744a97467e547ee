"""DeleteAcls (key 31), versions 1 to 3: access rules to remove, by filters (KIP-140).

Version 1 knows patterns (KIP-290), 2 is flexible, 3 knows rules for users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation, RuleFilter
from ottla.broker.handlers.describe_acls import DISABLED
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    """Removes what each filter takes, and answers with it."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)
    if not broker.authorizer.is_enabled:
        return refuse(request, context, ErrorCode.SECURITY_DISABLED, DISABLED)
    return DeleteAclsResponse(
        filter_results=[_removed(broker.authorizer, each) for each in request.filters]
    )


def _removed(authorizer: Authorizer, asked: DeleteAclsFilter) -> DeleteAclsFilterResult:
    wanted = RuleFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
    if not wanted.is_known():
        return DeleteAclsFilterResult(
            error_code=ErrorCode.INVALID_REQUEST, error_message="The filter has unknown elements"
        )
    found = authorizer.rules(wanted)
    for rule in found:
        authorizer.remove(rule)
    return DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(
                resource_type=rule.resource_type,
                resource_name=rule.resource_name,
                pattern_type=rule.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in found
        ]
    )


def refuse(
    request: DeleteAclsRequest, _context: Context, error: int, message: str | None
) -> DeleteAclsResponse:
    """Answers with an error for each filter."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=error, error_message=message) for _ in request.filters
        ]
    )
