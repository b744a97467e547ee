"""Where connections come in."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from ottla.errors import ListenError
from ottla.net.limits import BACKLOG
from ottla.net.served import Address

if TYPE_CHECKING:
    import ssl

    from ottla.net.settings import ListenerSettings
    from ottla.net.site import Site
    from ottla.net.tls import TlsStream

__all__ = ["OUT_OF_DESCRIPTORS", "Listener"]

MAX_PORT = 65_535

OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that do not go away by trying again at once."""


class Listener:
    """A socket that accepts connections.

    Args:
        settings: where, and whether by TLS.
        site: what answers there by HTTP; without one it is the broker's.

    Attributes:
        connection_count: how many are open.

    Raises:
        ListenError: it cannot have that address, or its certificates are no good.
    """

    def __init__(self, settings: ListenerSettings, site: Site | None = None) -> None:
        self.settings = settings
        self.site = site
        self.connection_count = 0
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
    if not 0 <= settings.port <= MAX_PORT:
        raise ListenError(f"cannot listen on {place}: a port is from 0 to {MAX_PORT}")
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        # `create_server` does not tell why a name has no address. Text would load a codec for it.
        host = settings.host.encode("ascii" if settings.host.isascii() else "idna")
        socket.getaddrinfo(host or None, settings.port, family, socket.SOCK_STREAM)
        bound = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        hint = "; port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        why = os.strerror(error.errno) if error.errno else error
        if isinstance(error, socket.gaierror) or (error.errno or 0) < 0:
            # `create_server` makes an OSError of it, with the number of another list.
            why = "this name has no address"
        raise ListenError(f"cannot listen on {place}: {why}{hint}") from error
    bound.settimeout(0)
    return bound
