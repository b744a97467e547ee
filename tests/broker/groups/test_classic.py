"""Classic groups: each rule of joining, syncing, heartbeats and leaving, with a virtual clock."""

from support.group_world import World


def test_a_first_member_leads_generation_one_and_hears_of_the_members() -> None:
    world = World()
    joined = world.join().value
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [(each.member_id, each.metadata) for each in joined.members] == [
        (joined.member_id, b"sub")
    ]
    assert world.state() == "CompletingRebalance"


def test_member_ids_are_the_client_id_and_a_random_uuid() -> None:
    first, second = (World().join(group=group, client="app").value for group in "ab")
    assert first.member_id == second.member_id
    assert first.member_id.startswith("app-")
    assert len(first.member_id) == len("app-") + 36


def test_from_version_4_a_member_is_told_its_id_and_joins_with_it() -> None:
    world = World()
    told = world.join(version=4).value
    assert (told.error_code, told.generation_id) == (79, -1)
    assert world.state() == "Empty"
    joined = world.join(told.member_id, version=4).value
    assert (joined.error_code, joined.member_id) == (0, told.member_id)


def test_a_static_member_needs_no_id_to_join() -> None:
    world = World()
    assert world.join(version=5, instance="i").value.error_code == 0


def test_the_first_rebalance_waits_for_more_members_while_they_come() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    first = world.join(rebalance_ms=7_000)
    world.pass_time(2_000)
    second = world.join(rebalance_ms=7_000)
    world.pass_time(1_000)
    assert first.waits
    # Extended once, and nobody came.
    world.pass_time(3_000)
    assert {first.value.generation_id, second.value.generation_id} == {1}


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_time_out() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    answers = []
    for _ in range(4):
        answers.append(world.join(rebalance_ms=7_000))
        world.pass_time(2_000)
    assert [each.waits for each in answers] == [False] * 4


def test_everybody_gets_what_the_leader_assigned() -> None:
    world = World()
    joined = world.stable(3)
    assert world.state() == "Stable"
    assert sum(bool(each.members) for each in joined) == 1


def test_followers_wait_for_the_leader_to_assign() -> None:
    world = World()
    first = world.join()
    second = world.join()
    again = world.join(first.value.member_id)
    assert {again.value.generation_id, second.value.generation_id} == {2}
    waiting = world.sync(second.value)
    assert waiting.waits
    done = world.sync(again.value, {second.value.member_id: b"all"})
    assert (waiting.value.assignment, done.value.assignment) == (b"all", b"")


def test_a_new_member_has_the_others_told_to_join_again() -> None:
    world = World()
    (leader,) = world.stable(1)
    newcomer = world.join()
    assert newcomer.waits
    assert world.heartbeat(leader.member_id, 1) == 27
    again = world.join(leader.member_id)
    assert (again.value.generation_id, newcomer.value.generation_id) == (2, 2)


def test_members_that_do_not_join_again_are_out_after_the_rebalance_time_out() -> None:
    world = World()
    (leader,) = world.stable(1, session_ms=30_000, rebalance_ms=5_000)
    newcomer = world.join(rebalance_ms=5_000)
    world.pass_time(4_999)
    assert newcomer.waits
    world.pass_time(1)
    assert [each.member_id for each in newcomer.value.members] == [newcomer.value.member_id]
    assert world.heartbeat(leader.member_id, 2) == 25


def test_a_rebalance_waits_for_a_member_that_was_given_an_id() -> None:
    world = World()
    (leader,) = world.stable(1)
    told = world.join(version=4).value.member_id
    world.leave("nobody")
    again = world.join(leader.member_id)
    assert again.waits
    assert world.join(told, version=4).value.generation_id == again.value.generation_id == 2


def test_an_id_that_was_given_out_is_forgotten_after_the_session_time_out() -> None:
    world = World()
    told = world.join(version=4, session_ms=6_000).value.member_id
    world.pass_time(6_000)
    assert world.join(told, version=4).value.error_code == 25


def test_a_group_without_a_common_protocol_refuses_a_member() -> None:
    world = World()
    world.stable(1, protocols={"range": b"", "roundrobin": b""})
    assert world.join(protocols={"sticky": b""}).value.error_code == 23
    assert world.join(protocols={}).value.error_code == 23
    assert world.join(protocol_type="connect").value.error_code == 23
    assert World().join(protocol_type="").value.error_code == 23


def test_the_protocol_that_most_members_prefer_is_chosen() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    answers = [
        world.join(protocols={"a": b"", "b": b"", "c": b""}),
        world.join(protocols={"b": b"", "a": b""}),
        world.join(protocols={"x": b"", "b": b"", "a": b""}),
    ]
    world.pass_time(6_000)
    assert [each.value.protocol_name for each in answers] == ["b"] * 3


