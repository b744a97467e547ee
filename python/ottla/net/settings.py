"""How a listener is described, and how Kafka's settings describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os
    from typing import TypeAlias

    from ottla.broker.configs.broker import BrokerConfig

    FileName: TypeAlias = str | os.PathLike[str]

__all__ = ["ListenerSettings", "PemText", "TlsSettings", "listeners_of"]


TO_PEM = (
    "keytool -importkeystore -srckeystore {0} -destkeystore {0}.p12 -deststoretype PKCS12 && "
    "openssl pkcs12 -in {0}.p12 -nodes -out {0}.pem"
)
"""The command that makes PEM of a key store of Java or of PKCS12."""

AUTHORITIES_TO_PEM = "keytool -list -rfc -keystore {0} > {0}.pem"
"""The same for a trust store."""


class PemText(NamedTuple):
    """What would be in a file of PEM.

    Attributes:
        text: certificates or a key.
        source: the setting that it is from, for errors.
    """

    text: str
    source: str


class TlsSettings(NamedTuple):
    """How a listener speaks TLS; files and texts are in PEM.

    Attributes:
        certificate: the certificate, and those between it and its authority.
        key: its key; by default it is in the file of the certificate.
        password: of the key.
        authorities: certificates of those who may sign the clients' ones.
        client_auth: ``none``, ``requested`` or ``required``, as Kafka's `ssl.client.auth`.
        versions: of TLS that are spoken.
    """

    certificate: FileName | PemText
    key: FileName | PemText | None = None
    password: str | None = None
    authorities: FileName | PemText | None = None
    client_auth: str = "none"
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")


class ListenerSettings(NamedTuple):
    """A listener to open.

    Attributes:
        host: address or name of an interface; empty for all.
        port: 0 for a free one.
        name: as Kafka's configuration names listeners.
        security_protocol: what the broker is told of it. TLS is spoken where `tls` is given.
        tls: certificates.
        advertised: host and port that clients are told, where these are others.
    """

    host: str = "127.0.0.1"
    port: int = 0
    name: str = "PLAINTEXT"
    security_protocol: str = "PLAINTEXT"
    tls: TlsSettings | None = None
    advertised: tuple[str, int] | None = None


def listeners_of(config: BrokerConfig, *, host: str, port: int) -> tuple[ListenerSettings, ...]:
    """Returns the listeners of a broker.

    Args:
        config: its settings.
        host, port: where to listen if the settings name no listeners.

    Raises:
        InvalidConfigError: Kafka would refuse the settings, or they ask for what is not there.
    """
    from ottla.broker.configs.listeners import Endpoint, named_listeners

    default = Endpoint("PLAINTEXT", host, port)
    return tuple(
        ListenerSettings(
            each.endpoint.host,
            each.endpoint.port,
            each.endpoint.name,
            each.security_protocol,
            _tls(config, each.endpoint.name) if each.security_protocol.endswith("SSL") else None,
            each.advertised,
        )
        for each in named_listeners(config, default)
    )


def _tls(config: BrokerConfig, listener: str) -> TlsSettings:
    from ottla.broker.configs.setting import InvalidConfigError

    own = config.of_listener(listener)
    for store, conversion in (("keystore", TO_PEM), ("truststore", AUTHORITIES_TO_PEM)):
        kind = own.text(f"ssl.{store}.type")
        if kind not in {"", "PEM"}:
            command = conversion.format(own.text(f"ssl.{store}.location"))
            raise InvalidConfigError(
                f"ssl.{store}.type is {kind}, and PEM is read here: convert it by: {command}"
            )
    certificate = _pem(own, "ssl.keystore.location", "ssl.keystore.certificate.chain")
    if certificate is None:
        raise InvalidConfigError(
            f"The listener {listener} speaks TLS and has no certificate: set "
            "ssl.keystore.location, or ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    key = own.text("ssl.keystore.key")
    if isinstance(certificate, PemText) and not key:
        raise InvalidConfigError("ssl.keystore.certificate.chain is set without ssl.keystore.key")
    authorities = _pem(own, "ssl.truststore.location", "ssl.truststore.certificates")
    client_auth = own.text("ssl.client.auth")
    if client_auth != "none" and authorities is None:
        raise InvalidConfigError(
            f"ssl.client.auth is {client_auth}, and nothing says who signs the certificates of "
            "clients: set ssl.truststore.location or ssl.truststore.certificates"
        )
    return TlsSettings(
        certificate,
        PemText(key, "ssl.keystore.key") if key else None,
        own.text("ssl.key.password") or own.text("ssl.keystore.password") or None,
        authorities,
        client_auth,
        own.names("ssl.enabled.protocols"),
    )


def _pem(config: BrokerConfig, of_file: str, of_text: str) -> str | PemText | None:
    if config.text(of_text):
        return PemText(config.text(of_text), of_text)
    return config.text(of_file) or None
