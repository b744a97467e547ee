"""What an assignor has to do, and what it sees of members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ottla.client.partitions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Assignment", "Assignor", "Members", "Subscription", "each_partition", "in_order"]


class Subscription(NamedTuple):
    """A member as the leader of its group sees it.

    Attributes:
        topics: that it reads.
        owned: partitions that it had when it joined, and did not give up.
        generation_id: in which it was assigned them; -1 where it does not say.
        rack_id: where it is.
        user_data: what its assignor had to add.
        group_instance_id: of a static member.
    """

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation_id: int = -1
    rack_id: str | None = None
    user_data: bytes | None = None
    group_instance_id: str | None = None


Members: TypeAlias = Mapping[str, Subscription]
Assignment: TypeAlias = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    """A strategy. One that an application brings has these three attributes and methods.

    Attributes:
        name: by which all members of a group know it.
        is_cooperative: whether members keep what they have while they join (KIP-429). What the
            assignor gives one member while another still has it is held back until that has given
            it up.
    """

    name: str
    is_cooperative: bool

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assignment:
        """Returns the partitions of each member; it is called for the leader of a group alone.

        Args:
            partition_counts: of topics that exist.
            members: by member id.
        """

    def user_data(self) -> bytes | None:
        """Returns what a member adds to its subscription."""

    def assigned(self, partitions: frozenset[TopicPartition], generation_id: int) -> None:
        """Hears what the member was assigned."""


def in_order(members: Members) -> list[str]:
    """Returns members by their instance ids, and those without after them by member id."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance = members[member_id].group_instance_id
        return (instance is None, member_id if instance is None else instance)

    return sorted(members, key=rank)


def each_partition(counts: Mapping[str, int], members: Members) -> Iterator[TopicPartition]:
    """Yields the partitions that somebody reads, in order."""
    read = frozenset().union(*(member.topics for member in members.values()))
    for topic in sorted(read.intersection(counts)):
        for number in range(counts[topic]):
            yield TopicPartition(topic, number)
