"""Topics as they are created, changed and deleted: what a controller does, for one broker.

Every change makes a new `Image` and tells the data plane, in this order: what is in the image is
open, and what is closed is in no image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.configs.setting import InvalidConfigError, parse
from ottla.broker.configs.topic import TOPIC_SETTINGS, check_topic_configs
from ottla.broker.image import Partition, Topic
from ottla.broker.keeper import KeptPartition
from ottla.broker.plane import TopicSettings
from ottla.broker.uuids import random_uuid
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.broker.keeper import KeptTopic
    from ottla.broker.state import State

__all__ = [
    "CONSUMER_OFFSETS",
    "INTERNAL_TOPICS",
    "MAX_PARTITIONS",
    "TRANSACTION_STATE",
    "LogOwner",
    "TopicError",
    "Topics",
    "check_name",
    "check_partitions_of_request",
]

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})

MAX_PARTITIONS = 10_000
"""Of one request, as Kafka's controller has it."""
_OF_VERDICTS = (
    "cleanup.policy",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "max.message.bytes",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "segment.bytes",
)
"""What a leader's verdict depends on."""
_MAX_NAME = 249
_REPLICAS = 1
"""Of a partition: the broker is the only one."""
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class TopicError(Exception):
    """What was asked for a topic cannot be done.

    Attributes:
        error: Kafka's code.
        message: what is said to the client.
    """

    def __init__(self, error: int, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def check_name(name: str) -> None:
    """Checks the name of a topic.

    Raises:
        TopicError: with ``INVALID_TOPIC_EXCEPTION``, for a name that Kafka does not allow.
    """
    if not name:
        why = "it is empty"
    elif name in {".", ".."}:
        why = "it is '.' or '..'"
    elif len(name) > _MAX_NAME:
        why = f"it has {len(name)} characters, more than {_MAX_NAME}"
    elif not _LEGAL.issuperset(name):
        why = "it has characters other than ASCII letters and digits, '.', '_' and '-'"
    else:
        return
    shown = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
    raise TopicError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {shown!r} is invalid: {why}")


def check_partitions_of_request(count: int) -> None:
    """Checks how many partitions one request would add.

    Raises:
        TopicError: with ``POLICY_VIOLATION``, of the request as a whole.
    """
    if count > MAX_PARTITIONS:
        raise TopicError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


class LogOwner(Protocol):
    """A coordinator, whose state is in an internal topic."""

    def take_over(self, topic: Topic, now_ms: int) -> None:
        """Coordinates what belongs to the partitions of a topic that is there."""

    def resign(self) -> None:
        """Forgets all of it, as the topic is gone or the broker stops; who waits is told."""


class Topics:
    """The topics of one broker.

    Args:
        broker: whose image it replaces.
    """

    def __init__(self, broker: State) -> None:
        self._broker = broker
        self._collisions: dict[str, str] = {}
        """Names by what is left of them in a metric's name, where '.' and '_' are one."""
        self._owners: dict[str, LogOwner] = {}

    def own(self, name: str, owner: LogOwner, now_ms: int) -> None:
        """Tells a coordinator of its topic: as it is, and whenever it is created or deleted."""
        self._owners[name] = owner
        topic = self._broker.image.topics.get(name)
        if topic is not None:
            owner.take_over(topic, now_ms)

    def settings_of(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Returns every setting of a topic: these, the broker's, or Kafka's default."""
        config = self._broker.config
        return {name: config.topic_text(name, configs) for name in TOPIC_SETTINGS}

    def check(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str | None],
        assignments: Mapping[int, Sequence[int]] | None = None,
    ) -> tuple[int, dict[str, str]]:
        """Returns how many partitions a new topic has, and its settings; creates nothing.

        Args:
            name: of the topic.
            partitions: -1 for the broker's default.
            replication_factor: -1 for the broker's default.
            configs: by Kafka's names.
            assignments: broker ids by partition, instead of the two numbers.

        Raises:
            TopicError: Kafka would refuse it.
        """
        if name in self._broker.image.topics:
            raise TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        check_name(name)
        other = self._collisions.get(name.replace(".", "_"))
        if other is not None:
            raise TopicError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )
        if assignments:
            count = self._checked_assignments(partitions, replication_factor, assignments)
        else:
            count = self._checked_numbers(partitions, replication_factor)
        try:
            return count, check_topic_configs(configs)
        except InvalidConfigError as error:
            raise TopicError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _checked_numbers(self, partitions: int, replication_factor: int) -> int:
        config = self._broker.config
        count = config.number("num.partitions") if partitions == -1 else partitions
        if count <= 0:
            raise TopicError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        if count > MAX_PARTITIONS:
            raise TopicError(
                ErrorCode.INVALID_PARTITIONS,
                f"Number of partitions {count} is larger than {MAX_PARTITIONS}",
            )
        default = config.number("default.replication.factor")
        replicas = default if replication_factor == -1 else replication_factor
        if replicas <= 0:
            raise TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        alive = len(self._broker.image.brokers)
        if replicas > alive:
            raise TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {replicas} time(s): "
                f"The target replication factor of {replicas} cannot be reached because only "
                f"{alive} broker(s) are registered.",
            )
        return count

    def _checked_assignments(
        self, partitions: int, replication_factor: int, assignments: Mapping[int, Sequence[int]]
    ) -> int:
        if partitions != -1 or replication_factor != -1:
            raise TopicError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but numPartitions or "
                "replicationFactor was not set to -1.",
            )
        if set(assignments) != set(range(len(assignments))):
            raise TopicError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence",
            )
        known = self._broker.image.brokers
        for index, replicas in assignments.items():
            if not replicas or len(set(replicas)) != len(replicas) or not set(replicas) <= {*known}:
                raise TopicError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment of partition {index} names "
                    f"{list(replicas)}, but the brokers are {sorted(known)}",
                )
        return len(assignments)

    def create(self, name: str, partitions: int, configs: Mapping[str, str], now_ms: int) -> Topic:
        """Creates a topic that `check` let pass; returns it."""
        return self.create_all([(name, partitions, configs)], now_ms)[0]

    def create_all(
        self, wanted: Iterable[tuple[str, int, Mapping[str, str]]], now_ms: int
    ) -> list[Topic]:
        """Creates topics that `check` let pass, in one new image; returns them."""
        made = []
        for name, partitions, configs in wanted:
            topic_id = self._new_id()
            wanted_partitions = [KeptPartition(index, 0, 0) for index in range(partitions)]
            opened = self._open(name, topic_id, wanted_partitions, configs, now_ms)
            topic = Topic(name, topic_id, opened, name in INTERNAL_TOPICS, dict(configs))
            self._keep(topic, 0)
            made.append(topic)
        self._show(made, now_ms)
        return made

    def restore(self, kept: Iterable[KeptTopic], now_ms: int) -> None:
        """Opens topics as they were kept, in one new image."""
        self._show(
            [
                Topic(
                    topic.name,
                    topic.topic_id,
                    self._open(topic.name, topic.topic_id, topic.partitions, topic.configs, now_ms),
                    topic.name in INTERNAL_TOPICS,
                    dict(topic.configs),
                )
                for topic in kept
            ],
            now_ms,
        )

    def internal(self, name: str, now_ms: int) -> Topic:
        """Returns an internal topic, which is created when it is first needed."""
        topic = self._broker.image.topics.get(name)
        if topic is not None:
            return topic
        config = self._broker.config
        count = (
            config.number("offsets.topic.num.partitions")
            if name == CONSUMER_OFFSETS
            else config.number("transaction.state.log.num.partitions")
        )
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        if name == TRANSACTION_STATE:
            configs |= {
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
            }
        return self.create(name, count, configs, now_ms)

    def check_growth(self, topic: Topic, count: int) -> None:
        """Checks that a topic may have so many partitions.

        Raises:
            TopicError: it has as many already, or they are too many.
        """
        before = len(topic.partitions)
        if count == before:
            why = f"Topic already has {before} partition(s)."
        elif count < before:
            why = (
                f"The topic {topic.name} currently has {before} partition(s); "
                f"{count} would not be an increase."
            )
        elif count - before > MAX_PARTITIONS:
            why = f"Number of partitions {count} is larger than {MAX_PARTITIONS}"
        else:
            return
        raise TopicError(ErrorCode.INVALID_PARTITIONS, why)

    def grow(self, topic: Topic, count: int, now_ms: int) -> Topic:
        """Gives a topic more partitions; returns it.

        Raises:
            TopicError: as `check_growth`.
        """
        self.check_growth(topic, count)
        before = len(topic.partitions)
        wanted = [KeptPartition(index, 0, 0) for index in range(before, count)]
        added = self._open(topic.name, topic.topic_id, wanted, topic.configs, now_ms)
        grown = topic._replace(partitions=topic.partitions + added)
        self._keep(grown, before)
        return self._replace(grown)

    def configure(self, topic: Topic, configs: Mapping[str, str]) -> Topic:
        """Replaces the settings of a topic, which are checked already; returns it."""
        self._broker.keeper.set_topic_configs(topic, configs)
        self._take(topic, configs)
        return self._replace(topic._replace(configs=dict(configs)))

    def take_defaults(self) -> None:
        """Has every topic go by settings of the broker that have changed."""
        for topic in self._broker.image.topics.values():
            self._take(topic, topic.configs)

    def _take(self, topic: Topic, configs: Mapping[str, str]) -> None:
        options, texts = self._options(configs), self.settings_of(configs)
        for partition in topic.partitions:
            self._broker.plane.configure(partition.handle, **options)
            self._broker.storage.configure(topic.name, partition.handle, texts)

    def delete(self, names: Sequence[str]) -> None:
        """Deletes topics."""
        broker = self._broker
        gone = [broker.image.topics[name] for name in names if name in broker.image.topics]
        for topic in gone:
            broker.keeper.remove_topic(topic)
        broker.image = broker.image.without_topics(topic.name for topic in gone)
        for topic in gone:
            self._collisions.pop(topic.name.replace(".", "_"), None)
            for partition in topic.partitions:
                broker.storage.remove(partition.handle)
                # Whoever waits for its records finds that it is gone.
                broker.waiting.wake(("partition", partition.handle))
            broker.waiting.wake(("topic", topic.name))
        for topic in gone:
            if topic.name in self._owners:
                self._owners[topic.name].resign()

    def _replace(self, topic: Topic) -> Topic:
        self._broker.image = self._broker.image.with_topics([topic])
        self._broker.waiting.wake(("topic", topic.name))
        return topic

    def _new_id(self) -> bytes:
        """Returns an id that no topic has: a seed draws those of the last start again."""
        while True:
            topic_id = random_uuid(self._broker.random.getrandbits)
            if topic_id not in self._broker.image.topics_by_id:
                return topic_id

    def _show(self, made: Sequence[Topic], now_ms: int) -> None:
        """Makes topics part of the image."""
        broker = self._broker
        for topic in made:
            self._collisions[topic.name.replace(".", "_")] = topic.name
        broker.image = broker.image.with_topics(made)
        for topic in made:
            broker.waiting.wake(("topic", topic.name))
            if topic.name in self._owners:
                self._owners[topic.name].take_over(topic, now_ms)

    def _keep(self, topic: Topic, first_index: int) -> None:
        """Has a topic or its partitions from an index on kept, or takes them back."""
        keeper, storage = self._broker.keeper, self._broker.storage
        try:
            if first_index:
                keeper.add_partitions(topic, first_index)
            else:
                keeper.add_topic(topic)
        except KafkaError:
            for partition in topic.partitions[first_index:]:
                storage.remove(partition.handle)
            raise

    def _open(
        self,
        name: str,
        topic_id: bytes,
        partitions: Iterable[KeptPartition],
        configs: Mapping[str, str],
        now_ms: int,
    ) -> tuple[Partition, ...]:
        options = self._options(configs) | {"is_internal": name in INTERNAL_TOPICS}
        texts = self.settings_of(configs)
        storage, node_id = self._broker.storage, self._broker.node_id
        opened: list[Partition] = []
        try:
            for index, leader_epoch, partition_epoch in partitions:
                handle = storage.open(
                    name,
                    topic_id,
                    index,
                    now_ms=now_ms,
                    leader_epoch=leader_epoch,
                    is_dense="compact" not in texts["cleanup.policy"],
                    **options,
                )
                replicas = (node_id,)
                opened.append(
                    Partition(
                        index, node_id, leader_epoch, partition_epoch, replicas, replicas, handle
                    )
                )
                storage.configure(name, handle, texts)
        except KafkaError:
            for partition in opened:
                storage.remove(partition.handle)
            raise
        return tuple(opened)

    def resign(self) -> None:
        """Has the coordinators lead nothing any more, and tells who waits for them."""
        for owner in self._owners.values():
            owner.resign()

    def _options(self, configs: Mapping[str, str]) -> dict[str, Any]:
        """Returns what the data plane is told of a topic's settings."""
        texts = self.settings_of(configs)
        values: dict[str, Any] = {
            name: parse(TOPIC_SETTINGS[name], text) for name, text in texts.items()
        }
        expiration_ms = self._broker.config.text("producer.id.expiration.ms")
        settings = TopicSettings(
            [
                *((name.replace(".", "_"), texts[name]) for name in _OF_VERDICTS),
                ("producer_id_expiration_ms", expiration_ms),
            ]
        )
        # What is only compacted is not deleted by its age.
        deletes = "delete" in texts["cleanup.policy"]
        segment_ms = values["segment.ms"]
        if "compact" in texts["cleanup.policy"]:
            # The active segment is not compacted, and so must not be it for longer (KIP-354).
            segment_ms = min(segment_ms, values["max.compaction.lag.ms"])
        return {
            "settings": settings,
            # Kafka waits for no more replicas than a partition has (KIP-966).
            "min_insync_replicas": min(values["min.insync.replicas"], _REPLICAS),
            "segment_ms": segment_ms,
            "segment_index_bytes": values["segment.index.bytes"],
            "index_interval_bytes": values["index.interval.bytes"],
            "retention_ms": values["retention.ms"] if deletes else -1,
            "retention_bytes": values["retention.bytes"] if deletes else -1,
        }
