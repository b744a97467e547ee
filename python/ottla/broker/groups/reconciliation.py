"""How a member gets from the partitions it has to those it is to have (KIP-848).

    Stable ──a new target takes partitions away──▶ UnrevokedPartitions
      ▲  ▲                                              │ the member no longer owns them
      │  └─────────nothing is missing───────────────────┤
      │                                                 ▼
      └──others have released what is missing── UnreleasedPartitions

A partition is given to a member once no other has it or has yet to give it up. The member's epoch
becomes the target's as soon as it has nothing to give up.
"""

from collections.abc import Callable

from ottla.broker.groups.records import (
    CurrentAssignment,
    MemberState,
    Partitions,
    by_topic,
    each_partition,
)

# The partitions that a member says it owns; `None` where it does not say, as nothing has changed.
Owned = set[tuple[bytes, int]] | None


def reconcile(
    current: CurrentAssignment,
    *,
    target: Partitions,
    target_epoch: int,
    owned: Owned,
    is_free: Callable[[tuple[bytes, int]], bool],
) -> CurrentAssignment:
    """Returns the next assignment of a member, the same if it has to wait.

    Args:
        is_free: whether nobody has a partition, or has yet to give it up.
    """
    epoch = current.member_epoch
    if current.state == MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, current.pending_revocation):
            return current
        epoch += 1
    elif current.state == MemberState.STABLE and current.member_epoch == target_epoch:
        return current
    had = set(each_partition(current.assigned))
    wanted = set(each_partition(target))
    kept = had & wanted
    revoked = by_topic(had - wanted)
    missing = wanted - kept
    free = {partition for partition in missing if is_free(partition)}
    if revoked and _still_owns(owned, revoked):
        return CurrentAssignment(
            epoch,
            current.member_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            by_topic(kept),
            revoked,
        )
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS
    return CurrentAssignment(target_epoch, current.member_epoch, state, by_topic(kept | free), {})


def _still_owns(owned: Owned, partitions: Partitions) -> bool:
    return owned is None or not owned.isdisjoint(each_partition(partitions))
