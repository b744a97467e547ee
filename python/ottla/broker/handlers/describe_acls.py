"""DescribeAcls (key 29), versions 1 to 3: the access rules that a filter takes (KIP-140).

Version 1 knows patterns (KIP-290), 2 is flexible, 3 knows rules for users.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation, RuleFilter
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.authorizer import AccessRule
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_acls import DescribeAclsRequest

__all__ = ["DISABLED", "handle", "refuse"]

DISABLED = "No Authorizer is configured on the broker"


def handle(broker: Broker, request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    """Answers with the rules by resource."""
    error = cluster_error(broker, context, Operation.DESCRIBE)
    if error:
        return refuse(request, context, error, None)
    if not broker.authorizer.is_enabled:
        return refuse(request, context, ErrorCode.SECURITY_DISABLED, DISABLED)
    wanted = RuleFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if not wanted.is_known():
        return refuse(
            request, context, ErrorCode.INVALID_REQUEST, "The filter has unknown elements"
        )

    def resource(rule: AccessRule) -> tuple[int, int, str]:
        return rule.resource_type, rule.pattern_type, rule.resource_name

    by_resource = groupby(sorted(broker.authorizer.rules(wanted), key=resource), key=resource)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    AclDescription(
                        principal=rule.principal,
                        host=rule.host,
                        operation=rule.operation,
                        permission_type=rule.permission,
                    )
                    for rule in rules
                ],
            )
            for (resource_type, pattern_type, name), rules in by_resource
        ]
    )


def refuse(
    _request: DescribeAclsRequest, _context: Context, error: int, message: str | None
) -> DescribeAclsResponse:
    """Answers with an error."""
    return DescribeAclsResponse(error_code=error, error_message=message)
