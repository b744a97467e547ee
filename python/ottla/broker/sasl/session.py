"""The authentication of one connection (KIP-43, KIP-152, KIP-368).

States, and what is taken in each:

    HANDSHAKE      ApiVersions, SaslHandshake
    AUTHENTICATE   ApiVersions is over; SaslAuthenticate, or bare tokens after SaslHandshake 0
    COMPLETE       every request; SaslHandshake begins to authenticate again
    FAILED         nothing: the connection ends once the answer is sent

Invariants: what is not taken ends the connection; a failed authentication is never tried again on
the same connection; whoever authenticates again is the same principal by the same mechanism. A
session that has expired takes nothing but an authentication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.connection import CloseConnectionError
from ottla.broker.sasl.mechanisms import AuthenticationError, new_mechanism
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.broker.sasl.credentials import Credentials
    from ottla.broker.sasl.mechanisms import Mechanism

__all__ = ["MAX_TOKEN_BYTES", "SaslSession", "SaslSettings", "TokenAnswer"]

MAX_TOKEN_BYTES: Final = 524_288
"""What anybody may send before they are known (``sasl.server.max.receive.size``)."""

MAX_VERSIONS_ASKED: Final = 10
"""Of ApiVersions before a login, which clients need once, or twice where a version is refused."""

HANDSHAKE: Final = "HANDSHAKE"
AUTHENTICATE: Final = "AUTHENTICATE"
COMPLETE: Final = "COMPLETE"
FAILED: Final = "FAILED"

_TAKEN: Final = {
    HANDSHAKE: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    FAILED: frozenset[int](),
}


class SaslSettings(NamedTuple):
    """What a listener asks of its clients.

    Attributes:
        credentials: the users.
        mechanisms: ``sasl.enabled.mechanisms``.
        max_reauth_ms: ``connections.max.reauth.ms``: how long a session lasts, 0 for ever.
        random_bytes: returns as many bytes as it is asked for, which nobody can predict.
    """

    credentials: Credentials
    mechanisms: Sequence[str]
    random_bytes: Callable[[int], bytes]
    max_reauth_ms: int = 0


class TokenAnswer(NamedTuple):
    """The answer to a token."""

    error_code: int
    error_message: str | None
    token: bytes
    session_lifetime_ms: int


class SaslSession:
    """The state of one connection.

    Attributes:
        principal: who the client has proved to be, `None` until then.
        refusal: why it is not let in, for the log, once that is so: without what it has sent.
        expires_ms: when the session ends, `None` for never.
    """

    def __init__(self, settings: SaslSettings) -> None:
        self._settings = settings
        self._state = HANDSHAKE
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._takes_bare_tokens = False
        self._versions_asked = 0
        self.principal: str | None = None
        self.refusal = ""
        self.expires_ms: int | None = None

    @property
    def state(self) -> str:
        """The name of its state."""
        return self._state

    @property
    def takes_bare_token(self) -> bool:
        """Whether the next frame is a token without a header, as after SaslHandshake 0."""
        return self._takes_bare_tokens and self._state == AUTHENTICATE

    def check(self, api_key: int, frame_size: int, now_ms: int) -> None:
        """Lets a request pass.

        Raises:
            CloseConnectionError: it is too large, or out of place, or comes too late.
        """
        if self._state != COMPLETE:
            if frame_size > MAX_TOKEN_BYTES:
                raise CloseConnectionError(f"{frame_size} bytes before authentication")
            # Whoever authenticates again may send on until the handshake (KIP-368).
            if api_key not in _TAKEN[self._state]:
                raise CloseConnectionError(f"API {api_key} in state {self._state}")
            self._versions_asked += api_key == ApiKey.API_VERSIONS
            if self._versions_asked > MAX_VERSIONS_ASKED:
                raise CloseConnectionError("it asks for versions again and again before its login")
        elif self.is_expired(now_ms) and api_key != ApiKey.SASL_HANDSHAKE:
            raise CloseConnectionError("the session has expired")

    def is_expired(self, now_ms: int) -> bool:
        """Whether the client has to authenticate again first."""
        return self.expires_ms is not None and now_ms >= self.expires_ms

    def handshake(self, mechanism: str, version: int) -> tuple[int, list[str]]:
        """Chooses a mechanism; returns an error code, and the mechanisms that there are.

        An error ends the connection once it is answered: see `refusal`.
        """
        enabled = list(self._settings.mechanisms)
        is_other = self._state == COMPLETE and mechanism != self._mechanism_name
        if mechanism not in enabled or is_other:
            self._fail(f"it asks for a mechanism other than {', '.join(enabled)}")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled
        self._mechanism = new_mechanism(
            mechanism, self._settings.credentials, self._settings.random_bytes
        )
        self._mechanism_name = mechanism
        self._takes_bare_tokens = version == 0
        self._state = AUTHENTICATE
        return ErrorCode.NONE, enabled

    def authenticate(self, token: bytes, now_ms: int) -> TokenAnswer:
        """Takes a token of the client."""
        if self._mechanism is None or self._state != AUTHENTICATE:
            text = "SaslAuthenticate request received without a SaslHandshake before it"
            return TokenAnswer(ErrorCode.ILLEGAL_SASL_STATE, text, b"", 0)
        try:
            answer = self._mechanism.respond(token)
            if self._mechanism.user is None:
                return TokenAnswer(ErrorCode.NONE, None, answer, 0)
            self._complete(f"User:{self._mechanism.user}", now_ms)
        except AuthenticationError as error:
            self._fail(f"login by {self._mechanism_name} failed: {error}")
            return TokenAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error), b"", 0)
        return TokenAnswer(ErrorCode.NONE, None, answer, self._settings.max_reauth_ms)

    def take_bare_token(self, token: bytes, now_ms: int) -> bytes:
        """Takes a frame that is a token; returns the frame that answers it.

        Raises:
            CloseConnectionError: the client is refused, which this way has no other answer.
        """
        if len(token) > MAX_TOKEN_BYTES:
            raise CloseConnectionError(f"{len(token)} bytes before authentication")
        answer = self.authenticate(token, now_ms)
        if answer.error_code:
            raise CloseConnectionError(answer.error_message or "authentication failed")
        return answer.token

    def _fail(self, why: str) -> None:
        self._state, self.refusal = FAILED, why

    def _complete(self, principal: str, now_ms: int) -> None:
        if self.principal not in {None, principal}:
            raise AuthenticationError(
                f"Cannot change principals during re-authentication from {self.principal}"
            )
        self.principal = principal
        lifetime_ms = self._settings.max_reauth_ms
        self.expires_ms = now_ms + lifetime_ms if lifetime_ms else None
        self._mechanism = None
        self._state = COMPLETE
