"""SaslAuthenticate (key 36), versions 0 to 2: the tokens of an authentication (KIP-152).

Version 1 says how long the session lasts (KIP-368), 2 is flexible. A client that is refused is told
why, and its next request closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.sasl.gate import note_outcome, session_of
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: SaslAuthenticateRequest, context: Context
) -> SaslAuthenticateResponse:
    """Answers a token by the server's next one."""
    connection = context.connection
    if not connection.security_protocol.startswith("SASL"):
        text = "SaslAuthenticate request received on a listener without SASL"
        return refuse(request, context, ErrorCode.ILLEGAL_SASL_STATE, text)
    session = session_of(broker, connection)
    answer = session.authenticate(request.auth_bytes, context.now_ms)
    note_outcome(connection, session)
    return SaslAuthenticateResponse(
        error_code=answer.error_code,
        error_message=answer.error_message,
        auth_bytes=answer.token,
        session_lifetime_ms=answer.session_lifetime_ms,
    )


def refuse(
    _request: SaslAuthenticateRequest, _context: Context, error: int, message: str | None
) -> SaslAuthenticateResponse:
    """Answers with an error."""
    return SaslAuthenticateResponse(error_code=error, error_message=message)
