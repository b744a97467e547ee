"""Calls about producers and transactions, and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.arguments import names
from ottla.client.admin.arguments import partitions as as_partitions
from ottla.client.admin.offsets import by_topic
from ottla.client.admin.operation import (
    ByKey,
    CoordinatorOf,
    KeyType,
    LeaderOf,
    OnNode,
    Outcome,
    Single,
)
from ottla.client.errors import error_of
from ottla.client.partitions import TopicPartition, partition_of
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.client.admin.operation import Route
    from ottla.client.network.metadata import Node
    from ottla.protocol.wire import Message

__all__ = [
    "AbortTransaction",
    "DescribeProducers",
    "DescribeTransactions",
    "FenceProducers",
    "FencedProducer",
    "ListTransactions",
    "PartitionProducers",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
]

_FENCING_TIMEOUT_MS = 60_000


class ProducerState(NamedTuple):
    """A producer as a partition's leader knows it.

    Attributes:
        producer_id: its id.
        producer_epoch: its epoch.
        last_sequence: of its last record.
        last_timestamp: of its last batch, in ms.
        coordinator_epoch: of the coordinator that ended its last transaction; -1 for none.
        current_txn_start_offset: where its open transaction begins; -1 for none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class PartitionProducers(NamedTuple):
    """The producers of a partition, or why they are not told."""

    partition: TopicPartition
    producers: tuple[ProducerState, ...] = ()
    error: Exception | None = None