def test_session_time_outs_have_bounds() -> None:
    world = World(group_min_session_timeout_ms=6_000, group_max_session_timeout_ms=9_000)
    codes = [world.join(session_ms=each).value.error_code for each in (5_999, 9_001, 6_000)]
    assert codes == [26, 26, 0]


def test_a_group_without_a_name_is_refused() -> None:
    world = World()
    assert world.join(group="").value.error_code == 24
    assert world.heartbeat("m", 1, group="") == 24


def test_version_0_has_one_time_out_for_session_and_rebalance() -> None:
    world = World()
    world.stable(1, version=0, rebalance_ms=-1, session_ms=7_000)
    newcomer = world.join(version=0, rebalance_ms=-1, session_ms=7_000)
    world.pass_time(7_000)
    assert newcomer.value.generation_id == 2


def test_a_full_group_refuses_a_member_and_keeps_its_own() -> None:
    world = World(group_max_size=2)
    joined = world.stable(2)
    assert world.join().value.error_code == 81
    assert world.join(version=4).value.error_code == 81
    assert [world.heartbeat(each.member_id, each.generation_id) for each in joined] == [0, 0]


def test_a_member_that_is_silent_for_its_session_time_out_is_out() -> None:
    world = World()
    joined = world.stable(2, session_ms=10_000)
    world.pass_time(9_999)
    assert world.heartbeat(joined[0].member_id, joined[0].generation_id) == 0
    world.pass_time(1)
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(joined[1].member_id, joined[1].generation_id) == 25
    assert world.heartbeat(joined[0].member_id, joined[0].generation_id) == 27


def test_a_member_that_waits_for_a_generation_needs_no_heartbeats() -> None:
    world = World()
    world.stable(1, session_ms=100_000, rebalance_ms=60_000)
    newcomer = world.join(session_ms=10_000, rebalance_ms=60_000)
    world.pass_time(59_999)
    assert newcomer.waits
    world.pass_time(1)
    assert newcomer.value.error_code == 0


def test_a_new_member_waits_five_minutes_at_most() -> None:
    world = World()
    world.stable(1, session_ms=1_000_000, rebalance_ms=1_000_000)
    newcomer = world.join()
    world.pass_time(300_000)
    assert (newcomer.value.error_code, newcomer.value.member_id) == (25, "")


def test_members_that_do_not_sync_are_out_after_the_rebalance_time_out() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    answers = [world.join(rebalance_ms=8_000, session_ms=60_000) for _ in range(2)]
    world.pass_time(6_000)
    leader, follower = sorted((each.value for each in answers), key=lambda each: not each.members)
    assert world.sync(leader, {}).value.error_code == 0
    assert world.state() == "Stable"
    world.pass_time(8_000)
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(follower.member_id, 1) == 25


def test_the_last_to_leave_empties_the_group() -> None:
    world = World()
    (leader,) = world.stable(1)
    assert world.leave(leader.member_id) == 0
    assert world.state() == "Empty"
    assert world.heartbeat(leader.member_id, 1) == 25


def test_those_who_stay_join_again_when_one_leaves() -> None:
    world = World()
    joined = world.stable(2)
    assert world.leave(joined[0].member_id) == 0
    assert world.heartbeat(joined[1].member_id, joined[1].generation_id) == 27
    again = world.join(joined[1].member_id).value
    assert again.leader == joined[1].member_id


def test_leaving_answers_for_each_member() -> None:
    world = World()
    (leader,) = world.stable(1)
    assert world.leave("stranger") == 25
    assert world.leave("stranger", group="no-such") == 25
    assert world.leave(instance="no-such") == 25
    assert world.state() == "Stable"
    assert world.leave(leader.member_id) == 0


def test_a_member_with_an_id_only_may_leave() -> None:
    world = World()
    told = world.join(version=4).value.member_id
    assert world.leave(told) == 0
    assert world.join(told, version=4).value.error_code == 25


def test_what_waits_is_answered_when_its_member_leaves() -> None:
    world = World()
    joined = world.stable(1, session_ms=60_000)
    waiting = world.join(joined[0].member_id, protocols={"range": b"new"})
    syncing = world.sync(waiting.value)
    assert syncing.value.error_code == 0
    world.join(session_ms=60_000)
    late = world.join(joined[0].member_id)
    world.leave(joined[0].member_id)
    assert not late.waits


def test_a_follower_that_joins_again_unchanged_is_told_the_generation_anew() -> None:
    world = World()
    joined = world.stable(2)
    again = world.join(joined[1].member_id).value
    assert (again.generation_id, again.members) == (joined[1].generation_id, [])
    assert world.state() == "Stable"


def test_a_leader_that_joins_again_has_the_group_rebalance() -> None:
    world = World()
    joined = world.stable(2)
    assert world.join(joined[0].member_id).waits
    assert world.state() == "PreparingRebalance"


def test_a_follower_with_new_metadata_has_the_group_rebalance() -> None:
    world = World()
    joined = world.stable(2)
    assert world.join(joined[1].member_id, protocols={"range": b"new"}).waits


