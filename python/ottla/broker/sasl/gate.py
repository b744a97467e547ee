"""What stands before the requests of a connection that has to authenticate."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Protocol

from ottla.broker.connection import CloseConnectionError
from ottla.broker.sasl.session import SaslSession, SaslSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.connection import Connection
    from ottla.broker.sasl.credentials import Credentials
    from ottla.broker.state import Random

__all__ = ["admit", "note_outcome", "session_of"]

_KEY = Struct(">h")


class Home(Protocol):
    """What an authentication needs of the broker that asks for it."""

    config: BrokerConfig

    @property
    def random(self) -> Random:
        """Where nonces come from: nobody can predict it, unless a test is to."""

    @property
    def credentials(self) -> Credentials:
        """The users."""


def session_of(home: Home, connection: Connection) -> SaslSession:
    """Returns the authentication of a connection, which begins with its first frame."""
    session = connection.sasl
    if not isinstance(session, SaslSession):
        random, config = home.random, home.config.of_listener(connection.listener)
        settings = SaslSettings(
            home.credentials.of_listener(connection.listener),
            config.names("sasl.enabled.mechanisms"),
            lambda count: random.getrandbits(8 * count).to_bytes(count, "big"),
            config.number("connections.max.reauth.ms"),
        )
        session = connection.sasl = SaslSession(settings)
    return session


def admit(
    home: Home,
    connection: Connection,
    frame: bytes,
    now_ms: int,
    send: Callable[[list[bytes]], None],
) -> bool:
    """Lets a frame pass as a request, or takes it as a token; returns whether it may pass.

    Raises:
        CloseConnectionError: it is out of place, too large, or too late.
    """
    session = session_of(home, connection)
    if session.takes_bare_token:
        answer = session.take_bare_token(frame, now_ms)
        note_outcome(connection, session)
        send([answer])
        return False
    if len(frame) < _KEY.size:
        raise CloseConnectionError(f"a request of {len(frame)} bytes, less than its header")
    session.check(_KEY.unpack_from(frame)[0], len(frame), now_ms)
    return True


def note_outcome(connection: Connection, session: SaslSession) -> None:
    """Has a connection know who it is of, or why it is refused, once that is known."""
    connection.refusal = session.refusal
    if session.principal is not None:
        connection.principal = session.principal
        connection.needs_authentication = False
