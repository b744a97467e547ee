"""The settings of listeners: which there are, how they speak TLS, whom they let in.

A setting of `OF_A_LISTENER` may be given for one listener, as
``listener.name.<name in small letters>.<setting>``, where it counts before that of all.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.configs.setting import INT, LIST, LONG, STRING, Setting

__all__ = ["OF_A_LISTENER", "SECURITY_SETTINGS", "UNSUPPORTED_SECURITY", "split_name"]

PREFIX: Final = "listener.name."
JAAS: Final = "sasl.jaas.config"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

SECURITY_SETTINGS: Final = (
    Setting(
        "listeners", STRING, "",
        documentation="Where clients connect, as NAME://host:port, separated by commas.",
    ),
    Setting(
        "advertised.listeners", STRING, "",
        documentation="What clients are told to connect to, where that is something else.",
    ),
    Setting(
        "listener.security.protocol.map", STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        documentation="The security protocol of each listener, as NAME:PROTOCOL.",
    ),
    Setting(
        "controller.listener.names", LIST, "",
        documentation="Listeners of a controller; none of them is opened here.",
    ),
    Setting(
        "sasl.enabled.mechanisms", LIST, ",".join(MECHANISMS), choices=MECHANISMS,
        documentation="The SASL mechanisms that are offered.",
    ),
    Setting(
        JAAS, STRING, "", is_sensitive=True,
        documentation="A login module whose options user_NAME are the passwords of users.",
    ),
    Setting(
        "connections.max.reauth.ms", LONG, "0",
        documentation="When a client has to authenticate again; 0 for never.",
    ),
    Setting(
        "sasl.server.max.receive.size", INT, "524288", 1, 524_288,
        documentation="The largest request before its client is known.",
    ),
    Setting(
        "ssl.client.auth", STRING, "none", choices=("none", "requested", "required"),
        documentation="Whether clients show a certificate.",
    ),
    Setting(
        "ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", choices=("TLSv1.2", "TLSv1.3"),
        documentation="The versions of TLS.",
    ),
    Setting(
        "ssl.principal.mapping.rules", STRING, "DEFAULT",
        documentation="How the subject of a client's certificate becomes the name of a user.",
    ),
    Setting(
        "ssl.keystore.type", STRING, "", choices=("", "PEM", "JKS", "PKCS12"),
        documentation="The format of the key store; PEM is supported.",
    ),
    Setting(
        "ssl.keystore.location", STRING, "",
        documentation="The file of the key and its certificates.",
    ),
    Setting(
        "ssl.keystore.certificate.chain", STRING, "",
        documentation="The certificate, and those between it and its authority, in PEM.",
    ),
    Setting(
        "ssl.keystore.key", STRING, "", documentation="The key, in PEM.", is_sensitive=True,
    ),
    Setting(
        "ssl.keystore.password", STRING, "", documentation="Of the key store.", is_sensitive=True,
    ),
    Setting("ssl.key.password", STRING, "", documentation="Of the key.", is_sensitive=True),
    Setting(
        "ssl.truststore.type", STRING, "", choices=("", "PEM", "JKS", "PKCS12"),
        documentation="The format of the trust store; PEM is supported.",
    ),
    Setting(
        "ssl.truststore.location", STRING, "",
        documentation="The file of the authorities that sign the certificates of clients.",
    ),
    Setting(
        "ssl.truststore.certificates", STRING, "",
        documentation="The authorities that sign the certificates of clients, in PEM.",
    ),
    Setting(
        "ssl.truststore.password", STRING, "", documentation="Of the trust store.",
        is_sensitive=True,
    ),
)  # fmt: skip

OF_A_LISTENER: Final = frozenset(
    setting.name for setting in SECURITY_SETTINGS if setting.name.startswith("ssl.")
) | {JAAS, "sasl.enabled.mechanisms", "connections.max.reauth.ms"}
"""Settings that a listener may have for itself."""

UNSUPPORTED_SECURITY: Final = (
    "inter.broker.listener.name", "principal.builder.class", "sasl.client.callback.handler.class",
    "sasl.kerberos.principal.to.local.rules", "sasl.kerberos.service.name",
    "sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol",
    "security.inter.broker.protocol", "security.providers", "ssl.allow.dn.changes",
    "ssl.allow.san.changes", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider",
    "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
)  # fmt: skip
"""Settings that have no effect here."""


def split_name(name: str) -> tuple[str, str, str] | None:
    """Returns listener, mechanism and setting of a name for one listener; `None` for others.

    The mechanism is empty where the setting is not of one.

    >>> from ottla.broker.configs.security import split_name
    >>> split_name("listener.name.outside.scram-sha-256.sasl.jaas.config")
    ('outside', 'SCRAM-SHA-256', 'sasl.jaas.config')
    >>> split_name("listener.name.outside.ssl.client.auth")
    ('outside', '', 'ssl.client.auth')
    """
    if not name.startswith(PREFIX):
        return None
    listener, _, setting = name.removeprefix(PREFIX).partition(".")
    mechanism, _, of_mechanism = setting.partition(".")
    if of_mechanism == JAAS:
        return listener, mechanism.upper(), JAAS
    return listener, "", setting
