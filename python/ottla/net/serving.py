"""A broker with its partitions behind a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.image import BrokerNode
from ottla.broker.plane import DataPlane
from ottla.broker.releases import apis_of, parse_release
from ottla.net.clock import Clock
from ottla.net.limits import Limits
from ottla.net.server import Server
from ottla.net.settings import ListenerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.net.served import Address

__all__ = ["broker_server", "limits_of"]

_WITH_OWN_RULES = (4, 1)
"""The first release whose own rules the engine knows; older ones are judged by the newest."""
_REFUSES_UNKNOWN_PRODUCERS = (2, 4)
"""The last release that answers UNKNOWN_PRODUCER_ID (KIP-360)."""


def broker_server(
    config: Mapping[str, str] | None = None,
    *,
    listeners: Sequence[ListenerSettings] = (ListenerSettings(),),
    clock: Clock | None = None,
    kafka_version: str | None = None,
    profile: str = "strict",
    cluster_id: str | None = None,
    seed: int | None = None,
    log: Callable[[str], None] | None = None,
) -> Server[Broker]:
    """Returns a server of a new broker, which listens, and serves once it is started.

    Args:
        config: settings by Kafka's names.
        listeners: where to listen.
        clock: the broker's time.
        kafka_version: the release to imitate; the newest by default.
        profile: ``"strict"``, or ``"kafka"`` for Kafka's own verdicts, oddities included.
        cluster_id: a random one by default.
        seed: of all random numbers.
        log: takes a line about peers and the system.

    Raises:
        InvalidConfigError: a setting that is not known, or may not have this value.
        ListenError: a listener cannot have its address.
        ValueError: a release that cannot be imitated.
    """
    from random import Random, SystemRandom

    clock = clock or Clock()
    random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - a test's own seed
    settings = BrokerConfig(config)
    line = None if kafka_version is None else parse_release(kafka_version)
    is_of_old = line is not None and line < _WITH_OWN_RULES
    plane = DataPlane(
        profile=profile,
        kafka_version=None if is_of_old else kafka_version,
        unknown_producer="unknown"
        if line is not None and line <= _REFUSES_UNKNOWN_PRODUCERS
        else "auto",
        transaction_verification=settings.flag("transaction.partition.verification.enable"),
        session_seed=random.getrandbits(32),
    )

    def make(addresses: Sequence[Address]) -> Broker:
        node = BrokerNode(
            settings.number("broker.id"),
            {address.listener: (address.host, address.port) for address in addresses},
            settings.text("broker.rack") or None,
        )
        return Broker(
            node,
            settings,
            plane=plane,
            random=random,
            cluster_id=cluster_id or _cluster_id(random.getrandbits(128)),
            now_ms=clock.now_ms(),
            apis=None if line is None else apis_of(line),
        )

    return Server(make, listeners, clock=clock, limits=limits_of(settings), log=log)


def limits_of(config: BrokerConfig) -> Limits:
    """Returns the bounds at the sockets that a broker's settings ask for."""
    limits = Limits(
        max_frame_bytes=config.number("socket.request.max.bytes"),
        max_idle_ms=config.number("connections.max.idle.ms"),
        max_connections_per_host=config.number("max.connections.per.ip"),
    )
    if not config.is_set("max.connections"):
        return limits
    return limits._replace(max_connections=config.number("max.connections"))


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _cluster_id(number: int) -> str:
    """Returns 22 characters, as many as Kafka's base64 of a UUID has."""
    digits = []
    for _ in range(22):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)
