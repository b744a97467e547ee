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
