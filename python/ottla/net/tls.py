"""TLS over bytes: no socket in here, so a connection is the same with it and without."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.errors import ListenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.net.settings import TlsSettings

__all__ = ["TlsStream", "server_context"]

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""By the values of Kafka's `ssl.client.auth`."""

_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Those that RFC 2253 has."""


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Returns what the connections of a listener share.

    Raises:
        ListenError: a file cannot be read, or key and certificate do not match.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate, settings.key, settings.password)
        if settings.authorities is not None:
            context.load_verify_locations(settings.authorities)
        context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    except KeyError:
        known = ", ".join(_CLIENT_AUTH)
        raise ListenError(
            f"client_auth is {settings.client_auth!r}, expected one of {known}"
        ) from None
    except OSError as error:
        files = [settings.certificate, settings.key, settings.authorities]
        named = ", ".join(str(file) for file in files if file is not None)
        raise ListenError(f"cannot use {named} for TLS: {error.strerror or error}") from error
    if context.verify_mode != ssl.CERT_NONE and settings.authorities is None:
        raise ListenError(f"client_auth is {settings.client_auth!r} and no authorities are given")
    return context


class TlsStream:
    """The server's side of one connection.

    Attributes:
        is_ready: whether the handshake is done.
        is_at_end: whether the peer has said that it sends no more.
        fault: why the connection has to end; empty until then.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "fault", "is_at_end", "is_ready")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_ready = False
        self.is_at_end = False
        self.fault = ""

    def open(self, data: bytes) -> bytes:
        """Takes bytes off the network and returns what they say, once the handshake is done."""
        self._incoming.write(data)
        opened = []
        try:
            if not self.is_ready:
                self._tls.do_handshake()
                self.is_ready = True
            while chunk := self._tls.read(1 << 16):
                opened.append(chunk)
            self.is_at_end = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_at_end = True
        except ssl.SSLError as error:
            self.fault = f"TLS: {error.reason or error}"
        return b"".join(opened)

    def to_send(self) -> bytes:
        """Returns what the handshake, or an alert, has for the peer."""
        return self._outgoing.read()

    def seal(self, parts: Sequence[bytes | bytearray | memoryview]) -> bytes:
        """Returns bytes for the network, fewer where there is a `fault`."""
        try:
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[self._tls.write(view) :]
        except ssl.SSLError as error:
            self.fault = f"TLS: {error.reason or error}"
        return self._outgoing.read()

    def end(self) -> bytes:
        """Returns what says that nothing more is sent, so that no end is taken for a cut."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()

    def subject(self) -> str:
        """Returns the distinguished name of the peer's certificate, as RFC 2253 writes it."""
        certificate: Any = self._tls.getpeercert() or {}
        pairs = [
            "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in rdn)
            for rdn in certificate.get("subject", ())
        ]
        return ",".join(reversed(pairs))


def _escaped(value: str) -> str:
    text = "".join(f"\\{char}" if char in '\\,+"<>;' else char for char in value)
    if text[:1] in {"#", " "}:
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if len(text) > 1 and text.endswith(" ") else text
