"""The calls of a consumer that wait for nothing, which both shells have."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.arguments import list_of, partition_of, position_to_seek, times_of
from ottla.client.groups.membership import EventKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import TypeVar

    from ottla.client.consumer.core import ConsumerCore
    from ottla.client.consumer.listener import RebalanceListener
    from ottla.client.consumer.position import OffsetAndOffsetEpoch
    from ottla.client.groups.membership import Event
    from ottla.client.partitions import (
        AnyPartition,
        GroupMetadata,
        OffsetAndMetadata,
        TopicPartition,
    )

    Result = TypeVar("Result")

__all__ = ["LONGEST_WAIT_MS", "ConsumerCalls"]

LONGEST_WAIT_MS = 2_000
"""Until a poll looks what stands in the way, and goes on waiting."""


class ConsumerCalls(ABC):
    """A consumer, but for what waits."""

    _core: ConsumerCore
    _listener: RebalanceListener | None = None

    @abstractmethod
    def _run(self, function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
        """Calls the core, and has it do what follows."""

    @abstractmethod
    def _now_ms(self) -> int:
        """Returns the time that the core is told."""

    # What is read.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Reads topics, or those that match a pattern as a whole, shared with the group.

        Args:
            topics: their names, instead of those that were named before.
            pattern: a regular expression, in their place.
            listener: is told of the partitions that come and go.

        Raises:
            IllegalStateError: there is no `group_id`, or something else was said before.
        """
        if pattern is None:
            self._run(self._core.subscribe, topics, self._now_ms())
        else:
            self._run(self._core.subscribe_to_pattern, pattern, self._now_ms())
        self._listener = listener

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Reads exactly these partitions, whoever else reads them.

        Raises:
            IllegalStateError: topics were subscribed to before.
        """
        self._run(self._core.assign, list_of(partitions), self._now_ms())

    def assignment(self) -> frozenset[TopicPartition]:
        """Returns the partitions that are read."""
        return self._run(self._core.assignment)

    def subscription(self) -> frozenset[str]:
        """Returns the topics that are read by a subscription."""
        return self._run(self._core.subscription)

    # Positions.

    def seek(
        self,
        partition: tuple[str, int],
        offset: int | OffsetAndMetadata | OffsetAndOffsetEpoch,
        offset_epoch: bytes | None = None,
    ) -> None:
        """Goes on from an offset.

        Args:
            partition: one that is assigned.
            offset: of the next record; or what was committed, or kept, with its epochs.
            offset_epoch: of `position_and_offset_epoch`: has the next polls raise where the offset
                is one of another topic of the same name, or of records that are gone.

        Raises:
            IllegalArgumentError: a negative offset, or an epoch that is none.
            IllegalStateError: the partition is not assigned.
        """
        position = position_to_seek(offset, offset_epoch)
        self._run(self._core.seek, partition_of(partition), position)

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Goes on from the first records; of all partitions by default."""
        self._run(self._core.seek_to_beginning, list_of(partitions) or None)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Goes on with the records to come; of all partitions by default."""
        self._run(self._core.seek_to_end, list_of(partitions) or None)

    def seek_to_times(self, timestamps_ms: Mapping[AnyPartition, int]) -> None:
        """Goes on from the first records of these times or later; from the end without any."""
        self._run(self._core.seek_to_times, times_of(timestamps_ms))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns how far the application came in each partition, as a commit says it."""
        return self._run(self._core.consumed)

    def reset_to_last_committed_positions(self) -> None:
        """Goes on from what the group has committed, as after an aborted transaction."""
        self._run(self._core.seek_to_committed)

    def lag(self, partition: tuple[str, int]) -> int | None:
        """Returns how many offsets are to come; `None` before the first fetch."""
        return self._run(self._core.lag, partition_of(partition))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Delivers nothing of partitions until they are resumed; what is fetched is kept."""
        self._run(self._core.pause, list_of(partitions), is_paused=True)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Goes on with partitions that were paused."""
        self._run(self._core.pause, list_of(partitions), is_paused=False)

    def paused(self) -> frozenset[TopicPartition]:
        """Returns the partitions that are paused."""
        return self._run(self._core.paused)

    # The group, and what was measured.

    def group_metadata(self) -> GroupMetadata:
        """Returns what a producer's `send_offsets_to_transaction` has to know."""
        return self._run(self._core.group_metadata)

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Has the group assign anew, soon."""
        self._run(self._core.enforce_rebalance, reason, self._now_ms())

    def metrics(self) -> dict[str, float]:
        """Returns what was measured, by Kafka's names."""
        return self._run(self._core.metrics, self._now_ms())

    def _complain(self, *, is_served: bool) -> None:
        """Says in the log what stands in the way, where records are waited for in vain."""
        found = self._core.complaint(self._now_ms(), is_served=is_served)
        if found is not None:
            logging.getLogger("ottla.client").warning("no records are read: %s", found)

    def _tell(self, event: Event) -> Awaitable[None] | None:
        """Tells the listener of partitions that come or go."""
        listener = self._listener
        if listener is None:
            return None
        if event.kind is EventKind.ASSIGN:
            return listener.on_partitions_assigned(event.partitions)
        if not event.partitions:
            return None
        if event.kind is EventKind.REVOKE:
            return listener.on_partitions_revoked(event.partitions)
        return listener.on_partitions_lost(event.partitions)
