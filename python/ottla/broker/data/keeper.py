"""Keeps in `__cluster_metadata` what is no record of a topic, as a controller of Kafka does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import AccessRule
from ottla.broker.configs.dynamic import ALL_BROKERS, dynamic_setting
from ottla.broker.configs.group import GROUP_SETTINGS
from ottla.broker.configs.setting import MAX_LONG, InvalidConfigError, parse
from ottla.broker.configs.topic import TOPIC_SETTINGS
from ottla.broker.data.cluster_records import values_of
from ottla.broker.data.cluster_state import BROKER, GROUP, TOPIC, ClusterState
from ottla.broker.keeper import Keeper, KeptPartition, KeptTopic, MetadataPosition
from ottla.broker.sasl.credentials import ScramCredential
from ottla.broker.transactions.producer_ids import BLOCK_SIZE
from ottla.errors import KafkaError, LogDirectoryError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.metadata_record import record_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ottla.broker.configs.setting import Setting
    from ottla.broker.data.metadata_log import MetadataLog
    from ottla.broker.features import Feature
    from ottla.broker.image import Topic
    from ottla.broker.quotas import Entity
    from ottla.protocol.wire import Message

__all__ = ["MetadataKeeper"]

_RECORDS_A_BATCH = 10_000
"""As many as Kafka's controller writes for one operation."""


