"""CreateAcls (key 30), versions 1 to 3: access rules to add (KIP-140).

Version 1 knows patterns (KIP-290), 2 is flexible, 3 knows rules for users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import AccessRule, Operation
from ottla.broker.handlers.describe_acls import DISABLED
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

if TYPE_CHECKING:
    from ottla.broker.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    """Adds each rule that can be one."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)
    if not broker.authorizer.is_enabled:
        return refuse(request, context, ErrorCode.SECURITY_DISABLED, DISABLED)
    return CreateAclsResponse(
        results=[_created(broker.authorizer, creation) for creation in request.creations]
    )


def _created(authorizer: Authorizer, creation: AclCreation) -> AclCreationResult:
    rule = AccessRule(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )
    error = authorizer.add(rule)
    return AclCreationResult(error_code=error, error_message=rule.fault())


def refuse(
    request: CreateAclsRequest, _context: Context, error: int, message: str | None
) -> CreateAclsResponse:
    """Answers with an error for each rule."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=error, error_message=message) for _ in request.creations
        ]
    )
