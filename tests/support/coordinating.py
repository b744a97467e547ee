"""A transaction coordinator with a log and partitions of its own, under a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.transactions.coordinator import Marker, ProducerAnswer, TransactionCoordinator
from ottla.broker.transactions.log import key_of, value_of
from ottla.broker.transactions.metadata import TransactionMetadata
from ottla.broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from ottla.broker.transactions.settings import TransactionSettings
from ottla.broker.waiting import WaitingList

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.transactions.metadata import TopicPartition

ORDERS: TopicPartition = ("orders", 0)
PAYMENTS: TopicPartition = ("payments", 1)
MINUTE_MS = 60_000


class WrittenMarker(NamedTuple):
    """A marker that a partition took."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


class Coordination:
    """What a coordinator has around it.

    Attributes:
        now_ms: the clock; `advance` moves it.
        log: keys and values of the records of each partition of ``__transaction_state``.
        markers: those that were taken, in order.
        marker_errors: what partitions answer to markers; they take what is not in it.
        log_error: what the log answers instead of taking a record.
    """

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.now_ms = 1_000_000
        self.settings = settings or TransactionSettings()
        self.log: dict[int, list[tuple[bytes, bytes | None]]] = {}
        self.markers: list[WrittenMarker] = []
        self.marker_errors: dict[TopicPartition, int] = {}
        self.log_error = 0
        self.coordinator_epoch = 0
        self._blocks = 0
        self.start()

    def start(self) -> None:
        """Starts a coordinator on what the log has."""
        self.waiting = WaitingList()
        self.coordinator = TransactionCoordinator(
            settings=self.settings,
            producer_ids=ProducerIds(self._allocate),
            append=self._append,
            write_markers=self._write_markers,
            waiting=self.waiting,
        )
        self.coordinator_epoch += 1
        for partition in range(self.settings.partition_count):
            records = list(self.log.get(partition, ()))
            self.coordinator.load(partition, self.coordinator_epoch, records, self.now_ms)

    def restore(self, known: TransactionMetadata) -> tuple[int, int]:
        """Starts on a log that has this of a transactional id; returns its producer."""
        partition = self.coordinator.partitions.of(known.transactional_id)
        record = key_of(known.transactional_id), value_of(known, transaction_version=2)
        self.log.setdefault(partition, []).append(record)
        self.start()
        return known.producer_id, known.producer_epoch

    def _allocate(self) -> int:
        self._blocks += 1
        return self._blocks * BLOCK_SIZE

    def _append(self, partition: int, key: bytes, value: bytes | None, _now_ms: int, /) -> int:
        if self.log_error:
            return self.log_error
        self.log.setdefault(partition, []).append((key, value))
        return 0

    def _write_markers(
        self, marker: Marker, partitions: frozenset[TopicPartition], _now_ms: int, /
    ) -> Mapping[TopicPartition, int]:
        taken = [name for name in sorted(partitions) if name not in self.marker_errors]
        self.markers += [
            WrittenMarker(
                name,
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.is_commit,
            )
            for name in taken
        ]
        return {name: self.marker_errors.get(name, 0) for name in partitions}

    def advance(self, duration_ms: int) -> None:
        """Lets time pass, deadline by deadline."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.waiting.next_deadline_ms()) is not None:
            if deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            self.waiting.tick(self.now_ms)
        self.now_ms = end_ms

    # Requests, of the transactional id "t" unless another one is named.

    def init(
        self,
        producer: tuple[int, int] = (-1, -1),
        *,
        name: str | None = "t",
        timeout_ms: int = MINUTE_MS,
    ) -> ProducerAnswer:
        """InitProducerId."""
        return self.coordinator.init_producer_id(name, timeout_ms, *producer, self.now_ms)

    def started(self, *, name: str = "t", timeout_ms: int = MINUTE_MS) -> tuple[int, int]:
        """Returns the id and epoch of a producer that has just started."""
        answer = self.init(name=name, timeout_ms=timeout_ms)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        name: str = "t",
        version: int = 0,
    ) -> int:
        """AddPartitionsToTxn."""
        return self.coordinator.add_partitions(
            name, *producer, partitions, self.now_ms, transaction_version=version
        )

    def verify(
        self, producer: tuple[int, int], *partitions: TopicPartition, name: str = "t"
    ) -> dict[TopicPartition, int]:
        """AddPartitionsToTxn, only to verify."""
        return self.coordinator.verify_partitions(name, *producer, partitions)

    def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        name: str = "t",
        version: int = 0,
    ) -> ProducerAnswer:
        """EndTxn."""
        return self.coordinator.end_transaction(
            name, *producer, self.now_ms, commit=commit, transaction_version=version
        )

    def known(self, name: str = "t") -> TransactionMetadata:
        """Returns what is known of a transactional id."""
        found = self.coordinator.describe(name)
        assert isinstance(found, TransactionMetadata)
        return found

    @property
    def state(self) -> str:
        """Kafka's name of the state of "t"."""
        return self.known().state_name

    def taken(self) -> list[tuple[TopicPartition, bool]]:
        """Returns the partitions that took markers, and whether these commit."""
        return [(marker.partition, marker.is_commit) for marker in self.markers]


def by_id(found: Iterable[TransactionMetadata], version: int = 2) -> dict[str, TransactionMetadata]:
    """Returns metadata by transactional id, without what the log of a version does not have."""
    kept = [known._replace(last_producer_epoch=-1) for known in found]
    if version == 0:
        kept = [known._replace(previous_producer_id=-1, transaction_version=0) for known in kept]
    return {known.transactional_id: known for known in kept}
