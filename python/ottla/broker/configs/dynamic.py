"""Settings of a broker that change while it runs (KIP-226).

A client changes those of one broker, or those of all brokers of the cluster; the first count before
the second, and both before what the broker was started with. Which settings may change is Kafka's
list (`CLUSTER_WIDE`, `PER_BROKER`); of these, `_ONLY_AT_THE_START` has no effect here later and is
refused as what Kafka cannot change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.broker import BROKER_SETTINGS
from ottla.broker.configs.security import JAAS, split_name
from ottla.broker.configs.setting import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.configs.setting import Setting

__all__ = [
    "ALL_BROKERS",
    "CLUSTER_WIDE",
    "PER_BROKER",
    "DynamicSettings",
    "check_dynamic",
    "dynamic_setting",
]

ALL_BROKERS: Final = ""
"""The name of the resource that has the settings of all brokers."""

CLUSTER_WIDE: Final = frozenset(
    {
        "background.threads", "compression.gzip.level", "compression.lz4.level",
        "compression.type", "compression.zstd.level", "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor", "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second", "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio", "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads", "log.cleanup.policy", "log.flush.interval.messages",
        "log.flush.interval.ms", "log.index.interval.bytes", "log.index.size.max.bytes",
        "log.local.retention.bytes", "log.local.retention.ms",
        "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type", "log.preallocate", "log.retention.bytes",
        "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms", "log.segment.bytes",
        "log.segment.delete.delay.ms", "max.connection.creation.rate", "max.connections",
        "max.connections.per.ip", "max.connections.per.ip.overrides", "message.max.bytes",
        "metric.reporters", "min.insync.replicas", "num.io.threads", "num.network.threads",
        "num.recovery.threads.per.data.dir", "num.replica.fetchers",
        "producer.id.expiration.ms", "transaction.partition.verification.enable",
        "unclean.leader.election.enable",
    }
)  # fmt: skip
"""Settings that Kafka changes for one broker or for all."""

PER_BROKER: Final = frozenset(
    {
        "listener.security.protocol.map", "listeners", "principal.builder.class",
        "sasl.enabled.mechanisms", JAAS, "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name", "sasl.mechanism.inter.broker.protocol",
        "ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class",
        "ssl.key.password", "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain",
        "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password",
        "ssl.keystore.type", "ssl.protocol", "ssl.provider",
        "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
        "ssl.truststore.type",
    }
)  # fmt: skip
"""Settings that Kafka changes for one broker alone, since brokers differ in them."""

_WITH_A_PREFIX: Final = frozenset(
    name for name in PER_BROKER if name.startswith("ssl.") and name != "ssl.client.auth"
)
"""Those of them that Kafka changes for a listener alone."""

_ONLY_AT_THE_START: Final = frozenset(PER_BROKER - {"sasl.enabled.mechanisms"}) | {
    "transaction.partition.verification.enable"
}


def dynamic_setting(name: str) -> Setting | None:
    """Returns a setting that can change while the broker runs; `None` for any other name."""
    of = _setting_of(name)
    if of in _ONLY_AT_THE_START or not (of in CLUSTER_WIDE or of in PER_BROKER):
        return None
    setting = BROKER_SETTINGS.get(of)
    return None if setting is None else setting._replace(name=name)


def _setting_of(name: str) -> str:
    """Returns the setting of a name, which may be that of one listener."""
    return (split_name(name) or ("", "", name))[2]


def check_dynamic(names: Iterable[str], *, is_of_all: bool) -> None:
    """Refuses settings that cannot change while the broker runs.

    Args:
        names: of settings that are known.
        is_of_all: whether they are those of all brokers.

    Raises:
        InvalidConfigError: which of them, and why.
    """
    given = [*names]
    settings = {name: _setting_of(name) for name in given}
    dynamic = CLUSTER_WIDE | PER_BROKER
    _refuse(
        "Cannot update these configs dynamically",
        [name for name in given if settings[name] not in dynamic],
    )
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        [name for name in given if name in _WITH_A_PREFIX],
    )
    if is_of_all:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name in given if settings[name] in PER_BROKER],
        )
    _refuse(
        "Cannot update these configs dynamically, they have an effect here when the broker starts",
        [name for name in given if settings[name] in _ONLY_AT_THE_START],
    )
    _refuse(
        "These configs have no effect here",
        [name for name in given if dynamic_setting(name) is None],
    )


def _refuse(why: str, names: list[str]) -> None:
    if names:
        raise InvalidConfigError(f"{why}: [{', '.join(names)}]")


class DynamicSettings:
    """The settings of a broker by where they come from.

    Args:
        static: what it was started with.
        changed: what clients have changed, by the name of the resource: `ALL_BROKERS`, or its id.
        node_id: of the broker.

    Attributes:
        static: as given.
    """

    def __init__(
        self, static: BrokerConfig, changed: Mapping[str, Mapping[str, str]], node_id: int
    ) -> None:
        self.static = static
        self._names = (ALL_BROKERS, str(node_id))
        self._changed = {name: dict(changed.get(name, {})) for name in self._names}

    def of_all(self) -> Mapping[str, str]:
        """Returns what was changed for all brokers."""
        return self._changed[self._names[0]]

    def own(self) -> Mapping[str, str]:
        """Returns what was changed for this broker."""
        return self._changed[self._names[1]]

    def of(self, name: str) -> Mapping[str, str]:
        """Returns what was changed of a resource."""
        return self._changed[name]

    def config(self) -> BrokerConfig:
        """Returns the settings that are in force."""
        changed = {**self.of_all(), **self.own()}
        return self.static.with_texts(changed) if changed else self.static

    def replaced(self, name: str, settings: Mapping[str, str]) -> DynamicSettings:
        """Returns these settings with those of a resource replaced."""
        changed = {**self._changed, name: settings}
        return DynamicSettings(self.static, changed, int(self._names[1]))
