"""The transaction coordinator of a broker: its log in the data plane, its markers in partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.coordinator_log import append_to_log, read_whole_log
from ottla.broker.features import level_of
from ottla.broker.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.transactions.coordinator import TransactionCoordinator
from ottla.broker.transactions.settings import TransactionSettings
from ottla.errors import KafkaError, OttlaError
from ottla.protocol.error_code import ErrorCode
from ottla.records import NewRecord, build_batch, read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.broker.image import Partition, Topic
    from ottla.broker.state import State
    from ottla.broker.topics import Topics
    from ottla.broker.transactions.coordinator import Marker
    from ottla.broker.transactions.metadata import TopicPartition
    from ottla.broker.transactions.producer_ids import ProducerIds

__all__ = ["BrokerTransactions", "DecideOffsets"]

_NOBODY: Final = -1
"""The id and the epoch of what has no producer."""


class DecideOffsets(Protocol):
    """Has the offsets count, or be dropped, that a transaction committed to a partition."""

    def __call__(self, producer_id: int, partition: int, /, *, is_commit: bool) -> None:
        """Is called once the marker is in the partition of ``__consumer_offsets``."""


class BrokerTransactions(TransactionCoordinator):
    """The coordinator of a broker: it leads what there is of ``__transaction_state``."""

    def __init__(
        self,
        state: State,
        topics: Topics,
        producer_ids: ProducerIds,
        decide_offsets: DecideOffsets,
        now_ms: int,
    ) -> None:
        super().__init__(
            settings=_settings(state),
            producer_ids=producer_ids,
            append=self._append_record,
            write_markers=self._write_to_all,
            waiting=state.waiting,
            when_synced=self._sync_logs,
        )
        self._state = state
        self._topics = topics
        self._decide_offsets = decide_offsets
        topics.own(TRANSACTION_STATE, self, now_ms)

    def follow_settings(self) -> None:
        """Goes by the settings and features that the broker has by now."""
        self.settings = _settings(self._state)

    def ensure_log(self, now_ms: int) -> None:
        """Leads ``__transaction_state``, which is created if need be."""
        self.take_over(self._topics.internal(TRANSACTION_STATE, now_ms), now_ms)

    def take_over(self, topic: Topic, now_ms: int) -> None:
        """Leads the partitions of the log that the broker leads, with what they hold."""
        for partition in self.partitions.to_lead(topic, self._state.node_id):
            index = partition.partition_index
            try:
                self.load(index, partition.leader_epoch, self._records(partition), now_ms)
            except OttlaError as error:
                # It cannot be read: its ids have no coordinator until it can.
                self.give_up(index)
                self.partitions.unreadable[index] = str(error)

    def resign(self) -> None:
        """Leads nothing: the log is gone."""
        for partition in self.partitions.led():
            self.give_up(partition)

    def write_marker(self, marker: Marker, name: TopicPartition, now_ms: int) -> int:
        """Ends a transaction in a partition that the broker leads; returns an error code."""
        state, (topic, index) = self._state, name
        partition = state.image.partition(topic, index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader_id != state.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if _NOBODY in (marker.producer_id, marker.producer_epoch):
            # No batch can say so: with Kafka, too, building it fails.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            verdict = state.plane.end_transaction(
                partition.handle,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                commit=marker.is_commit,
                transaction_version=marker.transaction_version,
                now_ms=now_ms,
            )
        except KafkaError as error:
            return error.error_code
        if verdict.error:
            return verdict.error
        if topic == CONSUMER_OFFSETS:
            self._decide_offsets(marker.producer_id, index, is_commit=marker.is_commit)
        state.moved((partition.handle,))
        return ErrorCode.NONE

    def _records(self, partition: Partition) -> Iterator[tuple[bytes | None, bytes | None]]:
        for data in read_whole_log(self._state.plane, partition.handle):
            for batch in read_batches(data):
                if not batch.is_control:
                    yield from ((record.key, record.value) for record in batch.records())

    def _append_record(self, index: int, key: bytes, value: bytes | None, now_ms: int) -> int:
        batch = build_batch([NewRecord(key, value, timestamp=now_ms)])
        place = TRANSACTION_STATE, index
        return append_to_log(self._state, place, batch, now_ms, give_up=self.give_up)

    def _sync_logs(
        self, index: int, partitions: frozenset[TopicPartition], then: Callable[[bool], None]
    ) -> None:
        image = self._state.image
        names = [(TRANSACTION_STATE, index), *sorted(partitions)]
        found = [image.partition(*name) for name in names]
        handles = [partition.handle for partition in found if partition is not None]
        self._state.storage.when_synced(handles, then)

    def _write_to_all(
        self, marker: Marker, partitions: frozenset[TopicPartition], now_ms: int
    ) -> Mapping[TopicPartition, int]:
        return {name: self.write_marker(marker, name, now_ms) for name in sorted(partitions)}


def _settings(state: State) -> TransactionSettings:
    number = state.config.number
    return TransactionSettings(
        max_timeout_ms=number("transaction.max.timeout.ms"),
        id_expiration_ms=number("transactional.id.expiration.ms"),
        partition_count=number("transaction.state.log.num.partitions"),
        transaction_version=level_of(state.features, "transaction.version"),
    )
