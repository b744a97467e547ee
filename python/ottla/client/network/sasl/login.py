"""A login on a connection: which requests it makes, and what their answers say (KIP-152, KIP-368).

| step | request | answer | next step |
|---|---|---|---|
| mechanism | SaslHandshake | error 0 | tokens |
| mechanism | SaslHandshake | another error | refused |
| tokens | SaslAuthenticate with a token | error 0, the mechanism has more to say | tokens |
| tokens | SaslAuthenticate with a token | error 0, it has not | done |
| tokens | SaslAuthenticate with a token | another error | refused |

Brokers before 1.0 take the tokens as they are, without a request around each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import ApiError, AuthenticationError, error_of
from ottla.client.network.sasl.mechanisms import new_mechanism
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.settings import NetworkSettings

__all__ = ["Login"]


class Login:
    """One login.

    Attributes:
        session_ms: how long it is good for, once it is done; 0 for ever.
    """

    def __init__(
        self, settings: NetworkSettings, token: str | None, random: Callable[[], float]
    ) -> None:
        self.session_ms = 0
        self._settings = settings
        self._mechanism = new_mechanism(settings, token, random)

    def handshake(self) -> SaslHandshakeRequest:
        """Returns the first request."""
        return SaslHandshakeRequest(mechanism=self._settings.sasl_mechanism or "")

    def first_token(self, response: Any) -> bytes:
        """Returns the first token, once the broker takes the mechanism.

        Raises:
            AuthenticationError: it does not.
        """
        code = response.error_code
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise AuthenticationError(
                f"the broker does not take sasl_mechanism {self._settings.sasl_mechanism}: it "
                f"takes {', '.join(response.mechanisms) or 'none'}",
                code,
            )
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationError(
                "the listener takes no login: security_protocol "
                f"{self._settings.security_protocol} is not what it speaks",
                code,
            )
        if code:
            raise _refusal(code, "")
        return self._mechanism.first()

    @staticmethod
    def request(token: bytes) -> SaslAuthenticateRequest:
        """Returns the request with a token."""
        return SaslAuthenticateRequest(auth_bytes=token)

    def next_token(self, response: Any) -> bytes | None:
        """Returns the next token; ``None`` where the broker has let the client in.

        Raises:
            AuthenticationError: the broker refuses the client, or the client the broker.
        """
        code = response.error_code
        if code:
            raise _refusal(code, self._said(response.error_message))
        self.session_ms = response.session_lifetime_ms
        return self._mechanism.respond(response.auth_bytes)

    def next_bare_token(self, token: bytes) -> bytes | None:
        """Returns the next token, where those come without an answer around them."""
        return self._mechanism.respond(token)

    def _said(self, message: str | None) -> str:
        settings = self._settings
        if settings.sasl_mechanism == "OAUTHBEARER":
            who, check = "the token", "sasl_oauth_token"
        else:
            who, check = f"user {settings.sasl_username}", "sasl_username and sasl_password"
        said = f": {message}" if message else ""
        return f"{who} is refused by {settings.sasl_mechanism}{said}; check {check}"


def _refusal(code: int, message: str) -> ApiError:
    """Returns the error of an answer; one that passes by itself is retriable."""
    error = error_of(code, message)
    return error if error.retriable else AuthenticationError(str(error), code)
