"""Even shares that keep as much as they can of what members had."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.client.groups.assignors.assignor import Assignment
    from ottla.client.partitions import TopicPartition

__all__ = ["balanced"]


def balanced(
    partitions: Sequence[TopicPartition],
    topics: Mapping[str, frozenset[str]],
    kept: Mapping[str, list[TopicPartition]],
) -> Assignment:
    """Returns the partitions of each member.

    Args:
        partitions: all that anybody reads, in order.
        topics: those that each member reads.
        kept: what each member had of them and still reads; nobody has what another has.
    """
    if not topics:
        return {}
    if len(set(topics.values())) == 1:
        return _shared_alike(partitions, kept)
    return _Shares(partitions, topics, kept).even()


def _shared_alike(
    partitions: Sequence[TopicPartition], kept: Mapping[str, list[TopicPartition]]
) -> Assignment:
    """Returns shares of members that read the same: each has the same number, some one more."""
    share, left_over = divmod(len(partitions), len(kept))
    found: Assignment = {}
    below, at_share = [], deque[str]()
    for member_id, had in sorted(kept.items()):
        size = min(len(had), share)
        if len(had) > share and left_over:
            size += 1
            left_over -= 1
        elif len(had) >= share:
            at_share.append(member_id)
        else:
            below.append(member_id)
        found[member_id] = had[:size]
    taken = {partition for had in found.values() for partition in had}
    free = deque(partition for partition in partitions if partition not in taken)
    while below and free:
        # One round: those who have their share by now wait for what is left over.
        for member_id in below:
            found[member_id].append(free.popleft())
        full = [member_id for member_id in below if len(found[member_id]) == share]
        at_share.extend(full)
        below = [member_id for member_id in below if len(found[member_id]) < share]
    for partition in free:
        found[at_share.popleft()].append(partition)
    return found


class _Shares:
    """Shares of members that read different topics."""

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, frozenset[str]],
        kept: Mapping[str, list[TopicPartition]],
    ) -> None:
        self._readers: dict[str, list[str]] = {}
        for member_id in sorted(topics):
            for topic in topics[member_id]:
                self._readers.setdefault(topic, []).append(member_id)
        self._partitions = partitions
        self._before = {one: member for member, had in kept.items() for one in had}
        self._owners = dict(self._before)
        self._sizes = {member_id: len(kept[member_id]) for member_id in topics}

    def even(self) -> Assignment:
        """Returns shares of which none can be made larger by one that is larger by two."""
        # Those that few members read first: they have the least choice.
        in_turn = sorted(self._partitions, key=lambda one: (len(self._readers[one.topic]), one))
        for partition in in_turn:
            if partition not in self._owners:
                self._give(partition, self._smallest(self._readers[partition.topic]))
        is_moving = True
        while is_moving:
            is_moving = False
            for partition in in_turn:
                is_moving |= self._moved(partition)
        found: Assignment = {member_id: [] for member_id in self._sizes}
        for partition in self._partitions:
            found[self._owners[partition]].append(partition)
        return found

    def _moved(self, partition: TopicPartition) -> bool:
        """Moves a partition where that makes shares more even; they get so only that often."""
        size = self._sizes[self._owners[partition]]
        before = self._before.get(partition)
        if before is not None and self._sizes[before] + 1 < size:
            self._give(partition, before)
            return True
        smallest = self._smallest(self._readers[partition.topic])
        if self._sizes[smallest] + 1 < size:
            self._give(partition, smallest)
            return True
        return False

    def _smallest(self, members: Iterable[str]) -> str:
        return min(members, key=lambda each: (self._sizes[each], each))

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        owner = self._owners.get(partition)
        if owner is not None:
            self._sizes[owner] -= 1
        self._owners[partition] = member_id
        self._sizes[member_id] += 1
