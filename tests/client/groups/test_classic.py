"""Members of classic groups on a broker: they share, join, leave, and what they hear of it."""

from __future__ import annotations

import pytest
from ottla.client.groups.membership import EventKind
from support.group_members import GroupMembers

EAGER = {"partition_assignment_strategy": "range"}
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_two_members_share_a_topic(strategy: str) -> None:
    world = GroupMembers()
    first = world.member("a", partition_assignment_strategy=strategy).subscribe("t")
    world.settle()
    assert len(first.owned) == 4
    second = world.member("b", partition_assignment_strategy=strategy).subscribe("t")
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    assert len(first.owned) == 2


def test_a_member_that_leaves_gives_its_partitions_up_first() -> None:
    world = GroupMembers()
    first, second = (world.member(name, **EAGER).subscribe("t") for name in "ab")
    world.settle()
    before = second.owned
    pending = second.membership.leave(world.now_ms)
    world.run(60_000, lambda: pending.is_done)
    assert pending.error is None
    assert second.told(EventKind.REVOKE)[-1] == before
    world.settle()
    assert len(first.owned) == 4
    assert not second.owned


def test_a_cooperative_member_keeps_what_stays_its_own() -> None:
    world = GroupMembers(topics={"t": 9})
    first, second = (world.member(name, **COOPERATIVE).subscribe("t") for name in "ab")
    world.settle()
    had = {first.name: set(first.owned), second.name: set(second.owned)}
    for each in (first, second):
        each.events.clear()
    third = world.member("c", **COOPERATIVE).subscribe("t")
    world.run(60_000, lambda: len(third.owned) == 3 and world.is_settled())
    for each in (first, second):
        given_up = {one for event in each.told(EventKind.REVOKE) for one in event}
        assert given_up == had[each.name] - set(each.owned)
        assert given_up <= set(third.owned)
        assert not any(each.told(EventKind.ASSIGN))
