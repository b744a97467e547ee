"""Who had which partitions before, as members say it, and what may not yet change hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.groups.assignors.assignor import Assignment, Members
    from ottla.client.partitions import TopicPartition

__all__ = ["Claim", "owners", "without_transfers"]


class Claim(NamedTuple):
    """What a member had, and in which generation; -1 where it does not say."""

    partitions: frozenset[TopicPartition]
    generation_id: int = -1


def owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Returns the owner of each partition.

    Of two, that of the later generation; nobody where both are of the same, since one of them does
    not know that it is none.
    """
    found: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, claim in sorted(claims.items()):
        for partition in claim.partitions:
            best = found.get(partition)
            if best is None or claim.generation_id > best[0]:
                found[partition] = claim.generation_id, member_id
            elif claim.generation_id == best[0]:
                found[partition] = claim.generation_id, None
    return {partition: owner for partition, (_, owner) in found.items() if owner is not None}


def without_transfers(assignment: Assignment, members: Members) -> Assignment:
    """Returns an assignment without what another member still has (KIP-429).

    That member gives it up, and joins again, which is when it can be assigned.
    """
    owned_by: dict[TopicPartition, set[str]] = {}
    for member_id, member in members.items():
        for partition in member.owned:
            owned_by.setdefault(partition, set()).add(member_id)
    return {
        member_id: [one for one in partitions if owned_by.get(one, set()) <= {member_id}]
        for member_id, partitions in assignment.items()
    }
