"""Calls about offsets: of groups, of logs, and those before which records are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.arguments import name as as_name
from ottla.client.admin.arguments import numbers_by_partition
from ottla.client.admin.arguments import partitions as as_partitions
from ottla.client.admin.operation import (
    ByKey,
    CoordinatorOf,
    KeyType,
    LeaderOf,
    Outcome,
    Results,
    Single,
)
from ottla.client.errors import error_of
from ottla.client.partitions import OffsetAndMetadata, TopicPartition, offsets_to_commit
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.client.admin.operation import Route
    from ottla.client.network.metadata import Node
    from ottla.client.partitions import AnyPartition
    from ottla.protocol.wire import Message

__all__ = [
    "AlterGroupOffsets",
    "ChangedOffset",
    "CommittedOffset",
    "DeleteGroupOffsets",
    "DeleteRecords",
    "DeletedRecords",
    "ListGroupOffsets",
    "ListOffsets",
    "ListedOffset",
    "OffsetSpec",
    "by_topic",
]


class OffsetSpec(Enum):
    """An offset by what it is, by Kafka's number in place of a timestamp."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


class CommittedOffset(NamedTuple):
    """What a group has committed of a partition, or why that is not told.

    Attributes:
        partition: the partition.
        committed: where the group goes on; ``None`` where it has committed nothing.
        error: why it is not told.
    """

    partition: TopicPartition
    committed: OffsetAndMetadata | None = None
    error: Exception | None = None


class ChangedOffset(NamedTuple):
    """A partition whose committed offset was set or deleted, or why not."""

    partition: TopicPartition
    error: Exception | None = None


class ListedOffset(NamedTuple):
    """An offset of a partition, or why it is not told.

    Attributes:
        partition: the partition.
        offset: what was asked for, or of the first record that is not older; -1 for none.
        timestamp: of that record, in ms; -1 where it was not asked for by one.
        leader_epoch: of that record; -1 where it is not known.
        error: why it is not told.
    """

    partition: TopicPartition
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    error: Exception | None = None


class DeletedRecords(NamedTuple):
    """A partition whose first records were deleted, or why not.

    Attributes:
        partition: the partition.
        low_watermark: where its log begins now, on all replicas.
        error: why not.
    """

    partition: TopicPartition
    low_watermark: int = -1
    error: Exception | None = None


