"""What a broker knows of a connection, and the error that ends one."""

from __future__ import annotations

__all__ = ["ANONYMOUS", "CloseConnectionError", "Connection"]

ANONYMOUS = "User:ANONYMOUS"
UNKNOWN = "unknown"


class CloseConnectionError(Exception):
    """The peer gets no answer and loses its connection, as from Kafka.

    Attributes:
        reason: what it did, for the log; never shown to the peer.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Connection:
    """One connection of a client.

    Attributes:
        listener: name of the listener that accepted it.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        host: address of the peer, without port.
        principal: who the peer is, ``User:ANONYMOUS`` until it has proved to be someone.
        software_name, software_version: what ApiVersions said (KIP-511), ``unknown`` until then.
        connection_id: both ends of it, as logs of requests name connections.
        uses_sasl: whether it has to authenticate.
        needs_authentication: whether requests other than those of SASL are refused.
        refusal: why it is to end, once what is answered is sent; empty where it is not.
        sasl: the state of an authentication, owned by `ottla.broker.sasl`.
    """

    __slots__ = (
        "connection_id",
        "host",
        "listener",
        "needs_authentication",
        "principal",
        "refusal",
        "sasl",
        "security_protocol",
        "software_name",
        "software_version",
        "uses_sasl",
    )

    def __init__(
        self,
        host: str,
        *,
        listener: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        principal: str = ANONYMOUS,
    ) -> None:
        self.host = host
        self.listener = listener
        self.security_protocol = security_protocol
        self.principal = principal
        self.connection_id = ""
        self.software_name = UNKNOWN
        self.software_version = UNKNOWN
        self.uses_sasl = self.needs_authentication = security_protocol.startswith("SASL")
        self.refusal = ""
        self.sasl: object | None = None
