"""AlterUserScramCredentials (key 51), version 0: SCRAM credentials to set and to delete (KIP-554).

A client sends the salted password, never the password. All changes of a user are made, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import cluster_error
from ottla.broker.repeated import repeated
from ottla.broker.sasl.credentials import ScramCredential
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.sasl.credentials import Credentials
    from ottla.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )

__all__ = ["handle", "refuse"]

_NONE = (ErrorCode.NONE, None)


def handle(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    """Changes credentials; answers once for each user."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)
    faults = _faults(broker.credentials, request)
    for deletion in request.deletions:
        if deletion.name not in faults:
            broker.credentials.delete_scram(deletion.name, deletion.mechanism)
    for each in request.upsertions:
        if each.name not in faults:
            credential = ScramCredential.of(
                each.mechanism, each.salt, each.iterations, each.salted_password
            )
            broker.credentials.set_scram(each.name, each.mechanism, credential)
    return _response(request, faults)


def _faults(
    credentials: Credentials, request: AlterUserScramCredentialsRequest
) -> dict[str, tuple[int, str | None]]:
    """Returns the first error of each user that has one."""
    faults: dict[str, tuple[int, str | None]] = {}
    for user, _ in repeated((each.name, each.mechanism) for each in _changes(request)):
        text = "A user credential cannot be altered twice in the same request"
        faults[user] = ErrorCode.DUPLICATE_RESOURCE, text
    for deletion in request.deletions:
        if credentials.scram(deletion.name, deletion.mechanism) is None:
            text = "Attempt to delete a user credential that does not exist"
            faults.setdefault(deletion.name, (ErrorCode.RESOURCE_NOT_FOUND, text))
    added: set[str] = set()
    for each in request.upsertions:
        fault = credentials.check_new(each.name, each.mechanism, each.iterations, added)
        if fault[0] == ErrorCode.NONE and not (each.salt and each.salted_password):
            fault = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt and salted password must not be empty."
        if fault[0]:
            faults.setdefault(each.name, fault)
        elif not credentials.scram_of(each.name):
            added.add(each.name)
    return faults


def _changes(
    request: AlterUserScramCredentialsRequest,
) -> list[ScramCredentialDeletion | ScramCredentialUpsertion]:
    return [*request.deletions, *request.upsertions]


def _response(
    request: AlterUserScramCredentialsRequest, faults: dict[str, tuple[int, str | None]]
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(each.name for each in _changes(request))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=faults.get(user, _NONE)[0],
                error_message=faults.get(user, _NONE)[1],
            )
            for user in users
        ]
    )


def refuse(
    request: AlterUserScramCredentialsRequest, _context: Context, error: int, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Answers with an error for each user."""
    return _response(request, {each.name: (error, message) for each in _changes(request)})
