"""The assignors of a coordinator (KIP-848): who is to have which partitions.

`uniform` gives everybody as many partitions as anybody, and moves as few as that allows. `range`
gives each member a run of consecutive partitions of every topic, the same of each, so that what is
keyed alike meets. Both are functions of their arguments alone.

Invariants of both: a partition has one member, which has subscribed to its topic; a partition whose
topic somebody has subscribed to has a member.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.broker.groups.records import Partitions, by_topic


class AssignedMember(NamedTuple):
    """A member as an assignor sees it; `target` is what it was to have until now."""

    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Partitions


Members = Mapping[str, AssignedMember]
PartitionCounts = Mapping[bytes, int]
_Owned = dict[str, set[tuple[bytes, int]]]


def assign_uniform(members: Members, counts: PartitionCounts) -> dict[str, Partitions]:
    """Returns even shares, as near to those of before as they can be."""
    owned = _kept(members, counts)
    if len({member.topic_ids for member in members.values()}) == 1:
        _share_alike(owned, members, counts)
    else:
        _share_by_subscription(owned, members, counts)
    return {member_id: by_topic(partitions) for member_id, partitions in owned.items()}


def assign_range(members: Members, counts: PartitionCounts) -> dict[str, Partitions]:
    """Returns runs of partitions, to members in the order of instance ids, then of member ids."""
    assigned: dict[str, Partitions] = {member_id: {} for member_id in members}
    order = sorted(members, key=lambda each: _range_order(each, members[each]))
    for topic_id, count in counts.items():
        readers = [each for each in order if topic_id in members[each].topic_ids]
        start = 0
        for index, member_id in enumerate(readers):
            size = count // len(readers) + (index < count % len(readers))
            if size:
                assigned[member_id][topic_id] = tuple(range(start, start + size))
            start += size
    return assigned


ASSIGNORS: dict[str, Callable[[Members, PartitionCounts], dict[str, Partitions]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}


def _range_order(member_id: str, member: AssignedMember) -> tuple[bool, str, str]:
    return member.instance_id is None, member.instance_id or "", member_id


def _kept(members: Members, counts: PartitionCounts) -> _Owned:
    """What members had and may have further, each partition once."""
    taken: set[tuple[bytes, int]] = set()
    owned: _Owned = {}
    for member_id in sorted(members):
        member = members[member_id]
        mine = {
            (topic_id, partition)
            for topic_id, partitions in member.target.items()
            if topic_id in member.topic_ids
            for partition in partitions
            if partition < counts.get(topic_id, 0)
        } - taken
        taken |= mine
        owned[member_id] = mine
    return owned


def _all_partitions(members: Members, counts: PartitionCounts) -> list[tuple[bytes, int]]:
    read = frozenset[bytes]().union(*(member.topic_ids for member in members.values()))
    return [
        (topic_id, partition)
        for topic_id in sorted(counts)
        if topic_id in read
        for partition in range(counts[topic_id])
    ]


def _share_alike(owned: _Owned, members: Members, counts: PartitionCounts) -> None:
    """Shares among members that have all subscribed to the same: nobody has two more."""
    partitions = _all_partitions(members, counts)
    share, extra = divmod(len(partitions), len(owned))
    # Those who have most keep the larger shares.
    for member_id in sorted(owned, key=lambda each: (-len(owned[each]), each)):
        allowed = share + (extra > 0)
        mine = sorted(owned[member_id])
        owned[member_id] = set(mine[:allowed])
        extra -= len(owned[member_id]) > share
    taken = set[tuple[bytes, int]]().union(*owned.values())
    free = iter([partition for partition in partitions if partition not in taken])
    for member_id in sorted(owned):
        mine_now = owned[member_id]
        while len(mine_now) < share:
            mine_now.add(next(free))
    for member_id, partition in zip(
        (each for each in sorted(owned) if len(owned[each]) == share), free, strict=False
    ):
        owned[member_id].add(partition)


def _share_by_subscription(owned: _Owned, members: Members, counts: PartitionCounts) -> None:
    """Shares among members of different subscriptions: no move would make two shares more even."""
    readers = {
        topic_id: sorted(each for each in members if topic_id in members[each].topic_ids)
        for topic_id in counts
    }
    owner = {partition: each for each, mine in owned.items() for partition in mine}
    partitions = _all_partitions(members, counts)
    # Topics with few readers leave least choice, so they come first.
    for partition in sorted(partitions, key=lambda each: (len(readers[each[0]]), each)):
        if partition not in owner:
            least = min(readers[partition[0]], key=lambda each: (len(owned[each]), each))
            owner[partition] = least
            owned[least].add(partition)
    moved = True
    while moved:
        moved = False
        for partition in partitions:
            giver = owner[partition]
            least = min(readers[partition[0]], key=lambda each: (len(owned[each]), each))
            # Each move makes the sum of squares of the shares smaller, so there is a last one.
            if len(owned[least]) + 1 < len(owned[giver]):
                owned[giver].remove(partition)
                owned[least].add(partition)
                owner[partition] = least
                moved = True
