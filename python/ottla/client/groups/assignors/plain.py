"""Assignors without memory: range and round-robin."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from ottla.client.groups.assignors.assignor import each_partition, in_order
from ottla.client.partitions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.groups.assignors.assignor import Assignment, Members

__all__ = ["RangeAssignor", "RoundRobinAssignor"]


class _Forgetful:
    is_cooperative = False

    def user_data(self) -> bytes | None:
        """Returns nothing."""
        return None

    def assigned(self, partitions: frozenset[TopicPartition], generation_id: int) -> None:
        """Forgets it."""


class RangeAssignor(_Forgetful):
    """A run of consecutive partitions of every topic, the same of each that has as many.

    What is keyed alike meets in one member.

    >>> from ottla.client.groups.assignors import Subscription
    >>> both = Subscription(frozenset({"t"}))
    >>> found = RangeAssignor().assign({"t": 3}, {"a": both, "b": both})
    >>> {member: [number for _, number in partitions] for member, partitions in found.items()}
    {'a': [0, 1], 'b': [2]}
    """

    name = "range"

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assignment:
        """Gives each member as many of a topic as any, and the first ones one more."""
        found: Assignment = {member_id: [] for member_id in members}
        ordered = in_order(members)
        for topic, count in sorted(partition_counts.items()):
            readers = [each for each in ordered if topic in members[each].topics]
            if not readers:
                continue
            share, left_over = divmod(count, len(readers))
            first = 0
            for index, member_id in enumerate(readers):
                end = first + share + (index < left_over)
                found[member_id] += [TopicPartition(topic, each) for each in range(first, end)]
                first = end
        return found


class RoundRobinAssignor(_Forgetful):
    """One partition after another, to one member after another.

    >>> from ottla.client.groups.assignors import Subscription
    >>> both = Subscription(frozenset({"t"}))
    >>> found = RoundRobinAssignor().assign({"t": 3}, {"a": both, "b": both})
    >>> {member: [number for _, number in partitions] for member, partitions in found.items()}
    {'a': [0, 2], 'b': [1]}
    """

    name = "roundrobin"

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assignment:
        """Goes round the members, and passes over those that do not read a topic."""
        found: Assignment = {member_id: [] for member_id in members}
        circle = cycle(in_order(members))
        for partition in each_partition(partition_counts, members):
            reader = next(each for each in circle if partition.topic in members[each].topics)
            found[reader].append(partition)
        return found
