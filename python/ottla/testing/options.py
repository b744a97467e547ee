"""What a broker for tests is told before it begins, and its server, in whichever process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.net.clock import Clock
from ottla.net.serving import broker_server, endpoints_of
from ottla.net.settings import ListenerSettings, TlsSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.broker import Broker as Core
    from ottla.net.operations import Operations
    from ottla.net.server import Server

__all__ = ["Options", "address_of", "prepare", "server_of"]

SALT_BYTES = 16


class Options(NamedTuple):
    """Plain values, see `ottla.testing.Broker`.

    Attributes:
        certificate: a file with the certificate and its key, where TLS is spoken.
        data: the directory of its logs, where they are not in memory.
    """

    topics: Mapping[str, int]
    config: Mapping[str, str]
    host: str
    port: int
    kafka_version: str | None
    profile: str
    frozen_at_ms: int | None
    seed: int | None
    users: Mapping[str, str]
    certificate: str | None = None
    data: str | None = None

    @property
    def security_protocol(self) -> str:
        """Of its listener."""
        return ("SASL_" if self.users else "") + ("SSL" if self.certificate else "PLAINTEXT")


def server_of(options: Options, log: Callable[[str], None] | None = None) -> Server[Core]:
    """Returns a server that listens, and serves once it is started.

    Raises:
        InvalidConfigError: a setting that Kafka does not know, or may not have this value.
        ListenError: it cannot listen there.
        ValueError: a release that cannot be imitated.
    """
    # Kafka's own `security.protocol` says SSL without SASL, and SASL_SSL with it.
    tls = None if options.certificate is None else TlsSettings(options.certificate)
    listener = ListenerSettings(
        options.host, options.port, security_protocol=options.security_protocol, tls=tls
    )
    server = broker_server(
        options.config,
        listeners=(listener,),
        clock=Clock(options.frozen_at_ms),
        kafka_version=options.kafka_version,
        profile=options.profile,
        seed=options.seed,
        log=log,
        data=options.data,
    )
    if log is not None:
        for name in server.served.config.ignored:
            log(f"{name} has no effect here")
    return server


def address_of(server: Server[Core]) -> str:
    """Returns where clients connect, which is what the broker tells them of itself."""
    return next(iter(endpoints_of(server).values()))


def prepare(options: Options, server: Server[Core], operations: Operations) -> None:
    """Makes topics and users on a server that has started.

    Raises:
        KafkaError: a topic that Kafka would not create.
    """

    def add_users(broker: Core) -> None:
        for user, password in options.users.items():
            salt = broker.random.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, "big")
            broker.credentials.add_user(user, password, random_bytes=salt)

    if options.users:
        server.run(add_users)
    known = operations.topics() if options.data else {}
    for name, partitions in options.topics.items():
        if name not in known:
            operations.create_topic(name, partitions)
