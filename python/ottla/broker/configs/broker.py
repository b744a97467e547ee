"""The settings of the broker: Kafka's names and defaults, and what is not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.security import (
    JAAS,
    MECHANISMS,
    OF_A_LISTENER,
    SECURITY_SETTINGS,
    UNSUPPORTED_SECURITY,
    split_name,
)
from ottla.broker.configs.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_LONG,
    STRING,
    InvalidConfigError,
    Setting,
    Value,
    parse,
)
from ottla.broker.configs.topic import TOPIC_SETTINGS
from ottla.broker.configs.without_effect import SELDOM_SET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["BROKER_SETTINGS", "BrokerConfig"]

_OWN = (
    Setting(
        "auto.create.topics.enable", BOOLEAN, "true",
        documentation="Whether a topic that a client asks for is created.",
    ),
    Setting(
        "num.partitions", INT, "1", 1,
        documentation="How many partitions a topic gets that does not say.",
    ),
    Setting(
        "default.replication.factor", INT, "1", 1,
        documentation="How many replicas a partition gets that does not say.",
    ),
    Setting("delete.topic.enable", BOOLEAN, "true", documentation="Whether topics can be deleted."),
    Setting(
        "log.retention.check.interval.ms", LONG, "300000", 1,
        documentation="How often old segments are looked for.",
    ),
    Setting(
        "producer.id.expiration.ms", INT, "86400000", 1,
        documentation="How long an idle producer is remembered.",
    ),
    Setting(
        "producer.id.expiration.check.interval.ms", INT, "600000", 1,
        documentation="How often idle producers are looked for.",
    ),
    Setting(
        "transaction.partition.verification.enable", BOOLEAN, "true",
        documentation="Whether a transaction's first batch is verified with its coordinator.",
    ),
    Setting(
        "transaction.max.timeout.ms", INT, "900000", 1,
        documentation="The longest time-out that a producer may ask for.",
    ),
    Setting(
        "transactional.id.expiration.ms", INT, "604800000", 1,
        documentation="How long an unused transactional id is remembered.",
    ),
    Setting(
        "transaction.state.log.num.partitions", INT, "50", 1,
        documentation="Partitions of __transaction_state.",
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000", 1,
        documentation="How often transactions past their time-out are looked for.",
    ),
    Setting(
        "offsets.topic.num.partitions", INT, "50", 1,
        documentation="Partitions of __consumer_offsets.",
    ),
    Setting(
        "offset.metadata.max.bytes", INT, "4096",
        documentation="The largest metadata of a committed offset.",
    ),
    Setting(
        "offsets.retention.minutes", INT, "10080", 1,
        documentation="How long committed offsets of an empty group are kept.",
    ),
    Setting(
        "offsets.retention.check.interval.ms", LONG, "600000", 1,
        documentation="How often old committed offsets are looked for.",
    ),
    Setting(
        "group.initial.rebalance.delay.ms", INT, "0",
        documentation="How long the first member of a group waits for others.",
    ),
    Setting(
        "group.min.session.timeout.ms", INT, "6000",
        documentation="The shortest session time-out of a member.",
    ),
    Setting(
        "group.max.session.timeout.ms", INT, "1800000",
        documentation="The longest session time-out of a member.",
    ),
    Setting("group.max.size", INT, "2147483647", 1, documentation="The most members of a group."),
    Setting(
        "group.coordinator.rebalance.protocols", LIST, "classic,consumer",
        choices=("classic", "consumer"),
        documentation="The protocols of groups that are served.",
    ),
    Setting(
        "group.consumer.heartbeat.interval.ms", INT, "5000", 1,
        documentation="How often a member of a consumer group sends heartbeats.",
    ),
    Setting(
        "group.consumer.session.timeout.ms", INT, "45000", 1,
        documentation="When a silent member of a consumer group is removed.",
    ),
    Setting(
        "group.consumer.min.session.timeout.ms", INT, "45000", 1,
        documentation="The shortest session time-out that may be set for a consumer group.",
    ),
    Setting(
        "group.consumer.max.session.timeout.ms", INT, "60000", 1,
        documentation="The longest session time-out that may be set for a consumer group.",
    ),
    Setting(
        "group.consumer.min.heartbeat.interval.ms", INT, "5000", 1,
        documentation="The shortest time between heartbeats that may be set for a consumer group.",
    ),
    Setting(
        "group.consumer.max.heartbeat.interval.ms", INT, "15000", 1,
        documentation="The longest time between heartbeats that may be set for a consumer group.",
    ),
    Setting(
        "group.consumer.max.size", INT, "2147483647", 1,
        documentation="The most members of a consumer group.",
    ),
    Setting(
        "group.consumer.assignors", LIST, "uniform,range", choices=("uniform", "range"),
        documentation="The assignors of the broker, the default first.",
    ),
    Setting(
        "group.consumer.migration.policy", STRING, "bidirectional",
        choices=("disabled", "bidirectional", "downgrade", "upgrade"),
        documentation="Which groups may change between the two protocols.",
    ),
    Setting(
        "connections.max.idle.ms", LONG, "600000", 1,
        documentation="When a connection without requests is closed.",
    ),
    Setting(
        "max.connections", INT, "2147483647",
        documentation="The most connections of the broker.",
    ),
    Setting(
        "max.connections.per.ip", INT, "2147483647",
        documentation="The most connections of a client's address.",
    ),
    Setting(
        "socket.request.max.bytes", INT, "104857600", 1,
        documentation="The largest request.",
    ),
    Setting(
        "fetch.max.bytes", INT, "57671680", 1024,
        documentation="The largest answer to a fetch.",
    ),
    Setting(
        "max.incremental.fetch.session.cache.slots", INT, "1000",
        documentation="How many fetch sessions are kept.",
    ),
    Setting(
        "max.request.partition.size.limit", INT, "2000", 1,
        documentation="The most partitions that one answer of DescribeTopicPartitions has.",
    ),
    Setting("super.users", STRING, "", documentation="Principals that may do everything."),
    Setting(
        "allow.everyone.if.no.acl.found", BOOLEAN, "false",
        documentation="Whether what has no ACL is open to all.",
    ),
    Setting(
        "authorizer.class.name", STRING, "",
        documentation="Which authorizer decides; empty for none.",
    ),
    Setting("broker.id", INT, "1", 0, documentation="The id of this broker."),
    Setting("broker.rack", STRING, "", documentation="The rack of this broker."),
    Setting(
        "log.message.timestamp.difference.max.ms", LONG, str(MAX_LONG), 0,
        documentation="Both limits of a timestamp in one, as releases before 3.6 had it.",
    ),
    Setting(
        "log.dirs", STRING, "",
        documentation="The directory in which logs are; empty to have them in memory.",
    ),
    Setting("log.dir", STRING, "", documentation="The same, where log.dirs is not given."),
    Setting(
        "log.flush.offset.checkpoint.interval.ms", INT, "60000", 0,
        documentation="How often the place is written from which logs are recovered.",
    ),
    Setting(
        "metadata.log.max.record.bytes.between.snapshots", LONG, "20971520", 1,
        documentation="Bytes of changes of topics and settings, at which they are summed up.",
    ),
    Setting(
        "metadata.max.retention.bytes", LONG, "104857600",
        documentation="The largest log of such changes; what is summed up is deleted above it.",
    ),
    Setting(
        "log.cleaner.backoff.ms", LONG, "15000", 0,
        documentation="How often logs to compact are looked for.",
    ),
    Setting(
        "log.cleaner.dedupe.buffer.size", LONG, "134217728", 1,
        documentation="Bytes for the keys of one compaction; what is past it is left to the next.",
    ),
    Setting("log.cleaner.enable", BOOLEAN, "true", documentation="Whether logs are compacted."),
    Setting(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, "1.7976931348623157E308",
        documentation="How fast compaction reads and writes.", is_supported=False,
    ),
)  # fmt: skip

_NODE_ID, _BROKER_ID = "node.id", "broker.id"
_UNSUPPORTED = (
    "process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers",
    "metadata.log.dir",
    "num.network.threads", "num.io.threads", "num.replica.fetchers", "background.threads",
    "socket.send.buffer.bytes", "socket.receive.buffer.bytes", "queued.max.requests",
    "num.recovery.threads.per.data.dir", "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr",
    "zookeeper.connect", "metric.reporters", "remote.log.storage.system.enable",
    "auto.leader.rebalance.enable", "compression.gzip.buffer", *SELDOM_SET, *UNSUPPORTED_SECURITY,
)  # fmt: skip
"""Settings that a ``server.properties`` often has, and that have no effect here."""

_HOURS_MS, _MINUTES_MS = 3_600_000, 60_000


def _synonyms() -> tuple[Setting, ...]:
    """Return the settings that topics fall back to, under their names for a broker."""
    return tuple(
        setting._replace(name=setting.synonym, synonym="")
        for setting in TOPIC_SETTINGS.values()
        if setting.synonym
    )


BROKER_SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting for setting in (*_OWN, *SECURITY_SETTINGS, *_synonyms())
}
"""By name."""

_COARSE = {
    "log.retention.hours": ("log.retention.ms", _HOURS_MS),
    "log.retention.minutes": ("log.retention.ms", _MINUTES_MS),
    "log.roll.hours": ("log.roll.ms", _HOURS_MS),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", _HOURS_MS),
}
"""The same settings in other units; the finer one wins where both are set."""


def _name_node(given: dict[str, str]) -> None:
    """Replaces ``node.id`` by ``broker.id``: both are the number of this broker."""
    if _NODE_ID not in given:
        return
    text = given.pop(_NODE_ID)
    parse(BROKER_SETTINGS[_BROKER_ID]._replace(name=_NODE_ID), text)
    if given.setdefault(_BROKER_ID, text) != text:
        raise InvalidConfigError(
            f"{_NODE_ID} is {text} and {_BROKER_ID} {given[_BROKER_ID]}: they are the same number"
        )


class BrokerConfig:
    """The settings of a broker.

    Args:
        texts: by Kafka's names, as in ``server.properties``.

    Attributes:
        ignored: names of settings that were given and have no effect here.

    Raises:
        InvalidConfigError: a name that Kafka does not know, with the nearest one that it does; or
            a value that it would refuse.

    >>> from ottla.broker.configs.broker import BrokerConfig
    >>> BrokerConfig({"num.partitions": "3"}).number("num.partitions")
    3
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        given = dict(texts or {})
        self._views: dict[str, BrokerConfig] = {}
        self._of_listeners = {name: given.pop(name) for name in [*given] if split_name(name)}
        self.ignored = tuple(sorted(name for name in given if name in _UNSUPPORTED))
        self._texts: dict[str, str] = {}
        _name_node(given)
        for name, (finer, factor) in _COARSE.items():
            if name in given:
                text = given.pop(name)
                parse(BROKER_SETTINGS[finer]._replace(name=name), text)
                given.setdefault(finer, str(int(text) * factor if int(text) >= 0 else -1))
        for name, text in given.items():
            if name not in _UNSUPPORTED:
                _check(name, name, text)
                self._texts[name] = text
        for name, text in self._of_listeners.items():
            _check_of_listener(name, text)

    def is_set(self, name: str) -> bool:
        """Whether a setting was given."""
        return name in self._texts

    def text(self, name: str) -> str:
        """Returns a setting as Kafka writes it."""
        return self._texts.get(name, BROKER_SETTINGS[name].default)

    def value(self, name: str) -> Value:
        """Returns a setting in its type."""
        return parse(BROKER_SETTINGS[name], self.text(name))

    def number(self, name: str) -> int:
        """Returns a setting that is a whole number."""
        return int(self.text(name))

    def flag(self, name: str) -> bool:
        """Returns a setting that is true or false."""
        return self.text(name).strip().lower() == "true"

    def names(self, name: str) -> tuple[str, ...]:
        """Returns a setting that is a list."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def of_listener(self, listener: str) -> BrokerConfig:
        """Returns these settings, with those that a listener has for itself in their place."""
        view = self._views.get(listener)
        if view is None:
            own = {
                setting: text
                for name, text in self._of_listeners.items()
                for of, mechanism, setting in [split_name(name) or ("", "", "")]
                if of == listener.lower() and not mechanism
            }
            view = BrokerConfig({**self._texts, **own}) if own else self
            self._views[listener] = view
        return view

    def logins(self) -> dict[tuple[str, str], str]:
        """Returns the login configurations, by listener in small letters, and by mechanism.

        Both are empty where it is for all.
        """
        found = {("", ""): self.text(JAAS)} if self.is_set(JAAS) else {}
        for name, text in self._of_listeners.items():
            listener, mechanism, setting = split_name(name) or ("", "", "")
            if setting == JAAS:
                found[listener, mechanism] = text
        return found

    def topic_text(self, name: str, configs: Mapping[str, str]) -> str:
        """Returns a topic's setting: its own, the broker's, or Kafka's default."""
        own = configs.get(name)
        if own is not None:
            return own
        setting = TOPIC_SETTINGS[name]
        return self.text(setting.synonym) if setting.synonym else setting.default

    def with_texts(self, texts: Mapping[str, str | None]) -> BrokerConfig:
        """Returns a configuration in which some settings are changed; `None` for the default."""
        changed: dict[str, str | None] = {**self._of_listeners, **self._texts, **texts}
        return BrokerConfig({name: text for name, text in changed.items() if text is not None})


