"""The requests of a transaction: what they say, and what their answers do.

What an answer names twice, by topic and partition, counts as the first error that is one: Kafka
answers partitions beside a refused one with OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ottla.client.offset_epoch import epochs_in
from ottla.client.partitions import TopicPartition
from ottla.protocol.error_code import ErrorCode, is_retriable, name_of
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.partitions import GroupMetadata, OffsetAndMetadata
    from ottla.client.pending import Pending
    from ottla.protocol.wire import Message

__all__ = [
    "AddOffsets",
    "AddPartitions",
    "CommitOffsets",
    "EndTransaction",
    "FindCoordinator",
    "InitProducerId",
    "Producer",
    "Request",
]

_GROUP, _TRANSACTION = 0, 1


class Producer(Protocol):
    """Who sends the requests."""

    transactional_id: str
    timeout_ms: int
    producer_id: int
    producer_epoch: int


class Request(ABC):
    """One that waits or is under way.

    Attributes:
        api: its name.
        priority: the smaller the sooner.
        module: of `ottla.protocol.messages`, that declares it.
        versions: those that a producer sends.
        implicit_versions: those of transaction version 2, where they are others.
        group: whose coordinator it goes to; ``None`` for that of the transactional id.
        pending: the call that waits for it.
        attempts: how often it failed.
        not_before_ms: when it may leave.
        may_be_done: whether an answer to it was lost.
    """

    api: ClassVar[str]
    priority: ClassVar[int]
    module: ClassVar[str]
    versions: ClassVar[range]
    implicit_versions: ClassVar[range | None] = None

    def __init__(self, pending: Pending | None = None, *, group: str | None = None) -> None:
        self.pending = pending
        self.group = group
        self.attempts = 0
        self.not_before_ms = 0
        self.may_be_done = False

    def message(self, producer: Producer, version: int) -> Message:
        """Returns what to send: what a version has of it."""
        request: type[Message] = getattr(self._messages, f"{self.api}Request")
        fields = self._fields(producer)
        return request(
            **{
                field.name: fields[field.name]
                for field in schema(request).fields
                if version in field.versions and field.name in fields
            }
        )

    def error_in(self, response: Any) -> tuple[int, str | None]:
        """Returns the error code of an answer and what is said about it."""
        return self._error_in(response)

    @abstractmethod
    def _fields(self, producer: Producer) -> dict[str, Any]:
        """Returns the fields of the request, of all its versions."""

    def _error_in(self, response: Any) -> tuple[int, str | None]:
        return response.error_code, None

    @property
    def _messages(self) -> Any:
        # A producer without transactions loads none of the messages.
        return import_module(f"ottla.protocol.messages.{self.module}")


class FindCoordinator(Request):
    """Which node coordinates a group, or the transactional id."""

    api = "FindCoordinator"
    versions = range(6)
    priority = 0
    module = "find_coordinator"

    def __init__(self, group: str | None) -> None:
        super().__init__(group=group)

    def _fields(self, producer: Producer) -> dict[str, Any]:
        key = producer.transactional_id if self.group is None else self.group
        return {
            "key": key,
            "key_type": _TRANSACTION if self.group is None else _GROUP,
            "coordinator_keys": [key],
        }

    def _error_in(self, response: Any) -> tuple[int, str | None]:
        if response.coordinators:
            response = response.coordinators[0]
        return response.error_code, response.error_message

    def node_in(self, response: Any) -> int:
        """Returns the id of the node that an answer names."""
        found = response.coordinators[0] if response.coordinators else response
        node: int = found.node_id
        return node


class InitProducerId(Request):
    """An id and epoch for the producer; what an earlier one left is aborted."""

    api = "InitProducerId"
    versions = range(6)
    priority = 1
    module = "init_producer_id"

    def _fields(self, producer: Producer) -> dict[str, Any]:
        return {
            "transactional_id": producer.transactional_id,
            "transaction_timeout_ms": producer.timeout_ms,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }


class AddPartitions(Request):
    """Partitions that the transaction is going to write to."""

    api = "AddPartitionsToTxn"
    # Later ones are between brokers.
    versions = range(4)
    priority = 2
    module = "add_partitions_to_txn"

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        super().__init__()
        self.partitions = set(partitions)

    def _fields(self, producer: Producer) -> dict[str, Any]:
        module = self._messages
        topics = [
            module.AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in _by_topic(self.partitions).items()
        ]
        return {
            "v3_and_below_transactional_id": producer.transactional_id,
            "v3_and_below_producer_id": producer.producer_id,
            "v3_and_below_producer_epoch": producer.producer_epoch,
            "v3_and_below_topics": topics,
        }

    def _error_in(self, response: Any) -> tuple[int, str | None]:
        return _first_error(
            (topic.name, one.partition_index, one.partition_error_code)
            for topic in response.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        )


class AddOffsets(Request):
    """A group of which the transaction is going to commit offsets."""

    api = "AddOffsetsToTxn"
    versions = range(5)
    priority = 2
    module = "add_offsets_to_txn"

    def __init__(self, group: GroupMetadata, pending: Pending, commit: CommitOffsets) -> None:
        super().__init__(pending)
        self.group_id = group.group_id
        self.commit = commit

    def _fields(self, producer: Producer) -> dict[str, Any]:
        return {
            "transactional_id": producer.transactional_id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "group_id": self.group_id,
        }


class CommitOffsets(Request):
    """The offsets."""

    api = "TxnOffsetCommit"
    versions = range(5)
    implicit_versions = range(5, 6)
    priority = 2
    module = "txn_offset_commit"

    def __init__(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        pending: Pending,
    ) -> None:
        super().__init__(pending, group=group.group_id)
        self.offsets = offsets
        self.consumer = group

    def _fields(self, producer: Producer) -> dict[str, Any]:
        module = self._messages
        topics = [
            module.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[self._partition(name, number) for number in numbers],
            )
            for name, numbers in _by_topic(self.offsets).items()
        ]
        return {
            "transactional_id": producer.transactional_id,
            "group_id": self.consumer.group_id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "topics": topics,
            "generation_id_or_member_epoch": self.consumer.generation_id,
            "member_id": self.consumer.member_id,
            "group_instance_id": self.consumer.group_instance_id,
        }

    def _partition(self, name: str, number: int) -> Any:
        one = self.offsets[TopicPartition(name, number)]
        return self._messages.TxnOffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=one.offset,
            committed_leader_epoch=one.leader_epoch,
            committed_metadata=one.metadata,
            partition_epoch=epochs_in(one.offset_epoch).partition_epoch,
        )

    def _error_in(self, response: Any) -> tuple[int, str | None]:
        return _first_error(
            (topic.name, one.partition_index, one.error_code)
            for topic in response.topics
            for one in topic.partitions
        )


class EndTransaction(Request):
    """The end of the transaction."""

    api = "EndTxn"
    versions = range(5)
    implicit_versions = range(5, 6)
    priority = 3
    module = "end_txn"

    def __init__(self, pending: Pending, *, is_commit: bool) -> None:
        super().__init__(pending)
        self.is_commit = is_commit

    def _fields(self, producer: Producer) -> dict[str, Any]:
        return {
            "transactional_id": producer.transactional_id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "committed": self.is_commit,
        }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


def _first_error(codes: Iterable[tuple[str, int, int]]) -> tuple[int, str | None]:
    """Returns the code that decides, with its partition in words.

    An error that ends the transaction comes before one after which the request is sent again, and
    what was not attempted counts only where nothing else is said.
    """
    failed = [one for one in codes if one[2] != ErrorCode.NONE]
    if not failed:
        return ErrorCode.NONE, None
    topic, number, code = min(failed, key=lambda one: _weight(one[2]))
    return code, f"{topic}-{number}: {name_of(code)}"


def _weight(code: int) -> int:
    if code == ErrorCode.OPERATION_NOT_ATTEMPTED:
        return 2
    return 1 if is_retriable(code) else 0
