"""Assignors that move as few partitions as an even distribution allows (KIP-54, KIP-341, KIP-429).

Invariants of both:

- A partition has one member, which reads its topic; one that anybody reads has a member.
- No member has two partitions fewer than another, of which it could take one.
- Of those, what its owner may keep stays.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ottla.client.groups.assignors.assignor import each_partition
from ottla.client.groups.assignors.balance import balanced
from ottla.client.groups.assignors.ownership import Claim, owners
from ottla.client.groups.assignors.user_data import previous_assignment, previous_assignment_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.groups.assignors.assignor import Assignment, Members, Subscription
    from ottla.client.partitions import TopicPartition

__all__ = ["CooperativeStickyAssignor", "StickyAssignor"]

_GENERATION = struct.Struct(">i")


class StickyAssignor:
    """Eager: members give everything up before they join, and tell in bytes what they had."""

    name = "sticky"
    is_cooperative = False

    def __init__(self) -> None:
        self._had: Claim | None = None

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assignment:
        """Gives members what they had as far as it is even."""
        claims = {each: previous_assignment(member.user_data) for each, member in members.items()}
        return _sticky(partition_counts, members, claims)

    def user_data(self) -> bytes | None:
        """Returns what the member had."""
        return None if self._had is None else previous_assignment_bytes(self._had)

    def assigned(self, partitions: frozenset[TopicPartition], generation_id: int) -> None:
        """Remembers it for the next time."""
        self._had = Claim(partitions, generation_id)


class CooperativeStickyAssignor:
    """Members keep what they have while they join, and give up only what others get."""

    name = "cooperative-sticky"
    is_cooperative = True

    def __init__(self) -> None:
        self._generation_id = -1

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assignment:
        """Gives members what they have as far as it is even."""
        claims = {
            each: Claim(member.owned, _generation(member)) for each, member in members.items()
        }
        return _sticky(partition_counts, members, claims)

    def user_data(self) -> bytes | None:
        """Returns the generation, for leaders that do not read it from the subscription."""
        return _GENERATION.pack(self._generation_id)

    def assigned(
        self,
        partitions: frozenset[TopicPartition],  # noqa: ARG002 - the protocol's
        generation_id: int,
    ) -> None:
        """Remembers the generation."""
        self._generation_id = generation_id


def _generation(member: Subscription) -> int:
    if member.generation_id >= 0 or member.user_data is None:
        return member.generation_id
    if len(member.user_data) < _GENERATION.size:
        return -1
    return int(_GENERATION.unpack_from(member.user_data)[0])


def _sticky(counts: Mapping[str, int], members: Members, claims: Mapping[str, Claim]) -> Assignment:
    partitions = list(each_partition(counts, members))
    topics = {member_id: member.topics for member_id, member in members.items()}
    wanted = set(partitions)
    kept: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted(members)}
    for partition, owner in sorted(owners(claims).items()):
        if partition in wanted and partition.topic in topics[owner]:
            kept[owner].append(partition)
    return balanced(partitions, topics, kept)
