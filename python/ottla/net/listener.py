"""Where connections come in."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import ListenError
from ottla.net.limits import BACKLOG
from ottla.net.served import Address

if TYPE_CHECKING:
    import os
    import ssl

    from ottla.net.tls import TlsStream

__all__ = ["Listener", "ListenerSettings", "TlsSettings"]

OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that do not go away by trying again at once."""


class TlsSettings(NamedTuple):
    """How a listener speaks TLS; files are in PEM.

    Attributes:
        certificate: the certificate, and those between it and its authority.
        key: its key; by default it is in the file of the certificate.
        password: of the key.
        authorities: certificates of those who may sign the clients' ones.
        client_auth: ``none``, ``requested`` or ``required``, as Kafka's `ssl.client.auth`.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str] | None = None
    password: str | None = None
    authorities: str | os.PathLike[str] | None = None
    client_auth: str = "none"


class ListenerSettings(NamedTuple):
    """A listener to open.

    Attributes:
        host: address or name of an interface; empty for all.
        port: 0 for a free one.
        name: as Kafka's configuration names listeners.
        security_protocol: what the broker is told of it. TLS is spoken where `tls` is given.
        tls: certificates.
    """

    host: str = "127.0.0.1"
    port: int = 0
    name: str = "PLAINTEXT"
    security_protocol: str = "PLAINTEXT"
    tls: TlsSettings | None = None


class Listener:
    """A socket that accepts connections.

    Raises:
        ListenError: it cannot have that address, or its certificates are no good.
    """

    def __init__(self, settings: ListenerSettings) -> None:
        self.settings = settings
        self._context: ssl.SSLContext | None = None
        if settings.tls is not None:
            # On demand: it costs more than all of the engine.
            from ottla.net.tls import server_context

            self._context = server_context(settings.tls)
        self.socket = _bound(settings)
        host, port = self.socket.getsockname()[:2]
        self.address = Address(settings.name, host, port)

    def accept(self) -> tuple[socket.socket, str, int] | None:
        """Returns a connection with its peer's host and port, ``None`` if there is none now.

        Raises:
            OSError: one of `OUT_OF_DESCRIPTORS`; a pause is due.
        """
        try:
            accepted, peer = self.socket.accept()
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                raise
            # There was none, or it is gone again.
            return None
        accepted.settimeout(0)
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # Some systems refuse it to a peer that has closed.
            accepted.close()
            return None
        return accepted, peer[0], peer[1]

    def tls_stream(self) -> TlsStream | None:
        """Returns the TLS of a new connection, if it speaks any."""
        if self._context is None:
            return None
        from ottla.net.tls import TlsStream

        return TlsStream(self._context)

    def close(self) -> None:
        """Accepts no more."""
        self.socket.close()


def _bound(settings: ListenerSettings) -> socket.socket:
    place = f"{settings.host or 'every interface'}:{settings.port}"
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        bound = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OverflowError:
        raise ListenError(f"cannot listen on {place}: a port is from 0 to 65535") from None
    except OSError as error:
        hint = "; port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        why = error.strerror or error
        raise ListenError(f"cannot listen on {place}: {why}{hint}") from error
    bound.settimeout(0)
    return bound
