"""How a listener is described."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

__all__ = ["ListenerSettings", "TlsSettings"]


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