class TransactionListing(NamedTuple):
    """A transactional id that a coordinator knows."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """A transactional id with its transaction, or why it is not described.

    Attributes:
        transactional_id: the id.
        state: such as ``Ongoing``.
        producer_id: of its producer.
        producer_epoch: of its producer.
        timeout_ms: after which its transaction is aborted.
        start_time_ms: when its transaction began; -1 for none.
        partitions: of its transaction.
        error: why it is not described.
    """

    transactional_id: str
    state: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = -1
    start_time_ms: int = -1
    partitions: tuple[TopicPartition, ...] = ()
    error: Exception | None = None


class FencedProducer(NamedTuple):
    """A transactional id whose producer was fenced, or why not."""

    transactional_id: str
    producer_id: int = -1
    producer_epoch: int = -1
    error: Exception | None = None


class DescribeProducers(ByKey[TopicPartition, PartitionProducers]):
    """Tells the producers of partitions."""

    name = "describe_producers"

    def __init__(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._partitions = as_partitions(partitions)

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return self._partitions

    def route(self, key: TopicPartition) -> Route:
        return LeaderOf(key)

    def request(self, _key: TopicPartition) -> tuple[type[Message], range | None]:
        return DescribeProducersRequest, None

    def fields(self, keys: Sequence[TopicPartition]) -> dict[str, Any]:
        return {
            "topics": [
                TopicRequest(name=name, partition_indexes=numbers)
                for name, numbers in by_topic(keys)
            ]
        }

    def read(
        self, _keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        for topic in response.topics:
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition_index)
                if one.error_code:
                    yield partition, error_of(one.error_code, one.error_message)
                else:
                    producers = tuple(map(_producer, one.active_producers))
                    yield partition, PartitionProducers(partition, producers)

    def failed(self, key: TopicPartition, error: Exception) -> PartitionProducers:
        return PartitionProducers(key, error=error)


def _producer(one: Any) -> ProducerState:
    return ProducerState(
        one.producer_id,
        one.producer_epoch,
        one.last_sequence,
        one.last_timestamp,
        one.coordinator_epoch,
        one.current_txn_start_offset,
    )


class ListTransactions(Single[int, list[TransactionListing]]):
    """Lists transactional ids, of all coordinators.

    Args:
        states: those of these states alone; all where there is none.
        producer_ids: those of these producers alone; all where there is none.
        min_duration_ms: those that have been open so long alone; -1 for all.
    """

    name = "list_transactions"

    def __init__(
        self, states: Iterable[str], producer_ids: Iterable[int], min_duration_ms: int
    ) -> None:
        self._fields = {
            "state_filters": list(states),
            "producer_id_filters": list(producer_ids),
            "duration_filter": min_duration_ms,
        }
        self._least = 0 if min_duration_ms < 0 else 1

    def keys(self, nodes: Mapping[int, Node]) -> Sequence[int] | None:
        return list(nodes) or None

    def route(self, key: int) -> Route:
        return OnNode(key)

    def request(self, _key: int) -> tuple[type[Message], range | None]:
        return ListTransactionsRequest, range(self._least, 3)

    def fields(self, _keys: Sequence[int]) -> dict[str, Any]:
        return self._fields

    def read(self, keys: Sequence[int], response: Any) -> Iterator[tuple[int, Outcome]]:
        failed = error_of(response.error_code) if response.error_code else None
        yield keys[0], failed or response.transaction_states

    def value(self, outcomes: dict[int, Any]) -> list[TransactionListing]:
        found = [
            TransactionListing(one.transactional_id, one.producer_id, one.transaction_state)
            for states in outcomes.values()
            for one in states
        ]
        return sorted(found)


class DescribeTransactions(ByKey[str, TransactionDescription]):
    """Describes transactional ids."""

    name = "describe_transactions"

    def __init__(self, transactional_ids: Iterable[str]) -> None:
        self._ids = names(transactional_ids, "transactional_ids")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._ids

    def route(self, key: str) -> Route:
        return CoordinatorOf(KeyType.TRANSACTION, key)

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        return DescribeTransactionsRequest, None

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {"transactional_ids": list(keys)}

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.transaction_states:
            if one.error_code:
                yield one.transactional_id, error_of(one.error_code)
            else:
                yield one.transactional_id, _described(one)

    def failed(self, key: str, error: Exception) -> TransactionDescription:
        return TransactionDescription(key, error=error)


def _described(one: Any) -> TransactionDescription:
    return TransactionDescription(
        one.transactional_id,
        one.transaction_state,
        one.producer_id,
        one.producer_epoch,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms,
        tuple(
            TopicPartition(topic.topic, partition)
            for topic in one.topics
            for partition in topic.partitions
        ),
    )


class AbortTransaction(Single[TopicPartition, None]):
    """Ends an open transaction in one partition, for which no coordinator does so any more.

    Args:
        partition: which it hangs in.
        producer: whose it is, as `DescribeProducers` tells.
    """

    name = "abort_transaction"

    def __init__(self, partition: tuple[str, int], producer: ProducerState) -> None:
        self._partition = partition_of(partition)
        self._producer = producer

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[TopicPartition]:
        return [self._partition]

    def route(self, key: TopicPartition) -> Route:
        return LeaderOf(key)

    def request(self, _key: TopicPartition) -> tuple[type[Message], range | None]:
        return WriteTxnMarkersRequest, None

    def fields(self, _keys: Sequence[TopicPartition]) -> dict[str, Any]:
        topic, partition = self._partition
        return {
            "markers": [
                WritableTxnMarker(
                    producer_id=self._producer.producer_id,
                    producer_epoch=self._producer.producer_epoch,
                    transaction_result=False,
                    topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
                    # Of a producer whose first transaction it is, a leader knows none.
                    coordinator_epoch=max(self._producer.coordinator_epoch, 0),
                )
            ]
        }

    def read(
        self, keys: Sequence[TopicPartition], response: Any
    ) -> Iterator[tuple[TopicPartition, Outcome]]:
        for marker in response.markers:
            for topic in marker.topics:
                for one in topic.partitions:
                    yield keys[0], error_of(one.error_code) if one.error_code else None

    def value(self, _outcomes: dict[TopicPartition, Any]) -> None:
        return None


class FenceProducers(ByKey[str, FencedProducer]):
    """Fences the producers of transactional ids, and aborts their transactions."""

    name = "fence_producers"
    is_shared = False

    def __init__(self, transactional_ids: Iterable[str]) -> None:
        self._ids = names(transactional_ids, "transactional_ids")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._ids

    def route(self, key: str) -> Route:
        return CoordinatorOf(KeyType.TRANSACTION, key)

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        return InitProducerIdRequest, range(6)

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {"transactional_id": keys[0], "transaction_timeout_ms": _FENCING_TIMEOUT_MS}

    def read(self, keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        if response.error_code:
            yield keys[0], error_of(response.error_code)
        else:
            told = response.producer_id, response.producer_epoch
            yield keys[0], FencedProducer(keys[0], *told)

    def failed(self, key: str, error: Exception) -> FencedProducer:
        return FencedProducer(key, error=error)