def by_topic(partitions: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    """Iterates over topics with their partitions."""
    for topic, group in groupby(sorted(partitions), key=lambda one: one[0]):
        yield topic, [partition for _, partition in group]


def _partitions(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one


class ListGroupOffsets(Single[str, Results[TopicPartition, CommittedOffset]]):
    """Tells what a group has committed, of some partitions or of all.

    Args:
        group_id: the group.
        partitions: of which to tell; ``None`` for all that it has committed.
    """

    name = "list_group_offsets"

    def __init__(self, group_id: str, partitions: Iterable[tuple[str, int]] | None) -> None:
        self._group_id = as_name(group_id, "group_id")
        wanted = None if partitions is None else as_partitions(partitions)
        self._topics = None if wanted is None else list(by_topic(wanted))

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return [self._group_id]

    def route(self, key: str) -> Route:
        return CoordinatorOf(KeyType.GROUP, key)

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        # Version 10 names topics by their ids, and those before 2 do not tell of all partitions.
        return OffsetFetchRequest, range(2, 10)

    def fields(self, _keys: Sequence[str]) -> dict[str, Any]:
        old = new = None
        if self._topics is not None:
            old = [
                OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in self._topics
            ]
            new = [
                OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                for name, numbers in self._topics
            ]
        return {
            "group_id": self._group_id,
            "topics": old,
            "groups": [OffsetFetchRequestGroup(group_id=self._group_id, topics=new)],
        }

    def read(self, keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        # Before version 8, an answer is about one group, which it does not name.
        for found in response.groups or [response]:
            if getattr(found, "group_id", self._group_id) != self._group_id:
                continue
            if found.error_code:
                yield keys[0], error_of(found.error_code)
            else:
                told = (_committed(*each) for each in _partitions(found.topics))
                yield keys[0], Results({one.partition: one for one in told})

    def value(self, outcomes: dict[str, Any]) -> Results[TopicPartition, CommittedOffset]:
        found: Results[TopicPartition, CommittedOffset] = outcomes[self._group_id]
        return found


def _committed(partition: TopicPartition, one: Any) -> CommittedOffset:
    if one.error_code:
        return CommittedOffset(partition, error=error_of(one.error_code))
    if one.committed_offset < 0:
        return CommittedOffset(partition)
    committed = OffsetAndMetadata(one.committed_offset, one.metadata, one.committed_leader_epoch)
    return CommittedOffset(partition, committed)


class AlterGroupOffsets(ByKey[TopicPartition, ChangedOffset]):
    """Sets committed offsets of a group that nobody is a member of."""

    name = "alter_group_offsets"

    def __init__(
        self, group_id: str, offsets: Mapping[AnyPartition, OffsetAndMetadata | int]
    ) -> None:
        self._group_id = as_name(group_id, "group_id")
        self._offsets = offsets_to_commit(offsets)

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return list(self._offsets)

    def route(self, _key: TopicPartition) -> Route:
        return CoordinatorOf(KeyType.GROUP, self._group_id)

    def request(self, _key: TopicPartition) -> tuple[type[Message], range | None]:
        return OffsetCommitRequest, range(2, 10)

    def fields(self, keys: Sequence[TopicPartition]) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "topics": [
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=given.offset,
                            committed_leader_epoch=given.leader_epoch,
                            committed_metadata=given.metadata,
                        )
                        for number in numbers
                        for given in [self._offsets[TopicPartition(name, number)]]
                    ],
                )
                for name, numbers in by_topic(keys)
            ],
        }

    def read(
        self, _keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        return _changed(response)

    def failed(self, key: TopicPartition, error: Exception) -> ChangedOffset:
        return ChangedOffset(key, error)


def _changed(response: Any) -> Iterator[tuple[TopicPartition, Outcome]]:
    for partition, one in _partitions(response.topics):
        failed = error_of(one.error_code) if one.error_code else None
        yield partition, failed or ChangedOffset(partition)


class DeleteGroupOffsets(ByKey[TopicPartition, ChangedOffset]):
    """Deletes committed offsets of a group, of topics that no member subscribes to."""

    name = "delete_group_offsets"
    final = frozenset({int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})

    def __init__(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> None:
        self._group_id = as_name(group_id, "group_id")
        self._partitions = as_partitions(partitions)

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return self._partitions

    def route(self, _key: TopicPartition) -> Route:
        return CoordinatorOf(KeyType.GROUP, self._group_id)

    def request(self, _key: TopicPartition) -> tuple[type[Message], range | None]:
        return OffsetDeleteRequest, None

    def fields(self, keys: Sequence[TopicPartition]) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "topics": [
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                    ],
                )
                for name, numbers in by_topic(keys)
            ],
        }

    def read(
        self, keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        if response.error_code:
            return iter([(key, error_of(response.error_code)) for key in keys])
        return _changed(response)

    def failed(self, key: TopicPartition, error: Exception) -> ChangedOffset:
        return ChangedOffset(key, error)


class ListOffsets(ByKey[TopicPartition, ListedOffset]):
    """Tells offsets by time, or by what they are.

    Args:
        wanted: a timestamp in ms, or an `OffsetSpec`, of each partition.
        read_committed: whether the end is that of the last transaction that has ended.
    """

    name = "list_offsets"

    def __init__(
        self, wanted: Mapping[AnyPartition, OffsetSpec | int], *, read_committed: bool
    ) -> None:
        given: Any = wanted
        if isinstance(given, Mapping):
            given = {
                key: one.value if isinstance(one, OffsetSpec) else one for key, one in given.items()
            }
        self._timestamps = numbers_by_partition(given, "wanted")
        self._isolation_level = int(read_committed)

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return list(self._timestamps)

    def route(self, key: TopicPartition) -> Route:
        return LeaderOf(key)

    def request(self, key: TopicPartition) -> tuple[type[Message], range | None]:
        # To tell the record of the largest timestamp came with version 7 (KIP-734).
        needs_new = self._timestamps[key] == OffsetSpec.MAX_TIMESTAMP.value
        least = 7 if needs_new else 2 if self._isolation_level else 1
        return ListOffsetsRequest, range(least, 12)

    def fields(self, keys: Sequence[TopicPartition]) -> dict[str, Any]:
        return {
            "replica_id": -1,
            "isolation_level": self._isolation_level,
            "topics": [
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=number,
                            timestamp=self._timestamps[TopicPartition(name, number)],
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(keys)
            ],
            "timeout_ms": self.timeout_ms,
        }

    def read(
        self, _keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        for partition, one in _partitions(response.topics):
            if one.error_code:
                yield partition, error_of(one.error_code)
            else:
                found = one.offset, one.timestamp, one.leader_epoch
                yield partition, ListedOffset(partition, *found)

    def failed(self, key: TopicPartition, error: Exception) -> ListedOffset:
        return ListedOffset(key, error=error)


class DeleteRecords(ByKey[TopicPartition, DeletedRecords]):
    """Deletes the records before an offset of each partition; -1 for all there are."""

    name = "delete_records"

    def __init__(self, offsets: Mapping[AnyPartition, int]) -> None:
        self._offsets = numbers_by_partition(offsets, "offsets")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return list(self._offsets)

    def route(self, key: TopicPartition) -> Route:
        return LeaderOf(key)

    def request(self, _key: TopicPartition) -> tuple[type[Message], range | None]:
        return DeleteRecordsRequest, None

    def fields(self, keys: Sequence[TopicPartition]) -> dict[str, Any]:
        return {
            "topics": [
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=number,
                            offset=self._offsets[TopicPartition(name, number)],
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(keys)
            ],
            "timeout_ms": self.timeout_ms,
        }

    def read(
        self, _keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        for partition, one in _partitions(response.topics):
            failed = error_of(one.error_code) if one.error_code else None
            yield partition, failed or DeletedRecords(partition, one.low_watermark)

    def failed(self, key: TopicPartition, error: Exception) -> DeletedRecords:
        return DeletedRecords(key, error=error)
