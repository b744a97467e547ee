"""Members of classic groups on a broker: they share, join, leave, and what they hear of it."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.client.errors import (
    FencedInstanceIdError,
    IllegalStateError,
    PollIntervalExceededError,
    UnsupportedVersionError,
)
from ottla.client.groups.membership import EventKind
from ottla.protocol.messages.join_group import JoinGroupResponseMember
from support.group_members import GroupMembers
from support.scripted_group import ScriptedGroup

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


def test_members_of_a_pattern_that_changes_join_again_for_the_new_topics() -> None:
    world = GroupMembers(topics={"t": 2})
    first = world.member("a", **COOPERATIVE).subscribe("t")
    world.settle()
    world.create("u", 2)
    first.subscribe("t", "u")
    world.run(60_000, lambda: len(first.owned) == 4)
    assert not first.told(EventKind.REVOKE)
    first.subscribe("u")
    world.run(60_000, lambda: first.owned == [("u", 0), ("u", 1)])
    assert first.told(EventKind.REVOKE) == [[("t", 0), ("t", 1)]]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_leader_has_partitions_assigned_that_were_added(strategy: str) -> None:
    world = GroupMembers(topics={"t": 2})
    settings = {"partition_assignment_strategy": strategy, "metadata_max_age_ms": 2000}
    first, second = (world.member(name, **settings).subscribe("t") for name in "ab")
    world.settle()
    world.add_partitions("t", 6)
    world.settle()
    assert (len(first.owned), len(second.owned)) == (3, 3)


def test_a_leader_goes_on_looking_at_topics_that_only_others_read() -> None:
    world = GroupMembers(topics={"t": 1, "u": 1})
    settings = {**COOPERATIVE, "metadata_max_age_ms": 2000}
    leader, other = world.member("a", **settings).subscribe("t"), world.member("b", **settings)
    world.run(60_000, lambda: len(leader.owned) == 1)
    other.subscribe("u")
    world.settle()
    joins = len(leader.events)
    leader.network.metadata.set_topics(frozenset({"t"}))
    world.run(20_000)
    assert len(leader.events) == joins
    world.add_partitions("u", 3)
    world.settle()
    assert len(other.owned) == 3


def test_a_topic_that_does_not_exist_yet_is_assigned_once_it_does() -> None:
    world = GroupMembers(topics={"t": 2})
    settings = {**EAGER, "metadata_max_age_ms": 2000, "allow_auto_create_topics": False}
    member = world.member("a", **settings).subscribe("t", "later")
    world.run(60_000, lambda: len(member.owned) == 2)
    world.create("later", 1)
    world.settle()
    assert ("later", 0) in member.owned


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_an_application_that_does_not_poll_leaves_and_the_next_poll_says_so(strategy: str) -> None:
    world = GroupMembers()
    settings = {"partition_assignment_strategy": strategy, "max_poll_interval_ms": 10_000}
    first, second = (world.member(name, **settings).subscribe("t") for name in "ab")
    world.settle()
    second.is_polling = False
    world.run(15_000)
    world.run(60_000, lambda: len(first.owned) == 4)
    assert not second.owned
    second.is_polling = True
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    (error,) = second.errors
    assert isinstance(error, PollIntervalExceededError)
    assert "max_poll_interval_ms = 10000: call it sooner, by a smaller max_poll_rec" in str(error)
    assert len(second.told(EventKind.LOSE)) == 1


def test_a_member_that_dies_is_replaced_after_its_session() -> None:
    world = GroupMembers()
    settings = {**EAGER, "session_timeout_ms": 10_000}
    first, second = (world.member(name, **settings).subscribe("t") for name in "ab")
    world.settle()
    second.die()
    world.run(9_000)
    assert len(first.owned) == 2
    world.settle()
    assert len(first.owned) == 4


def test_a_static_member_that_comes_back_has_what_it_had_and_nobody_else_notices() -> None:
    world = GroupMembers()
    first = world.member("a", group_instance_id="1", **EAGER).subscribe("t")
    second = world.member("b", group_instance_id="2", **EAGER).subscribe("t")
    world.settle()
    before = second.owned
    first.events.clear()
    pending = second.membership.leave(world.now_ms)
    world.run(10_000, lambda: pending.is_done)
    second.die()
    again = world.member("c", group_instance_id="2", **EAGER).subscribe("t")
    world.run(10_000, lambda: again.owned == before)
    assert not first.events


def test_of_two_with_one_instance_id_the_first_is_fenced_and_told_each_time() -> None:
    # The first hears of it by its next heartbeat, as Kafka's do.
    world = GroupMembers(is_exclusive=False)
    first = world.member("a", group_instance_id="1", **EAGER).subscribe("t")
    world.settle()
    second = world.member("b", group_instance_id="1", **EAGER).subscribe("t")
    world.run(60_000, lambda: len(first.errors) > 1)
    assert {type(each) for each in first.errors} == {FencedInstanceIdError}
    assert "give each one of its own" in str(first.errors[0])
    assert not first.owned
    assert len(second.owned) == 4


class Mine:
    """An application's assignor: everything to the first member."""

    name = "mine"
    is_cooperative = False

    def assign(self, partition_counts: Any, members: Any) -> Any:
        first = min(members)
        return {
            first: [(topic, n) for topic, count in partition_counts.items() for n in range(count)]
        }

    def user_data(self) -> bytes | None:
        return None

    def assigned(self, partitions: Any, generation_id: int) -> None:
        self.had = partitions, generation_id


def test_an_application_may_assign_by_a_rule_of_its_own() -> None:
    group = ScriptedGroup(partition_assignment_strategy=(Mine(),)).joined()
    assert group.cluster.asked("JoinGroup")[0].protocols[0].name == "mine"


