"""What a transactional producer may write to: asked of the coordinator, told as Produce tells it.

A producer of transaction version 2 names no partitions beforehand: what it writes to joins its
transaction (Produce 12, TxnOffsetCommit 5). An older one has named them, and is held to it, so that
a batch that is late joins no later transaction (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.transactions.error_codes import known_to
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.broker.transactions.coordinator import TransactionCoordinator
    from ottla.broker.transactions.metadata import TopicPartition

__all__ = [
    "Asked",
    "offsets_error",
    "once_offsets_are_added",
    "once_produce_is_added",
    "produce_refusals",
]

_PRODUCE_ADDS: Final = 12
_OFFSETS_ADD: Final = 5
_VERSION_2: Final = 2

_UNREACHABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator is elsewhere for now, so the producer is to send again."""


class Asked(Protocol):
    """A producer, and the partitions that it writes to: what the data plane asks with."""

    @property
    def transactional_id(self) -> str:
        """Of the request."""

    @property
    def producer_id(self) -> int:
        """Of its batches."""

    @property
    def producer_epoch(self) -> int:
        """Of its batches."""

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """What it writes to."""


def produce_refusals(
    coordinator: TransactionCoordinator, asked: Asked, version: int, now_ms: int
) -> dict[TopicPartition, int]:
    """Returns the errors of partitions that a Produce request of a version may not write to."""
    errors = _ask(coordinator, asked, now_ms, adds=version >= _PRODUCE_ADDS)
    return {
        partition: _told_by_produce(error, version) for partition, error in errors.items() if error
    }


def once_produce_is_added(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    version: int,
    then: Callable[[bool], None],
) -> None:
    """Calls back once what a Produce request writes to is in its transaction on the disk, too.

    Otherwise a power cut might leave records of a transaction that no coordinator knows of, and so
    nobody ends.
    """
    _once_added(coordinator, transactional_id, then, adds=version >= _PRODUCE_ADDS)


def once_offsets_are_added(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    version: int,
    then: Callable[[bool], None],
) -> None:
    """Calls back once offsets of a TxnOffsetCommit are in its transaction on the disk, too."""
    _once_added(coordinator, transactional_id, then, adds=version >= _OFFSETS_ADD)


def _once_added(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    then: Callable[[bool], None],
    *,
    adds: bool,
) -> None:
    if adds:
        coordinator.when_synced(transactional_id, then)
    else:
        # What was added by a request of its own was on the disk when that was answered.
        then(True)  # noqa: FBT003 - as a sync calls back


def _told_by_produce(error: int, version: int) -> int:
    is_waited_for = error == ErrorCode.CONCURRENT_TRANSACTIONS and version < _PRODUCE_ADDS
    if error in _UNREACHABLE or is_waited_for:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return ErrorCode.INVALID_TXN_STATE
    return known_to(ApiKey.PRODUCE, version, error)


def offsets_error(
    coordinator: TransactionCoordinator, asked: Asked, version: int, now_ms: int
) -> int:
    """Returns why a TxnOffsetCommit of a version may not write its offsets, 0 if it may."""
    errors = _ask(coordinator, asked, now_ms, adds=version >= _OFFSETS_ADD)
    error = next((error for error in errors.values() if error), ErrorCode.NONE)
    if error in _UNREACHABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return known_to(ApiKey.TXN_OFFSET_COMMIT, version, error)


def _ask(
    coordinator: TransactionCoordinator, asked: Asked, now_ms: int, *, adds: bool
) -> dict[TopicPartition, int]:
    producer = asked.transactional_id, asked.producer_id, asked.producer_epoch
    if not adds:
        return coordinator.verify_partitions(*producer, asked.partitions)
    error = coordinator.add_partitions(
        *producer, asked.partitions, now_ms, transaction_version=_VERSION_2
    )
    return dict.fromkeys(asked.partitions, error)