def test_a_join_repeated_before_the_leader_has_assigned_is_answered_the_same() -> None:
    world = World()
    first = world.join().value
    assert world.join(first.member_id).value == first


def test_syncs_that_wait_are_refused_when_the_group_rebalances() -> None:
    world = World()
    first = world.join()
    second = world.join()
    world.join(first.value.member_id)
    waiting = world.sync(second.value)
    world.join()
    assert waiting.value.error_code == 27


def test_sync_refuses_strangers_other_generations_and_other_protocols() -> None:
    world = World()
    (leader,) = world.stable(1)
    assert world.sync(leader, member_id="stranger").value.error_code == 25
    assert world.sync(leader, group="no-such").value.error_code == 25
    assert world.sync(leader, generation_id=2).value.error_code == 22
    assert world.sync(leader, protocol_type="connect").value.error_code == 23
    assert world.sync(leader, protocol_name="sticky").value.error_code == 23
    agreed = world.sync(leader, protocol_type="consumer", protocol_name="range").value
    assert (agreed.error_code, agreed.protocol_name) == (0, "range")


def test_sync_during_a_rebalance_asks_to_join_again() -> None:
    world = World()
    (leader,) = world.stable(1)
    world.join()
    assert world.sync(leader).value.error_code == 27


def test_assignments_that_cannot_be_kept_are_not_given() -> None:
    world = World()
    joined = world.join().value
    world.append_error = 19
    refused = world.sync(joined, {joined.member_id: b"all"}).value
    assert (refused.error_code, refused.assignment) == (15, b"")
    assert world.state() == "PreparingRebalance"


def test_the_generation_of_a_heartbeat_has_to_be_the_groups() -> None:
    world = World()
    (leader,) = world.stable(1)
    codes = [world.heartbeat(leader.member_id, each) for each in (0, 1, 2)]
    assert codes == [22, 0, 22]


def test_a_group_that_a_refused_member_made_is_not_there() -> None:
    world = World()
    world.join(protocols={})
    assert world.groups.listed() == []
    assert world.groups.describe("g").error_code == 69


def test_groups_are_described_with_metadata_while_they_are_stable() -> None:
    world = World()
    (leader,) = world.stable(1)
    stable = world.groups.describe("g")
    member = stable.members[0]
    assert (stable.protocol_type, stable.protocol_data) == ("consumer", "range")
    assert (member.member_metadata, member.member_assignment) == (
        b"sub",
        leader.member_id.encode(),
    )
    assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")
    world.join()
    rebalancing = world.groups.describe("g")
    assert rebalancing.protocol_data == ""
    assert {each.member_metadata for each in rebalancing.members} == {b""}


def test_groups_are_listed_by_state_and_type() -> None:
    world = World()
    world.stable(1, group="a")
    (left,) = world.stable(1, group="b")
    world.leave(left.member_id, group="b")
    world.commit(group="simple")
    names = {each.group_id: each.protocol_type for each in world.groups.listed()}
    assert names == {"a": "consumer", "b": "consumer", "simple": ""}
    assert [each.group_id for each in world.groups.listed(["stable"])] == ["a"]
    assert [each.group_id for each in world.groups.listed(["Empty"], ["Classic"])] == [
        "b",
        "simple",
    ]
    assert world.groups.listed(types=["share"]) == []


def test_a_group_is_deleted_when_nobody_is_in_it() -> None:
    world = World()
    (leader,) = world.stable(1)
    world.commit(7, member_id=leader.member_id, generation_id=1)
    assert world.groups.delete("g", world.now_ms) == 68
    world.leave(leader.member_id)
    assert world.groups.delete("g", world.now_ms) == 0
    assert world.groups.delete("g", world.now_ms) == 69
    assert world.committed() == -1
    world.start()
    assert (world.committed(), world.groups.listed()) == (-1, [])


def test_a_restart_goes_on_with_the_generation() -> None:
    world = World()
    joined = world.stable(2)
    before = world.groups.describe("g")
    world.start()
    assert world.groups.describe("g") == before
    codes = [world.heartbeat(each.member_id, each.generation_id) for each in joined]
    assert codes == [0, 0]
    assert world.sync(joined[1]).value.assignment == joined[1].member_id.encode()
    world.pass_time(10_000)
    assert world.state() == "Empty"


def test_the_log_holds_what_the_audit_decodes() -> None:
    world = World()
    (leader,) = world.stable(1, instance="i", version=5)
    (record,) = world.records("g")
    assert (record["type"], record["key"], record["version"]) == ("group", {"group": "g"}, 3)
    value = record["value"]
    assert (value["generation"], value["leader"]) == (1, leader.member_id)
    assert value["members"] == [
        {
            "member_id": leader.member_id,
            "group_instance_id": "i",
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "rebalance_timeout": 60_000,
            "session_timeout": 10_000,
            "subscription": b"sub",
            "assignment": leader.member_id.encode(),
        }
    ]
