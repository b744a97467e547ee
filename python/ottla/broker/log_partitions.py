"""Which partitions of its log a coordinator leads, and what belongs to which of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.partitioner import partition_of
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.image import Partition, Topic

__all__ = ["LogPartitions"]


class LogPartitions:
    """The partitions of ``__consumer_offsets`` or ``__transaction_state``.

    Args:
        count: how many the topic will have that is not there yet.

    Attributes:
        count: of the topic when it was taken over. It stays for as long as any is led: to count
            those that are added later would send groups to where they are not.
        unreadable: partitions that cannot be led, and why: what they hold cannot be read.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.unreadable: dict[int, str] = {}
        self._epochs: dict[int, int] = {}

    def of(self, name: str) -> int:
        """Returns the partition that a group or a transactional id belongs to."""
        return partition_of(name, self.count)

    def error(self, name: str) -> int:
        """Returns NOT_COORDINATOR for what belongs to a partition that is not led, else NONE."""
        return ErrorCode.NONE if self.of(name) in self._epochs else ErrorCode.NOT_COORDINATOR

    def led(self) -> tuple[int, ...]:
        """Returns the partitions that are led."""
        return tuple(self._epochs)

    def epoch(self, partition: int) -> int:
        """Returns the epoch in which a partition is led."""
        return self._epochs[partition]

    def lead(self, partition: int, epoch: int) -> None:
        """Leads a partition."""
        self.unreadable.pop(partition, None)
        self._epochs[partition] = epoch

    def give_up(self, partition: int) -> bool:
        """Leads a partition no longer; returns whether it was led."""
        return self._epochs.pop(partition, None) is not None

    def to_lead(self, topic: Topic, node_id: int) -> list[Partition]:
        """Returns the partitions of a topic that a broker is to take over."""
        if not self._epochs:
            self.count = len(topic.partitions)
        return [
            partition
            for partition in topic.partitions
            if partition.leader_id == node_id and partition.partition_index not in self._epochs
        ]