def test_an_assignor_that_gives_a_partition_twice_is_refused() -> None:
    class Wrong(Mine):
        def assign(self, partition_counts: Any, members: Any) -> Any:  # noqa: ARG002
            return {each: [("t", 0), ("t", 0)] for each in members}

    group = ScriptedGroup(partition_assignment_strategy=(Wrong(),)).subscribe()
    group.is_polling = False
    group.membership.poll(group.now_ms)
    group.cluster.run(max_ms=100)
    with pytest.raises(IllegalStateError, match="gives t-0 to 'm'"):
        group.membership.poll(group.now_ms)


def test_a_member_whose_subscription_cannot_be_read_is_named_to_the_leader() -> None:
    group = ScriptedGroup()
    group.members = [JoinGroupResponseMember(member_id="other", metadata=b"\0\3\xff")]
    group.subscribe()
    group.cluster.run(lambda: group.raised)
    assert "the subscription of member other cannot be read" in str(group.raised[0])


def test_what_the_coordinator_has_assigned_goes_on_where_it_says_so() -> None:
    group = ScriptedGroup(group_instance_id="i").joined()
    group.skips_assignment = True
    group.membership.rejoin("a test", group.now_ms)
    group.cluster.run(lambda: group.count("SyncGroup") == 2)
    assert group.cluster.asked("SyncGroup")[1].assignments == []
    assert group.cluster.asked("JoinGroup")[-1].reason == "a test"


@pytest.mark.parametrize(
    "versions",
    [
        {"JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0, "LeaveGroup": 0, "FindCoordinator": 0},
        {"JoinGroup": 2, "SyncGroup": 1, "Heartbeat": 1, "LeaveGroup": 1, "FindCoordinator": 1},
        {"JoinGroup": 4, "SyncGroup": 2, "Heartbeat": 2, "LeaveGroup": 2, "FindCoordinator": 3},
        {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "FindCoordinator": 6},
    ],
)
def test_a_member_speaks_every_version_of_its_requests(versions: dict[str, int]) -> None:
    group = ScriptedGroup(versions={api: range(n, n + 1) for api, n in versions.items()}).joined()
    group.cluster.run(lambda: group.count("Heartbeat") == 2)
    group.wait(group.membership.leave(group.now_ms))
    (left,) = group.cluster.asked("LeaveGroup")
    assert (left.member_id or left.members[0].member_id) == "m"
    assert group.told(EventKind.REVOKE) == [[0, 1, 2, 3]]


def test_a_static_member_is_none_on_a_broker_that_knows_none() -> None:
    group = ScriptedGroup(versions={"JoinGroup": range(5)}, group_instance_id="i").subscribe()
    group.cluster.run(lambda: group.raised)
    assert isinstance(group.raised[0], UnsupportedVersionError)


def test_a_coordinator_that_is_silent_for_a_session_is_looked_for_and_nothing_is_lost() -> None:
    group = ScriptedGroup(request_timeout_ms=60_000, session_timeout_ms=10_000).joined()
    group.silent = {"Heartbeat"}
    group.cluster.run(lambda: group.count("FindCoordinator") == 2)
    group.silent = set()
    before = group.count("Heartbeat")
    group.cluster.run(lambda: group.count("Heartbeat") > before)
    assert group.owned == [0, 1, 2, 3]
    assert not group.told(EventKind.LOSE)


def test_a_heartbeat_leaves_each_interval_while_the_consumer_gives_partitions_up() -> None:
    group = ScriptedGroup().joined()
    group.holds_events = True
    group.membership.rejoin("a test", group.now_ms)
    before = group.count("Heartbeat")
    group.cluster.run(max_ms=30_500)
    assert group.count("Heartbeat") - before == 10
    assert group.count("JoinGroup") == 1
    assert group.owned == [0, 1, 2, 3]


def test_a_consumer_that_has_not_polled_joins_nothing() -> None:
    group = ScriptedGroup()
    group.is_polling = False
    group.subscribe()
    group.cluster.run(max_ms=10_000)
    assert not group.count("JoinGroup")


def test_leaving_does_not_wait_for_a_coordinator_that_is_gone() -> None:
    group = ScriptedGroup().joined()
    group.cluster.down = {1, 2}
    group.cluster.cut(1)
    group.cluster.cut(2)
    pending = group.membership.leave(group.now_ms)
    group.cluster.run(lambda: pending.is_done, 30_000)
    assert pending.error is None


def test_what_joined_while_the_member_leaves_is_not_looked_at() -> None:
    group = ScriptedGroup()
    group.subscribe()
    group.cluster.run(lambda: group.count("JoinGroup") == 1)
    pending = group.membership.leave(group.now_ms)
    group.cluster.run(max_ms=10_000)
    assert pending.is_done
    assert not group.owned
    assert not group.events


def test_what_is_not_given_up_until_the_group_goes_on_is_lost_though_the_application_polls() -> (
    None
):
    group = ScriptedGroup(max_poll_interval_ms=20_000).joined()
    group.holds_events = True
    group.fail = {"Heartbeat": [27] * 100}
    begun_ms = group.now_ms
    group.cluster.run(lambda: group.told(EventKind.REVOKE) == [[0, 1, 2, 3]])
    group.cluster.run(lambda: not group.owned)
    # The coordinator may have been waiting since the member joined.
    assert group.now_ms - begun_ms <= 20_000
    assert not group.raised
    group.holds_events = False
    group.membership.event_done(group.now_ms)
    group.cluster.run(lambda: group.owned == [0, 1, 2, 3])
