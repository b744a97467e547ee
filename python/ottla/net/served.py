"""What a server needs of what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Address", "Peer", "Send", "Served", "Traffic", "authority"]


class Address(NamedTuple):
    """Where a listener listens."""

    listener: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Its host and port, see `authority`."""
        return authority(self.host, self.port)


def authority(host: str, port: int) -> str:
    """Returns a host and a port as clients take them, with brackets around an address of IPv6.

    >>> authority("localhost", 9092), authority("::1", 9092)
    ('localhost:9092', '[::1]:9092')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Traffic(NamedTuple):
    """What has passed through a server's sockets, and what waits in it."""

    received_bytes: int
    sent_bytes: int
    unsent_bytes: int
    held_bytes: int


class Peer(NamedTuple):
    """Who is at the other end of a connection.

    Attributes:
        host, port: its address.
        listener: name of the listener that accepted it.
        security_protocol: of that listener.
        subject: the distinguished name of its certificate, as in ``CN=orders,O=Shop``; empty where
            it has shown none.
    """

    host: str
    port: int
    listener: str
    security_protocol: str
    subject: str = ""
    connection_id: str = ""


class Send(Protocol):
    """Answers one request, once; a second call does nothing."""

    def __call__(self, parts: Sequence[bytes | bytearray | memoryview] | None, /) -> None:
        """Sends the parts of a frame, without its size.

        No parts are no answer at all, and ``None`` closes the connection instead.
        """


class Served(Protocol):
    """A broker, as its server sees it. The server's thread alone calls it, and never twice at once.

    What `connect` returns may say that it ``needs_authentication``: until it does no more, the
    bounds for strangers hold. It may have a ``refusal``: then it is closed once it is answered, and
    that is the reason.
    """

    def connect(self, peer: Peer) -> Any:
        """Returns the broker's side of a connection that is ready for requests."""

    def disconnect(self, connection: Any) -> None:
        """Forgets a connection; what is sent to it later goes nowhere."""

    def handle(self, connection: Any, frame: bytes, now_ms: int, send: Send) -> bool:
        """Takes a request; True: the connection's next one waits until `send` was called.

        With False and without a call of `send` it has no answer. A `CloseConnectionError` ends this
        connection; so does whatever else it raises, which is kept as `Server.errors`.
        """

    def tick(self, now_ms: int) -> None:
        """Does what is due."""

    def next_deadline_ms(self) -> int | None:
        """Returns when something is due next; ``None`` for never."""
