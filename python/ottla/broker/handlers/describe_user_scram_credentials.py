"""DescribeUserScramCredentials (key 50), version 0: who has which SCRAM credential (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """Answers with mechanisms and iterations of each user, of all users if none is named."""
    error = cluster_error(broker, context, Operation.DESCRIBE)
    if error:
        return refuse(request, context, error, None)
    counts = Counter(user.name for user in request.users or ())
    if not counts:
        counts = Counter(broker.credentials.scram_users())
    return DescribeUserScramCredentialsResponse(
        results=[_described(broker, user, count) for user, count in counts.items()]
    )


def _described(broker: Broker, user: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    found = broker.credentials.scram_of(user)
    if not found:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(found.items())
        ],
    )


def refuse(
    _request: DescribeUserScramCredentialsRequest,
    _context: Context,
    error: int,
    message: str | None,
) -> DescribeUserScramCredentialsResponse:
    """Answers with an error."""
    return DescribeUserScramCredentialsResponse(error_code=error, error_message=message)
