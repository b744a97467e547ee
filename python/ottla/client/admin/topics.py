"""Calls about topics, and what they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.arguments import count, each_of
from ottla.client.admin.arguments import name as as_name
from ottla.client.admin.arguments import names as as_names
from ottla.client.admin.operation import (
    DONE_PERHAPS,
    Anywhere,
    ByKey,
    Controller,
    Outcome,
    Single,
)
from ottla.client.errors import IllegalArgumentError, error_of
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.client.admin.operation import Route
    from ottla.client.network.metadata import Node
    from ottla.protocol.wire import Message

__all__ = [
    "ChangedTopic",
    "CreatePartitions",
    "CreateTopics",
    "CreatedTopic",
    "DeleteTopics",
    "DescribeTopics",
    "ListTopics",
    "NewTopic",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
]


class NewTopic(NamedTuple):
    """A topic to create.

    Attributes:
        name: of the topic.
        partition_count: how many partitions; -1 for the broker's default.
        replication_factor: how many replicas each has; -1 for the broker's default.
        configs: options of the topic.
        assignments: the brokers of each partition, instead of both counts.
    """

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}
    assignments: Mapping[int, Sequence[int]] = {}


class CreatedTopic(NamedTuple):
    """A topic that was created, or why not.

    Attributes:
        name: of the topic.
        topic_id: its id; zeros where a broker tells none.
        partition_count: how many partitions it has; -1 where a broker does not tell.
        replication_factor: how many replicas each has; -1 where a broker does not tell.
        error: why it was not created.
    """

    name: str
    topic_id: bytes = NO_UUID
    partition_count: int = -1
    replication_factor: int = -1
    error: Exception | None = None


class ChangedTopic(NamedTuple):
    """A topic that was deleted, or given partitions, or why not."""

    name: str
    error: Exception | None = None


class TopicListing(NamedTuple):
    """A topic that there is."""

    name: str
    topic_id: bytes
    is_internal: bool


class PartitionDescription(NamedTuple):
    """A partition of a topic.

    Attributes:
        partition: its index.
        leader_id: the broker that leads it; -1 for none.
        leader_epoch: how often that has changed; -1 where it is not known.
        replicas: the brokers that have it.
        in_sync_replicas: those of them that have all of it.
        offline_replicas: those of them that are not there.
    """

    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class TopicDescription(NamedTuple):
    """A topic with its partitions, or why it is not described."""

    name: str
    topic_id: bytes = NO_UUID
    is_internal: bool = False
    partitions: tuple[PartitionDescription, ...] = ()
    error: Exception | None = None


class CreateTopics(ByKey[str, CreatedTopic]):
    """Creates topics."""

    name = "create_topics"
    final = DONE_PERHAPS

    def __init__(self, topics: Iterable[NewTopic | str], *, validate_only: bool) -> None:
        if isinstance(topics, (str, NewTopic)):
            raise IllegalArgumentError(f"topics is {topics!r}; expected a list: [{topics!r}]")
        new = [NewTopic(one) if isinstance(one, str) else one for one in topics]
        self._topics = {topic.name: topic for topic in each_of(new, "topics", NewTopic)}
        for topic in self._topics.values():
            as_name(topic.name, "name of a topic")
            count(topic.partition_count, f"partition_count of {topic.name}")
            count(topic.replication_factor, f"replication_factor of {topic.name}")
            _check_configs(topic)
        self._validate_only = validate_only

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return list(self._topics)

    def route(self, _key: str) -> Route:
        return Controller()

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        # Version 0 would create what is to be validated alone, and those before 4 need counts.
        return CreateTopicsRequest, range(1, 8)

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {
            "topics": [_creatable(self._topics[name]) for name in keys],
            "timeout_ms": self.timeout_ms,
            "validate_only": self._validate_only,
        }

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.topics:
            if one.error_code:
                yield one.name, error_of(one.error_code, one.error_message)
            else:
                counts = one.num_partitions, one.replication_factor
                yield one.name, CreatedTopic(one.name, one.topic_id, *counts)

    def failed(self, key: str, error: Exception) -> CreatedTopic:
        return CreatedTopic(key, error=error)


def _check_configs(topic: NewTopic) -> None:
    given: Any = topic.configs
    if not isinstance(given, Mapping):
        expected = "expected such as {'retention.ms': '86400000'}"
        raise IllegalArgumentError(f"configs of {topic.name} is {given!r}; {expected}")
    for option, value in given.items():
        as_name(option, f"an option of {topic.name}")
        as_name(value, f"{option} of {topic.name}")


def _creatable(topic: NewTopic) -> CreatableTopic:
    has_own = bool(topic.assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if has_own else topic.partition_count,
        replication_factor=-1 if has_own else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


class DeleteTopics(ByKey[str, ChangedTopic]):
    """Deletes topics."""

    name = "delete_topics"
    final = DONE_PERHAPS | {int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}

    def __init__(self, names: Iterable[str]) -> None:
        self._names = as_names(names, "names")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._names

    def route(self, _key: str) -> Route:
        return Controller()

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        return DeleteTopicsRequest, None

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {
            "topics": [DeleteTopicState(name=name) for name in keys],
            "topic_names": list(keys),
            "timeout_ms": self.timeout_ms,
        }

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.responses:
            yield one.name, _changed(one)

    def failed(self, key: str, error: Exception) -> ChangedTopic:
        return ChangedTopic(key, error)


def _changed(one: Any) -> Outcome:
    if one.error_code:
        return error_of(one.error_code, one.error_message)
    return ChangedTopic(one.name)


class CreatePartitions(ByKey[str, ChangedTopic]):
    """Gives topics more partitions.

    Args:
        counts: how many each topic is to have.
        assignments: the brokers of the new partitions of a topic, in turn.
    """

    name = "create_partitions"
    final = DONE_PERHAPS | {int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}

    def __init__(
        self,
        counts: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]],
        *,
        validate_only: bool,
    ) -> None:
        if not isinstance(counts, Mapping):
            raise IllegalArgumentError(f"counts is {counts!r}; expected such as {{'orders': 5}}")
        self._counts = {
            as_name(topic, "name of a topic"): count(number, f"count of {topic}")
            for topic, number in counts.items()
        }
        self._assignments = assignments
        self._validate_only = validate_only

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return list(self._counts)

    def route(self, _key: str) -> Route:
        return Controller()

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        return CreatePartitionsRequest, None

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {
            "topics": [self._topic(name) for name in keys],
            "timeout_ms": self.timeout_ms,
            "validate_only": self._validate_only,
        }

    def _topic(self, name: str) -> CreatePartitionsTopic:
        own = self._assignments.get(name)
        assigned = None
        if own is not None:
            assigned = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in own]
        return CreatePartitionsTopic(name=name, count=self._counts[name], assignments=assigned)

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.results:
            yield one.name, _changed(one)

    def failed(self, key: str, error: Exception) -> ChangedTopic:
        return ChangedTopic(key, error)


class ListTopics(Single[None, dict[str, TopicListing]]):
    """Lists topics."""

    name = "list_topics"

    def __init__(self, *, with_internal: bool) -> None:
        self._with_internal = with_internal

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[None]:
        return [None]

    def route(self, _key: None) -> Route:
        return Anywhere()

    def request(self, _key: None) -> tuple[type[Message], range | None]:
        return MetadataRequest, range(1, 14)

    def fields(self, _keys: Sequence[None]) -> dict[str, Any]:
        return {"topics": None, "allow_auto_topic_creation": False}

    def read(self, _keys: Sequence[None], response: Any) -> Iterator[tuple[None, Outcome]]:
        yield None, response

    def value(self, outcomes: dict[None, Any]) -> dict[str, TopicListing]:
        return {
            one.name: TopicListing(one.name, one.topic_id, one.is_internal)
            for one in sorted(outcomes[None].topics, key=lambda one: one.name or "")
            if one.name and (self._with_internal or not one.is_internal)
        }


class DescribeTopics(ByKey[str, TopicDescription]):
    """Describes topics by their names."""

    name = "describe_topics"
    final = frozenset({int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})

    def __init__(self, names: Iterable[str]) -> None:
        self._names = as_names(names, "names")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._names

    def route(self, _key: str) -> Route:
        return Anywhere()

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        # Before version 4, to ask for a topic may create it.
        return MetadataRequest, range(4, 14)

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        topics = [MetadataRequestTopic(name=name) for name in keys]
        return {"topics": topics, "allow_auto_topic_creation": False}

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.topics:
            if one.error_code:
                yield one.name, error_of(one.error_code)
            else:
                partitions = sorted(one.partitions, key=lambda each: int(each.partition_index))
                told = tuple(map(_described, partitions))
                yield one.name, TopicDescription(one.name, one.topic_id, one.is_internal, told)

    def failed(self, key: str, error: Exception) -> TopicDescription:
        return TopicDescription(key, error=error)


def _described(one: Any) -> PartitionDescription:
    return PartitionDescription(
        one.partition_index,
        one.leader_id,
        one.leader_epoch,
        tuple(one.replica_nodes),
        tuple(one.isr_nodes),
        tuple(one.offline_replicas),
    )
