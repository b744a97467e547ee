"""SaslHandshake (key 17), versions 0 and 1: by which mechanism a client authenticates (KIP-43).

After version 0 its tokens are frames without a header, after 1 they are SaslAuthenticate (KIP-152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.sasl.gate import note_outcome, session_of
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: SaslHandshakeRequest, context: Context
) -> SaslHandshakeResponse:
    """Answers with the mechanisms that there are."""
    connection = context.connection
    if not connection.security_protocol.startswith("SASL"):
        return refuse(request, context, ErrorCode.ILLEGAL_SASL_STATE, None)
    session = session_of(broker, connection)
    error, mechanisms = session.handshake(request.mechanism, context.version)
    note_outcome(connection, session)
    return SaslHandshakeResponse(error_code=error, mechanisms=mechanisms)


def refuse(
    _request: SaslHandshakeRequest, _context: Context, error: int, _message: str | None
) -> SaslHandshakeResponse:
    """Answers with an error."""
    return SaslHandshakeResponse(error_code=error)
