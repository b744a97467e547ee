"""Members of groups whose coordinator assigns (KIP-848): what they say, and what they hear."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.client.errors import (
    FencedInstanceIdError,
    OffsetCommitFailedError,
    PollIntervalExceededError,
    UnsupportedVersionError,
)
from ottla.client.groups.membership import EventKind
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from support.group_members import GroupMembers
from support.scripted_group import ScriptedGroup

NEW: dict[str, Any] = {"group_protocol": "consumer"}
T0 = TopicPartition("t", 0)


def beats(group: ScriptedGroup) -> list[Any]:
    return group.cluster.asked("ConsumerGroupHeartbeat")


def test_two_members_share_a_topic_and_what_stays_is_not_touched() -> None:
    world = GroupMembers()
    first = world.member("a", **NEW).subscribe("t")
    world.settle()
    assert len(first.owned) == 4
    second = world.member("b", **NEW).subscribe("t")
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    assert first.told(EventKind.REVOKE) == [second.owned]


def test_a_member_says_everything_when_it_joins_and_then_what_changed() -> None:
    group = ScriptedGroup(group_remote_assignor="range", client_rack="r1", **NEW).joined()
    group.cluster.run(lambda: len(beats(group)) == 3)
    first, acknowledged, silent = beats(group)
    assert first.member_epoch == 0
    assert len(first.member_id) == 22
    assert (first.rebalance_timeout_ms, first.rack_id) == (300_000, "r1")
    assert (first.subscribed_topic_names, first.server_assignor) == (["t"], "range")
    assert first.topic_partitions == []
    assert first.subscribed_topic_regex is None
    assert acknowledged.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert acknowledged.subscribed_topic_names is None
    assert silent.topic_partitions is None
    assert {each.member_id for each in beats(group)} == {first.member_id}
    assert silent.member_epoch == 1


def test_what_is_taken_away_is_given_up_before_the_coordinator_hears_so() -> None:
    group = ScriptedGroup(**NEW).joined()
    group.cluster.run(max_ms=1000)
    group.holds_events = True
    group.target = [0, 1]
    group.cluster.run(lambda: group.told(EventKind.REVOKE) == [[2, 3]])
    assert group.owned == [0, 1, 2, 3]
    count = len(beats(group))
    group.cluster.run(max_ms=20_000)
    # It goes on to show that it lives, and says nothing of what it owns.
    assert len(beats(group)) > count
    assert all(each.topic_partitions is None for each in beats(group)[count:])
    before = len(beats(group))
    group.holds_events = False
    group.membership.event_done(group.now_ms)
    assert group.owned == [0, 1]
    group.cluster.run(lambda: len(beats(group)) > before, 100)
    assert beats(group)[-1].topic_partitions[0].partitions == [0, 1]


def test_a_heartbeat_that_is_lost_is_followed_by_one_in_full() -> None:
    group = ScriptedGroup(**NEW).joined()
    group.cluster.run(max_ms=1000)
    group.cluster.run(lambda: group.network.next_deadline_ms() is not None, 10_000)
    before = len(beats(group))
    group.silent = {"ConsumerGroupHeartbeat"}
    group.cluster.run(lambda: len(beats(group)) > before)
    group.silent = set()
    group.cluster.cut(1)
    group.cluster.run(lambda: len(beats(group)) > before + 1)
    again = beats(group)[-1]
    assert again.member_epoch == 1
    assert again.subscribed_topic_names == ["t"]
    assert again.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert not group.told(EventKind.LOSE)


@pytest.mark.parametrize("code", [25, 110])
def test_a_member_that_is_fenced_joins_again_under_its_id_once_it_has_let_go(code: int) -> None:
    group = ScriptedGroup(**NEW).joined()
    group.holds_events = True
    group.fail = {"ConsumerGroupHeartbeat": [code]}
    group.cluster.run(lambda: group.told(EventKind.LOSE) == [[0, 1, 2, 3]])
    before = len(beats(group))
    group.cluster.run(max_ms=10_000)
    assert len(beats(group)) == before
    assert not group.owned
    pending = group.group.commit({T0: OffsetAndMetadata(1)}, group.now_ms)
    assert isinstance(pending.error, OffsetCommitFailedError)
    group.holds_events = False
    group.membership.event_done(group.now_ms)
    group.cluster.run(lambda: group.owned == [0, 1, 2, 3])
    joins = [each for each in beats(group) if each.member_epoch == 0]
    assert len(joins) == 2
    assert joins[0].member_id == joins[1].member_id


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_leaves_says_whether_it_may_be_back(instance: str | None, epoch: int) -> None:
    group = ScriptedGroup(group_instance_id=instance, **NEW).joined()
    group.wait(group.membership.leave(group.now_ms))
    last = beats(group)[-1]
    assert (last.member_epoch, last.instance_id) == (epoch, instance)
    assert group.told(EventKind.REVOKE) == [[0, 1, 2, 3]]


def test_a_static_member_that_comes_back_has_what_it_had() -> None:
    world = GroupMembers()
    first = world.member("a", group_instance_id="1", **NEW).subscribe("t")
    second = world.member("b", group_instance_id="2", **NEW).subscribe("t")
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    before = second.owned
    first.events.clear()
    pending = second.membership.leave(world.now_ms)
    world.run(10_000, lambda: pending.is_done)
    second.die()
    again = world.member("c", group_instance_id="2", **NEW).subscribe("t")
    world.run(10_000, lambda: again.owned == before)
    assert not first.told(EventKind.REVOKE)


def test_an_instance_id_that_another_has_is_told_until_it_is_free() -> None:
    world = GroupMembers()
    first = world.member("a", group_instance_id="1", **NEW).subscribe("t")
    world.settle()
    second = world.member("b", group_instance_id="1", **NEW).subscribe("t")
    world.run(60_000, lambda: second.errors)
    assert second.errors[0].error_code == 111
    assert "has not left: give each one of its own" in str(second.errors[0])
    assert len(first.owned) == 4
    pending = first.membership.leave(world.now_ms)
    world.run(60_000, lambda: pending.is_done and len(second.owned) == 4)


def test_a_member_whose_place_was_taken_is_fenced_for_good() -> None:
    group = ScriptedGroup(group_instance_id="i", **NEW).joined()
    group.fail = {"ConsumerGroupHeartbeat": [82]}
    group.cluster.run(lambda: len(group.raised) > 1)
    assert {type(each) for each in group.raised} == {FencedInstanceIdError}
    assert group.raised[0] is not group.raised[1]


def test_a_pattern_is_matched_by_the_coordinator() -> None:
    world = GroupMembers(topics={"t-1": 2, "t-2": 1})
    member = world.member("a", **NEW).subscribe(pattern="t-.*")
    world.settle()
    assert member.owned == [("t-1", 0), ("t-1", 1), ("t-2", 0)]
    member.subscribe("t-2")
    world.run(60_000, lambda: member.owned == [("t-2", 0)])


def test_a_pattern_that_is_none_is_told() -> None:
    world = GroupMembers()
    member = world.member("a", **NEW).subscribe(pattern="(")
    world.run(60_000, lambda: member.errors)
    assert member.errors[0].error_code == 128


@pytest.mark.parametrize("versions", [range(1), range(2)])
def test_version_0_is_enough_for_topics_by_name(versions: range) -> None:
    ScriptedGroup(versions={"ConsumerGroupHeartbeat": versions}, **NEW).joined()


def test_a_pattern_needs_version_1() -> None:
    group = ScriptedGroup(versions={"ConsumerGroupHeartbeat": range(1)}, **NEW)
    group.membership.subscribe(frozenset(), group.now_ms, pattern="t")
    group.cluster.run(lambda: group.raised)
    assert isinstance(group.raised[0], UnsupportedVersionError)


def test_a_broker_without_the_protocol_is_told_with_what_to_set() -> None:
    world = GroupMembers(config={"group.coordinator.rebalance.protocols": "classic"})
    member = world.member("a", **NEW).subscribe("t")
    world.run(60_000, lambda: member.errors)
    assert 'set group_protocol to "classic"' in str(member.errors[0])


def test_an_application_that_does_not_poll_leaves_and_the_next_poll_says_so() -> None:
    world = GroupMembers()
    settings = {"max_poll_interval_ms": 10_000, **NEW}
    first, second = (world.member(name, **settings).subscribe("t") for name in "ab")
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    second.is_polling = False
    world.run(60_000, lambda: len(first.owned) == 4)
    assert not second.owned
    second.is_polling = True
    world.run(60_000, lambda: len(second.owned) == 2 and world.is_settled())
    assert [type(each) for each in second.errors] == [PollIntervalExceededError]


def test_a_commit_in_an_epoch_that_has_gone_on_is_made_again_in_the_next() -> None:
    group = ScriptedGroup(**NEW).joined()
    group.cluster.run(max_ms=1000)
    group.epoch_to_come = 7
    group.fail = {"OffsetCommit": [113]}
    pending = group.wait(group.group.commit({T0: OffsetAndMetadata(1)}, group.now_ms))
    assert pending.error is None
    epochs = [each.generation_id_or_member_epoch for each in group.cluster.asked("OffsetCommit")]
    assert epochs == [1, 7]


def test_a_member_of_either_protocol_shares_a_group_with_the_other() -> None:
    world = GroupMembers()
    classic = world.member("a", partition_assignment_strategy="cooperative-sticky").subscribe("t")
    world.settle()
    new = world.member("b", **NEW).subscribe("t")
    world.run(120_000, lambda: len(new.owned) == 2 and world.is_settled())
    assert len(classic.owned) == 2