class MetadataKeeper(Keeper):
    """Writes a record for each change, and applies it once it is synced.

    Args:
        log: loaded, and in a term of its own.
        state: what the log's records amount to.
        node_id: of the only broker.
        directory_id: of the directory that partitions are in.
        random_bits: where ids of rules come from.
        clock: the broker's time.
        say: takes a line about what cannot be represented.

    Attributes:
        snapshot_bytes: of records since the last snapshot, at which there is a new one.
        retention_bytes: of log and snapshots together, above which what is old is deleted.
    """

    def __init__(
        self,
        log: MetadataLog,
        state: ClusterState,
        *,
        node_id: int,
        directory_id: bytes,
        random_bits: Callable[[int], int],
        clock: Callable[[], int],
        say: Callable[[str], None],
    ) -> None:
        self._log = log
        self._state = state
        self._node_id = node_id
        self._directory_id = directory_id
        self._random_bits = random_bits
        self._clock = clock
        self._say = say
        self.snapshot_bytes = MAX_LONG
        self.retention_bytes = MAX_LONG
        self._rule_ids: dict[AccessRule, bytes] = {
            _rule(record): rule_id for rule_id, record in state.rules.items()
        }

    def lead_all(self) -> None:
        """Becomes the leader of every partition, in an epoch of its own.

        Raises:
            KafkaError: it could not be written.
        """
        records: list[Message] = []
        for topic in self._state.topics.values():
            for index in sorted(topic.partitions):
                # A clean stop of Kafka leaves nobody in sync, but who may be elected (KIP-966).
                change = layouts.PartitionChangeRecord(
                    partition_id=index,
                    topic_id=topic.topic_id,
                    leader=self._node_id,
                    isr=[self._node_id],
                )
                if self._state.record_version(layouts.PartitionChangeRecord):
                    change.eligible_leader_replicas = change.last_known_elr = []
                records.append(change)
        for first in range(0, len(records), _RECORDS_A_BATCH):
            self._write(records[first : first + _RECORDS_A_BATCH])

    def say_what_is_left_out(self) -> None:
        """Says, in a line, which records have no effect here."""
        if self._state.passed_over:
            kinds = ", ".join(
                f"{count:,} of type {kind}"
                for kind, count in sorted(self._state.passed_over.items())
            )
            self._say(f"records of __cluster_metadata that are kept and have no effect: {kinds}")

    def write_snapshot_if_due(self) -> None:
        """Writes what all records amount to, where much was written since the last time.

        Then no start reads the records before, and what is too much of them is deleted. A change
        holds without it, so where it cannot be written, that is said, and nothing is refused.
        """
        if self._log.bytes_behind_snapshot < self.snapshot_bytes or not (
            self._state.is_wholly_known
        ):
            return
        try:
            self._log.write_snapshot(values_of(self._state, self._directory_id), self._clock())
            self._log.delete_old(self.retention_bytes)
        except (OSError, LogDirectoryError) as error:
            self._log.bytes_behind_snapshot = 0
            why = (isinstance(error, OSError) and error.strerror) or error
            self._say(f"a snapshot of the cluster's metadata cannot be written: {why}")

    # What was kept.

    def topics(self) -> Sequence[KeptTopic]:
        """See `Keeper`."""
        return [
            KeptTopic(
                topic.name,
                topic.topic_id,
                tuple(
                    KeptPartition(index, partition.leader_epoch, partition.partition_epoch)
                    for index, partition in sorted(topic.partitions.items())
                ),
                self._known((TOPIC, topic.name), TOPIC_SETTINGS.get),
            )
            for topic in sorted(self._state.topics.values(), key=lambda topic: topic.name)
        ]

    def broker_settings(self) -> Mapping[str, Mapping[str, str]]:
        """See `Keeper`."""
        names = (ALL_BROKERS, str(self._node_id))
        return {name: self._known((BROKER, name), dynamic_setting) for name in names}

    def group_settings(self) -> Mapping[str, Mapping[str, str]]:
        """See `Keeper`."""
        groups = [name for kind, name in self._state.configs if kind == GROUP]
        known = {group: self._known((GROUP, group), GROUP_SETTINGS.get) for group in groups}
        return {group: settings for group, settings in known.items() if settings}

    def rules(self) -> Iterable[AccessRule]:
        """See `Keeper`."""
        return tuple(self._rule_ids)

    def credentials(self) -> Iterator[tuple[str, int, ScramCredential]]:
        """See `Keeper`."""
        for (user, mechanism), record in self._state.credentials.items():
            yield (
                user,
                mechanism,
                ScramCredential(
                    record.salt, record.iterations, record.stored_key, record.server_key
                ),
            )

    def quotas(self) -> Mapping[Entity, Mapping[str, float]]:
        """See `Keeper`."""
        return self._state.quotas

    def features(self, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        """See `Keeper`."""
        levels = self._state.features
        return tuple(
            feature._replace(level=min(feature.highest, levels.get(feature.name, 0)))
            for feature in features
        )

    def metadata_position(self) -> MetadataPosition:
        """See `Keeper`."""
        return MetadataPosition(self._log.epoch, self._log.end_offset, self._directory_id)

    def _known(
        self, resource: tuple[int, str], known: Callable[[str], Setting | None]
    ) -> dict[str, str]:
        kept = {}
        for name, text in self._state.configs.get(resource, {}).items():
            try:
                setting = known(name)
                if setting is not None:
                    parse(setting, text)
                    kept[name] = text
                    continue
                why = "it is not known here"
            except InvalidConfigError as error:
                why = str(error)
            whose = {TOPIC: f"topic {resource[1]}", GROUP: f"group {resource[1]}"}.get(
                resource[0], "brokers"
            )
            self._say(f"setting {name} of {whose} is kept and has no effect: {why}")
        return kept

    # What changes.

    def add_topic(self, topic: Topic) -> None:
        """See `Keeper`: one batch, so that there is all of the topic or nothing."""
        self._write(
            [
                layouts.TopicRecord(name=topic.name, topic_id=topic.topic_id),
                *self._config_changes(TOPIC, topic.name, {}, topic.configs),
                *self._partitions(topic, 0),
            ]
        )

    def add_partitions(self, topic: Topic, first_index: int) -> None:
        """See `Keeper`."""
        self._write(self._partitions(topic, first_index))

    def remove_topic(self, topic: Topic) -> None:
        """See `Keeper`."""
        self._write([layouts.RemoveTopicRecord(topic_id=topic.topic_id)])

    def set_topic_configs(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """See `Keeper`."""
        self._write([*self._config_changes(TOPIC, topic.name, topic.configs, configs)])

    def set_broker_settings(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """See `Keeper`."""
        self._write([*self._config_changes(BROKER, name, before, after)])

    def set_group_settings(
        self, group: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """See `Keeper`."""
        self._write([*self._config_changes(GROUP, group, before, after)])

    def set_features(self, changed: Iterable[Feature]) -> None:
        """See `Keeper`."""
        self._write(
            [
                layouts.FeatureLevelRecord(name=feature.name, feature_level=feature.level)
                for feature in changed
            ]
        )

    def add_rule(self, rule: AccessRule) -> None:
        """See `Keeper`."""
        rule_id = self._new_rule_id()
        self._write(
            [
                layouts.AccessControlEntryRecord(
                    id=rule_id,
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    pattern_type=rule.pattern_type,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission,
                )
            ]
        )
        self._rule_ids[rule] = rule_id

    def _new_rule_id(self) -> bytes:
        """Returns an id that no rule has: a seed draws those of the last start again."""
        while True:
            rule_id = self._random_bits(128).to_bytes(16, "big")
            if rule_id not in self._state.rules:
                return rule_id

    def remove_rule(self, rule: AccessRule) -> None:
        """See `Keeper`."""
        self._write([layouts.RemoveAccessControlEntryRecord(id=self._rule_ids[rule])])
        del self._rule_ids[rule]

    def set_credential(self, user: str, mechanism: int, credential: ScramCredential) -> None:
        """See `Keeper`."""
        self._write(
            [
                layouts.UserScramCredentialRecord(
                    name=user,
                    mechanism=mechanism,
                    salt=credential.salt,
                    stored_key=credential.stored_key,
                    server_key=credential.server_key,
                    iterations=credential.iterations,
                )
            ]
        )

    def remove_credential(self, user: str, mechanism: int) -> None:
        """See `Keeper`."""
        self._write([layouts.RemoveUserScramCredentialRecord(name=user, mechanism=mechanism)])

    def set_quotas(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """See `Keeper`."""
        parts = [
            layouts.EntityData(entity_type=entity_type, entity_name=name)
            for entity_type, name in entity
        ]
        self._write(
            [
                layouts.ClientQuotaRecord(
                    entity=parts, key=key, value=value or 0.0, remove=value is None
                )
                for key, value in changes.items()
            ]
        )

    def producer_id_allocator(self) -> Callable[[], int]:
        """See `Keeper`."""
        return self._allocate_producer_ids

    def _allocate_producer_ids(self) -> int:
        first = self._state.next_producer_id
        self._write(
            [
                layouts.ProducerIdsRecord(
                    broker_id=self._node_id, next_producer_id=first + BLOCK_SIZE
                )
            ]
        )
        return first

    # Records.

    def _partitions(self, topic: Topic, first_index: int) -> list[Message]:
        has_directories = self._state.record_version(layouts.PartitionRecord) > 0
        return [
            layouts.PartitionRecord(
                partition_id=partition.partition_index,
                topic_id=topic.topic_id,
                replicas=[self._node_id],
                isr=[self._node_id],
                leader=self._node_id,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=[self._directory_id] if has_directories else [],
            )
            for partition in topic.partitions[first_index:]
        ]

    @staticmethod
    def _config_changes(
        kind: int, name: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> Iterator[Message]:
        for setting in sorted({*before, *after}):
            value = after.get(setting)
            if value != before.get(setting):
                yield layouts.ConfigRecord(
                    resource_type=kind, resource_name=name, name=setting, value=value
                )

    def _write(self, records: Sequence[Message]) -> None:
        if not records:
            return
        values = [
            record_bytes(record, self._state.record_version(type(record))) for record in records
        ]
        try:
            self._log.append(values, self._clock())
        except OSError as error:
            raise KafkaError(
                f"the change cannot be kept: {error.strerror or error}",
                ErrorCode.KAFKA_STORAGE_ERROR,
                "KAFKA_STORAGE_ERROR",
            ) from None
        for record in records:
            self._state.replay(record)
        self.write_snapshot_if_due()


def _rule(record: layouts.AccessControlEntryRecord) -> AccessRule:
    return AccessRule(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
