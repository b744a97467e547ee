"""A broker with its partitions behind a server."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.features import FEATURES
from ottla.broker.image import BrokerNode
from ottla.broker.loggers import Loggers
from ottla.broker.plane import DataPlane
from ottla.broker.releases import apis_of, defaults_of, features_of, parse_release
from ottla.broker.uuids import base64_of, random_uuid
from ottla.errors import ServerStoppedError
from ottla.net.clock import Clock
from ottla.net.limits import Limits
from ottla.net.served import authority
from ottla.net.server import Server
from ottla.net.settings import listeners_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.broker.data.opened import OpenedData
    from ottla.broker.state import Random
    from ottla.net.outcome import Outcome
    from ottla.net.served import Address
    from ottla.net.settings import ListenerSettings

__all__ = ["advertised_host", "broker_server", "endpoints_of", "limits_of"]

LOCAL = "127.0.0.1"
_EVERY_INTERFACE = ("", "0.0.0.0", "::")  # noqa: S104 - what is listened on, nobody can connect to

_WITH_OWN_RULES = (4, 1)
"""The first release whose own rules the engine knows; older ones are judged by the newest."""
_REFUSES_UNKNOWN_PRODUCERS = (2, 4)
"""The last release that answers UNKNOWN_PRODUCER_ID (KIP-360)."""


def broker_server(
    config: Mapping[str, str] | None = None,
    *,
    listeners: Sequence[ListenerSettings] | None = None,
    host: str = LOCAL,
    port: int = 0,
    clock: Clock | None = None,
    kafka_version: str | None = None,
    profile: str = "strict",
    cluster_id: str | None = None,
    seed: int | None = None,
    log: Callable[[str], None] | None = None,
    data: str | None = None,
) -> Server[Broker]:
    """Returns a server of a new broker, which listens, and serves once it is started.

    Args:
        config: settings by Kafka's names.
        listeners: where to listen; by default where the settings say.
        host, port: where to listen if these do not say; 0 for a free port.
        clock: the broker's time.
        kafka_version: the release to imitate; the newest by default.
        profile: ``"strict"``, or ``"kafka"`` for Kafka's own verdicts, oddities included.
        cluster_id: a random one by default.
        seed: of all random numbers.
        log: takes a line about peers and the system.
        data: the directory of its logs; by default what ``log.dirs`` says, or memory.

    Raises:
        LogDirectoryError: the directory cannot be had, or not be read.
        InvalidConfigError: a setting that is not known, or may not have this value.
        ListenError: a listener cannot have its address.
        ValueError: a release that cannot be imitated.
    """
    clock = clock or Clock()
    random = _random_of(seed)
    line = None if kafka_version is None else parse_release(kafka_version)
    defaults = {} if line is None else defaults_of(line)
    settings = BrokerConfig({**defaults, **(config or {})})
    opened = listeners_of(settings, host=host, port=port) if listeners is None else listeners
    plane = _plane(settings, profile, kafka_version, random.getrandbits(32))
    path = data or _log_directory(settings)
    make = _Making(settings, plane, random, clock, line, opened, cluster_id, None)
    loggers = Loggers()
    kept = make.open_data(path, log or _nobody) if path else None
    make = make._replace(kept=kept)
    try:
        server = Server(
            make.broker,
            opened,
            clock=clock,
            limits=limits_of(settings),
            log=loggers.warning(log) if log else None,
            resign=lambda broker: broker.resign(clock.now_ms()),
            finish=kept.close if kept else None,
        )
    except BaseException:
        if kept:
            kept.abandon()
        raise
    broker = server.served
    broker.loggers = loggers
    server.set_limits(limits_of(broker.config))
    broker.settings_watchers.append(lambda changed: server.set_limits(limits_of(changed)))
    if kept:
        kept.storage.flusher.submit = partial(_work, server)
        # No answer that waits for a sync waits for a compaction.
        server.served.cleaner.submit = partial(_work, server, is_slow=True)
    return server


class _SystemRandom:
    """Numbers that nobody can predict; `random` takes a millisecond to load."""

    def getrandbits(self, k: int, /) -> int:
        """Returns a number of that many bits."""
        return int.from_bytes(os.urandom((k + 7) // 8), "big") >> -k % 8


def _random_of(seed: int | None) -> Random:
    if seed is None:
        return _SystemRandom()
    from random import Random

    return Random(seed)  # noqa: S311 - a test's own seed


class _Making(NamedTuple):
    """What a broker is made of, once it is known where it listens."""

    settings: BrokerConfig
    plane: DataPlane
    random: Random
    clock: Clock
    line: tuple[int, int] | None
    listeners: Sequence[ListenerSettings]
    cluster_id: str | None
    kept: OpenedData | None

    def open_data(self, path: str, say: Callable[[str], None]) -> OpenedData:
        """Returns what a log directory holds."""
        # A broker in memory loads none of it.
        from ottla.broker.data.opened import OpenedData

        settings = self.settings
        return OpenedData(
            path,
            self.plane,
            cluster_id=self.cluster_id,
            node_id=settings.number("broker.id") if settings.is_set("broker.id") else None,
            default_node_id=settings.number("broker.id"),
            release=self.line,
            random_bits=self.random.getrandbits,
            clock=self.clock.now_ms,
            say=say,
        )

    def broker(self, addresses: Sequence[Address]) -> Broker:
        """Returns the broker, with everything that it kept."""
        settings, kept = self.settings, self.kept
        node = BrokerNode(
            kept.directory.node_id if kept else settings.number("broker.id"),
            {
                address.listener: each.advertised or (advertised_host(address.host), address.port)
                for each, address in zip(self.listeners, addresses, strict=True)
            },
            settings.text("broker.rack") or None,
        )
        of_cluster = kept.directory.cluster_id if kept else self.cluster_id
        broker = Broker(
            node,
            settings,
            plane=self.plane,
            random=self.random,
            cluster_id=of_cluster or base64_of(random_uuid(self.random.getrandbits)),
            now_ms=self.clock.now_ms(),
            apis=None if self.line is None else apis_of(self.line),
            features=FEATURES if self.line is None else features_of(self.line),
            storage=kept.storage if kept else None,
            keeper=kept.keeper if kept else None,
        )
        if kept:
            kept.restore(broker)
        return broker


def endpoints_of(server: Server[Broker]) -> dict[str, str]:
    """Returns where clients connect, as they are told, by the name of the listener."""
    broker = server.served
    endpoints = broker.image.brokers[broker.node_id].endpoints
    return {name: authority(*place) for name, place in endpoints.items()}


def advertised_host(host: str) -> str:
    """Returns what clients are told to connect to, where a listener is on a host."""
    return "localhost" if host in _EVERY_INTERFACE else host


def _plane(
    settings: BrokerConfig, profile: str, kafka_version: str | None, session_seed: int
) -> DataPlane:
    line = None if kafka_version is None else parse_release(kafka_version)
    is_of_old = line is not None and line < _WITH_OWN_RULES
    refuses_unknown = line is not None and line <= _REFUSES_UNKNOWN_PRODUCERS
    return DataPlane(
        profile=profile,
        kafka_version=None if is_of_old else kafka_version,
        unknown_producer="unknown" if refuses_unknown else "auto",
        transaction_verification=settings.flag("transaction.partition.verification.enable"),
        session_seed=session_seed,
    )


def _log_directory(settings: BrokerConfig) -> str:
    """Returns the directory that the settings name, or nothing.

    Raises:
        InvalidConfigError: they name more than one.
    """
    named = settings.names("log.dirs") or settings.names("log.dir")
    if len(named) > 1:
        raise InvalidConfigError(
            f"log.dirs names {len(named)} directories ({', '.join(named)}): one is supported"
        )
    return named[0] if named else ""


def _work(
    server: Server[Broker],
    job: Callable[[], None],
    then: Callable[[BaseException | None], None],
    *,
    is_slow: bool = False,
) -> None:
    def take_back(_broker: Broker, outcome: Outcome[None]) -> None:
        then(outcome.error)

    # What is left at the stop is synced by it.
    with suppress(ServerStoppedError):
        server.work(job, take_back, is_slow=is_slow)


def _nobody(_line: str) -> None:
    """Hears nothing."""


def limits_of(config: BrokerConfig) -> Limits:
    """Returns the bounds at the sockets that a broker's settings ask for."""
    limits = Limits(
        max_frame_bytes=config.number("socket.request.max.bytes"),
        max_early_frame_bytes=config.number("sasl.server.max.receive.size"),
        max_idle_ms=config.number("connections.max.idle.ms"),
        max_connections_per_host=config.number("max.connections.per.ip"),
    )
    if not config.is_set("max.connections"):
        return limits
    return limits._replace(max_connections=config.number("max.connections"))
