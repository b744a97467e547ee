"""What the records of `__cluster_metadata` amount to.

Records of kinds that a broker has no use for (registrations of brokers and controllers, delegation
tokens) have no effect; they are carried on for whoever knows them. Records between the begin and
the end of a transaction hold together (KIP-868).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.data.carried_records import CarriedRecords
from ottla.broker.features import METADATA_VERSION
from ottla.errors import LogDirectoryError, MalformedFrameError
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.metadata_record import read_record
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.protocol.wire import Message

__all__ = ["BROKER", "GROUP", "TOPIC", "ClusterState", "PartitionState", "TopicState"]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

_WITH_DIRECTORIES: Final = 17
"""The `metadata.version` from which a partition's record names directories (KIP-858)."""
_NO_CHANGE: Final = -2


class PartitionState:
    """A partition."""

    __slots__ = ("directories", "leader", "leader_epoch", "partition_epoch", "replicas")

    def __init__(self, record: layouts.PartitionRecord) -> None:
        self.leader = record.leader
        self.leader_epoch = record.leader_epoch
        self.partition_epoch = record.partition_epoch
        self.replicas = tuple(record.replicas)
        self.directories = tuple(record.directories)


class TopicState:
    """A topic and its partitions by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionState] = {}


class ClusterState:
    """State that grows with each record.

    Attributes:
        topics: by id.
        configs: texts by the type and name of a resource.
        rules: records of access rules by id.
        credentials: records by user and mechanism.
        quotas: values by entity.
        features: levels by name.
        next_producer_id: the first that nobody has.
        broker_epochs: of the last registration of each broker.
        passed_over: how many records there were of kinds that are not known here, by type.
        carried: records that a broker alone needs not know, for who does.
        is_in_transaction: whether a transaction was begun and not ended.
    """

    def __init__(self) -> None:
        self.topics: dict[bytes, TopicState] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.rules: dict[bytes, layouts.AccessControlEntryRecord] = {}
        self.credentials: dict[tuple[str, int], layouts.UserScramCredentialRecord] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.broker_epochs: dict[int, int] = {}
        self.passed_over: Counter[int] = Counter()
        self.carried = CarriedRecords()
        self._pending: list[Message] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """See the class."""
        return self._pending is not None

    def replay_all(self, values: Iterable[bytes]) -> None:
        """Applies the values of records, in order.

        Raises:
            LogDirectoryError: one of them cannot be read or does not fit.
        """
        for value in values:
            try:
                kind, record = read_record(value, _KINDS)
                is_known = self.carried.take(kind, value) or record is not None
            except MalformedFrameError as error:
                raise LogDirectoryError(
                    f"a record of __cluster_metadata cannot be read: {error}; it is damaged, or a "
                    f"later release of Kafka wrote it"
                ) from None
            if record is not None:
                self._take(record)
            if not is_known or kind in self.carried.MISSED:
                self.passed_over[kind] += 1

    @property
    def is_wholly_known(self) -> bool:
        """Whether a snapshot can say all that its records amount to."""
        return self._pending is None and self.passed_over.keys() <= self.carried.MISSED

    def replay(self, record: Message) -> None:
        """Applies a record.

        Raises:
            LogDirectoryError: it is about something that is not there.
        """
        _REPLAYS[type(record)](self, record)

    def abort(self) -> None:
        """Forgets the records of a transaction that was not ended."""
        self._pending = None

    def record_version(self, kind: type[Message]) -> int:
        """Returns the version of a record that the levels of features allow."""
        levels = self.features
        if kind is layouts.PartitionRecord:
            return 1 if levels.get(METADATA_VERSION, 0) >= _WITH_DIRECTORIES else 0
        if kind is layouts.PartitionChangeRecord:
            return 2 if levels.get("eligible.leader.replicas.version", 0) else 0
        return 0

    def _take(self, record: Message) -> None:
        if isinstance(record, layouts.BeginTransactionRecord):
            self._pending = []
        elif isinstance(record, layouts.AbortTransactionRecord):
            self._pending = None
        elif isinstance(record, layouts.EndTransactionRecord):
            ended, self._pending = self._pending or (), None
            for each in ended:
                self.replay(each)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self.replay(record)


def _topic(state: ClusterState, topic_id: bytes) -> TopicState:
    topic = state.topics.get(topic_id)
    if topic is None:
        raise LogDirectoryError(
            f"__cluster_metadata has a record about the topic id {topic_id.hex()}, which no "
            f"record before it has"
        )
    return topic


def _topic_record(state: ClusterState, record: layouts.TopicRecord) -> None:
    state.topics[record.topic_id] = TopicState(record.name, record.topic_id)


def _partition_record(state: ClusterState, record: layouts.PartitionRecord) -> None:
    _topic(state, record.topic_id).partitions[record.partition_id] = PartitionState(record)


def _partition_change(state: ClusterState, record: layouts.PartitionChangeRecord) -> None:
    partition = _topic(state, record.topic_id).partitions.get(record.partition_id)
    if partition is None:
        raise LogDirectoryError(
            f"__cluster_metadata changes partition {record.partition_id} of topic "
            f"{_topic(state, record.topic_id).name}, which no record before it has"
        )
    if record.leader != _NO_CHANGE:
        partition.leader = record.leader
        partition.leader_epoch += 1
    if record.replicas is not None:
        partition.replicas = tuple(record.replicas)
    if record.directories is not None:
        partition.directories = tuple(record.directories)
    partition.partition_epoch += 1


def _remove_topic(state: ClusterState, record: layouts.RemoveTopicRecord) -> None:
    name = _topic(state, record.topic_id).name
    del state.topics[record.topic_id]
    state.configs.pop((TOPIC, name), None)


def _config(state: ClusterState, record: layouts.ConfigRecord) -> None:
    key = record.resource_type, record.resource_name
    configs = state.configs.setdefault(key, {})
    if record.value is None:
        configs.pop(record.name, None)
        if not configs:
            del state.configs[key]
    else:
        configs[record.name] = record.value


def _credential(state: ClusterState, record: layouts.UserScramCredentialRecord) -> None:
    state.credentials[record.name, record.mechanism] = record


def _remove_credential(
    state: ClusterState, record: layouts.RemoveUserScramCredentialRecord
) -> None:
    state.credentials.pop((record.name, record.mechanism), None)


def _rule(state: ClusterState, record: layouts.AccessControlEntryRecord) -> None:
    state.rules[record.id] = record


def _remove_rule(state: ClusterState, record: layouts.RemoveAccessControlEntryRecord) -> None:
    state.rules.pop(record.id, None)


def _quota(state: ClusterState, record: layouts.ClientQuotaRecord) -> None:
    entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
    values = state.quotas.setdefault(entity, {})
    if record.remove:
        values.pop(record.key, None)
        if not values:
            del state.quotas[entity]
    else:
        values[record.key] = record.value


def _feature(state: ClusterState, record: layouts.FeatureLevelRecord) -> None:
    if record.feature_level:
        state.features[record.name] = record.feature_level
    else:
        state.features.pop(record.name, None)


def _producer_ids(state: ClusterState, record: layouts.ProducerIdsRecord) -> None:
    state.next_producer_id = max(state.next_producer_id, record.next_producer_id)


def _registration(state: ClusterState, record: layouts.RegisterBrokerRecord) -> None:
    state.broker_epochs[record.broker_id] = record.broker_epoch


_REPLAYS: dict[type[Message], Callable[[ClusterState, Any], None]] = {
    layouts.RegisterBrokerRecord: _registration,
    layouts.TopicRecord: _topic_record,
    layouts.PartitionRecord: _partition_record,
    layouts.PartitionChangeRecord: _partition_change,
    layouts.RemoveTopicRecord: _remove_topic,
    layouts.ConfigRecord: _config,
    layouts.UserScramCredentialRecord: _credential,
    layouts.RemoveUserScramCredentialRecord: _remove_credential,
    layouts.AccessControlEntryRecord: _rule,
    layouts.RemoveAccessControlEntryRecord: _remove_rule,
    layouts.ClientQuotaRecord: _quota,
    layouts.FeatureLevelRecord: _feature,
    layouts.ProducerIdsRecord: _producer_ids,
}
_IN_TRANSACTIONS: Final[tuple[type[Message], ...]] = (
    layouts.BeginTransactionRecord,
    layouts.EndTransactionRecord,
    layouts.AbortTransactionRecord,
)
_KINDS: Final[dict[int, type[Message]]] = {
    schema(kind).api_key or 0: kind for kind in (*_REPLAYS, *_IN_TRANSACTIONS)
}
