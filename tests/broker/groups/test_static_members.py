"""Members with a group instance id keep their place while they restart (KIP-345, KIP-814)."""

from support.group_world import World


def test_a_static_member_that_returns_takes_its_place_without_a_rebalance() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    after = world.join(instance="i", version=5).value
    assert (after.error_code, after.generation_id) == (0, 1)
    assert after.member_id != before.member_id
    assert world.state() == "Stable"
    assert world.sync(after).value.assignment == before.member_id.encode()


def test_the_one_before_is_fenced() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    world.join(instance="i", version=5)
    assert world.heartbeat(before.member_id, 1, instance="i") == 82
    assert world.sync(before, group_instance_id="i").value.error_code == 82
    assert world.join(before.member_id, instance="i", version=5).value.error_code == 82
    assert world.leave(before.member_id, instance="i") == 82


def test_a_join_that_waits_is_fenced_when_another_takes_its_place() -> None:
    world = World()
    world.stable(1, instance="other", version=5)
    waiting = world.join(instance="i", version=5)
    world.join(instance="i", version=5)
    assert waiting.value.error_code == 82


def test_before_version_9_a_returning_leader_is_told_that_another_leads() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    after = world.join(instance="i", version=8).value
    assert (after.leader, after.members, after.skip_assignment) == (before.member_id, [], False)


def test_from_version_9_a_returning_leader_leads_and_skips_the_assignment() -> None:
    world = World()
    world.stable(1, instance="i", version=9)
    after = world.join(instance="i", version=9).value
    assert (after.leader, after.skip_assignment) == (after.member_id, True)
    assert [each.group_instance_id for each in after.members] == ["i"]


def test_a_returning_follower_skips_nothing() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    answers = [world.join(instance=each, version=9) for each in "ab"]
    world.pass_time(6_000)
    world.synced([each.value for each in answers])
    after = world.join(instance="b", version=9).value
    assert (after.skip_assignment, after.members) == (False, [])


def test_a_return_while_the_leader_assigns_has_the_group_rebalance() -> None:
    world = World()
    world.join(instance="i", version=5)
    after = world.join(instance="i", version=5).value
    assert after.generation_id == 2


def test_a_return_that_changes_the_protocol_has_the_group_rebalance() -> None:
    world = World()
    world.stable(1, instance="i", version=5, protocols={"a": b"", "b": b""})
    after = world.join(instance="i", version=5, protocols={"b": b""}).value
    assert (after.generation_id, after.protocol_name) == (2, "b")


def test_a_return_that_cannot_be_kept_changes_nothing() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    world.append_error = 19
    assert world.join(instance="i", version=5).value.error_code == 15
    world.append_error = 0
    assert world.heartbeat(before.member_id, 1, instance="i") == 0


def test_a_static_member_that_misses_a_rebalance_keeps_its_place_for_its_session() -> None:
    world = World()
    (static,) = world.stable(1, instance="i", version=5, session_ms=20_000, rebalance_ms=5_000)
    newcomer = world.join(rebalance_ms=5_000)
    world.pass_time(5_000)
    assert {each.member_id for each in newcomer.value.members} == {
        static.member_id,
        newcomer.value.member_id,
    }


def test_a_group_of_static_members_that_are_away_waits_for_their_sessions() -> None:
    world = World(group_initial_rebalance_delay_ms=1_000)
    answers = [
        world.join(instance=each, version=5, session_ms=20_000, rebalance_ms=5_000) for each in "ab"
    ]
    world.pass_time(2_000)
    joined = world.synced([each.value for each in answers])
    world.leave(instance="a")
    world.pass_time(10_000)
    assert world.state() == "PreparingRebalance"
    world.pass_time(10_000)
    assert world.state() == "Empty"
    assert world.heartbeat(joined[1].member_id, 1) == 25


def test_an_administrator_removes_a_member_by_its_instance_id() -> None:
    world = World()
    world.stable(1, instance="i", version=5)
    assert world.leave(instance="i") == 0
    assert world.state() == "Empty"


def test_a_restart_knows_static_members() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    world.start()
    after = world.join(instance="i", version=5).value
    assert (after.error_code, after.generation_id) == (0, 1)
    assert world.heartbeat(before.member_id, 1, instance="i") == 82