def _check(name: str, given_name: str, text: str) -> None:
    setting = BROKER_SETTINGS.get(name)
    if setting is None:
        raise InvalidConfigError(_unknown(given_name))
    parse(setting._replace(name=given_name), text)
    if name == JAAS:
        from ottla.broker.sasl.jaas import InvalidLoginError, users_of  # noqa: PLC0415

        try:
            users_of(text)
        except InvalidLoginError as error:
            why = f"Invalid value for configuration {given_name}: {error}"
            raise InvalidConfigError(why) from None
    if name == "ssl.principal.mapping.rules":
        from ottla.broker.principals import parse_rules  # noqa: PLC0415

        parse_rules(text)


def _check_of_listener(name: str, text: str) -> None:
    _, mechanism, setting = split_name(name) or ("", "", "")
    if mechanism and mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise InvalidConfigError(
            f"Configuration {name} is of the mechanism {mechanism}; there are {known}"
        )
    if setting not in OF_A_LISTENER:
        if setting in BROKER_SETTINGS:
            why = f"Configuration {setting} is for all listeners, and not for one as in {name}"
            raise InvalidConfigError(why)
        raise InvalidConfigError(_unknown(name, setting, OF_A_LISTENER))
    _check(setting, name, text)


def _unknown(name: str, setting: str = "", known: Iterable[str] = ()) -> str:
    """Returns what is said of a name, or of the setting in it, with the nearest one known."""
    # What an error alone needs is loaded for it.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(
        setting or name, [*(known or (*BROKER_SETTINGS, *_COARSE, *_UNSUPPORTED))], 1
    )
    hint = (
        f"; did you mean {name.removesuffix(setting) if setting else ''}{near[0]}?" if near else ""
    )
    return f"Unknown configuration {name}{hint}"
