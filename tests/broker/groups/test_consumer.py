"""Consumer groups (KIP-848): epochs, reconciliation, static members, expressions, refusals."""

from typing import Any

import pytest
from ottla.broker.groups.records import MemberRecord, RegexRecord, ResolvedRegex
from support.consumer_world import Client, assigned, heartbeat, settle
from support.group_world import World

ALL = {("t", partition) for partition in range(4)}


def state(world: World, group: str = "g") -> str:
    return world.groups.consumer_group(group).state


def test_a_first_member_gets_every_partition_in_epoch_1() -> None:
    world = World()
    answer = heartbeat(world)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 1)
    assert assigned(answer) == ALL
    assert answer.heartbeat_interval_ms == 5_000
    assert state(world) == "Stable"


def test_a_heartbeat_that_changes_nothing_says_nothing_of_partitions_and_writes_nothing() -> None:
    world = World()
    heartbeat(world)
    written = len(world.records("g"))
    answer = heartbeat(world, epoch=1)
    assert (answer.member_epoch, assigned(answer)) == (1, None)
    assert len(world.records("g")) == written


def test_partitions_move_only_after_their_member_gave_them_up() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    first.beat()
    answer = second.beat()
    assert (answer.member_epoch, assigned(answer)) == (2, set())
    assert state(world) == "Reconciling"
    # The first one is told what to keep, in its old epoch, until it owns the rest no more.
    answer = heartbeat(world, "a", 1)
    kept = assigned(answer)
    assert answer.member_epoch == 1
    assert kept is not None
    assert len(kept) == 2
    assert heartbeat(world, "a", 1, owned=ALL).member_epoch == 1
    assert assigned(heartbeat(world, "b", 2)) is None
    assert heartbeat(world, "a", 1, owned=kept).member_epoch == 2
    assert assigned(heartbeat(world, "b", 2)) == ALL - kept
    assert state(world) == "Stable"


def test_a_member_that_leaves_has_its_partitions_given_to_others() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first, second)
    answer = first.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    second.beat()
    assert second.owned == ALL


def test_the_last_member_that_leaves_empties_the_group() -> None:
    world = World()
    client = Client(world, "a")
    client.beat()
    client.leave()
    assert state(world) == "Empty"
    assert world.groups.delete("g", world.now_ms) == 0
    assert world.groups.listed() == []


def test_a_silent_member_is_removed_after_the_session_time_out() -> None:
    world = World(group_consumer_session_timeout_ms=45_000)
    heartbeat(world)
    world.pass_time(44_999)
    assert heartbeat(world, epoch=1).error_code == 0
    world.pass_time(45_000)
    assert heartbeat(world, epoch=1).error_code == 25
    assert state(world) == "Empty"


def test_a_member_that_does_not_give_up_partitions_is_removed_after_its_rebalance_time_out() -> (
    None
):
    world = World()
    heartbeat(world, "a", rebalance_ms=10_000)
    heartbeat(world, "b")
    for _ in range(10):
        assert heartbeat(world, "a", 1, owned=ALL).error_code == 0
        world.pass_time(1_000)
    assert heartbeat(world, "a", 1, owned=ALL).error_code == 25
    assert assigned(heartbeat(world, "b", 2)) == ALL


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first, second)
    assert heartbeat(world, "a", first.epoch + 1).error_code == 110
    assert heartbeat(world, "a", first.epoch - 2 or 7).error_code == 110
    greater = heartbeat(world, "a", 99)
    assert greater.error_message is not None
    assert "greater member epoch (99)" in greater.error_message


def test_the_epoch_before_is_accepted_from_a_member_that_missed_the_answer() -> None:
    world = World()
    client = Client(world, "a")
    client.beat()
    world.set_topics({"t": 6})
    assert heartbeat(world, "a", 1).member_epoch == 2
    repeated = heartbeat(world, "a", 1, owned=client.owned)
    assert (repeated.error_code, repeated.member_epoch) == (0, 2)
    assert heartbeat(world, "a", 1, owned={("t", 99)}).error_code == 110


def test_a_topic_that_grows_or_comes_is_assigned_with_a_new_epoch() -> None:
    world = World(topics={"t": 1})
    heartbeat(world, topics=["t", "later"])
    world.set_topics({"t": 2, "other": 1})
    grown = heartbeat(world, epoch=1)
    assert (grown.member_epoch, assigned(grown)) == (2, {("t", 0), ("t", 1)})
    world.set_topics({"t": 2, "later": 1})
    assert assigned(heartbeat(world, epoch=2)) == {("t", 0), ("t", 1), ("later", 0)}
    world.set_topics({"later": 1})
    told = heartbeat(world, epoch=3)
    assert assigned(told) == {("later", 0)}


def test_a_topic_that_nobody_reads_changes_no_epoch() -> None:
    world = World()
    heartbeat(world)
    world.set_topics({"t": 4, "other": 9})
    assert heartbeat(world, epoch=1).member_epoch == 1


def test_a_member_may_change_what_it_reads() -> None:
    world = World(topics={"t": 1, "u": 1})
    heartbeat(world)
    changed = heartbeat(world, epoch=1, topics=["u"], owned={("t", 0)})
    assert (changed.member_epoch, assigned(changed)) == (1, set())
    told = heartbeat(world, epoch=1, owned=set())
    assert (told.member_epoch, assigned(told)) == (2, {("u", 0)})


def test_a_regular_expression_matches_topics_that_come_later() -> None:
    world = World(topics={"t": 1, "u": 1})
    joined = heartbeat(world, subscribed_topic_regex="t.*")
    assert assigned(joined) == {("t", 0)}
    world.set_topics({"t": 1, "t2": 1, "u": 1})
    assert assigned(heartbeat(world, epoch=1)) == {("t", 0), ("t2", 0)}


def test_an_empty_expression_ends_the_subscription_by_one() -> None:
    world = World(topics={"t": 1})
    heartbeat(world, subscribed_topic_regex="t.*")
    ended = heartbeat(world, epoch=1, subscribed_topic_regex="", owned=set())
    assert (ended.member_epoch, assigned(ended)) == (2, set())
    assert world.groups.consumer_group("g").regexes == {}


def test_what_is_no_expression_is_refused_and_changes_nothing() -> None:
    world = World()
    refused = heartbeat(world, subscribed_topic_regex="(")
    assert refused.error_code == 128
    assert world.groups.listed() == []
    heartbeat(world)
    assert heartbeat(world, epoch=1, subscribed_topic_regex=r"(a)\1").error_code == 128
    assert heartbeat(world, epoch=1).error_code == 0


def test_the_assignor_that_most_members_want_assigns() -> None:
    world = World(topics={"t": 3, "u": 3})
    for name in "ab":
        heartbeat(world, name, topics=["t", "u"], server_assignor="range")
    targets = {
        each.member_id: sum(len(own) for own in each.target.values())
        for each in world.groups.consumer_group("g").members.values()
    }
    # The first of two members has two partitions of each topic.
    assert targets == {"a": 4, "b": 2}
    assert heartbeat(world, "c", server_assignor="sticky").error_code == 112


@pytest.mark.parametrize(
    "fields",
    [
        {"group": ""},
        {"member_id": ""},
        {"epoch": -3},
        {"epoch": -2},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_ms": -1},
        {"owned": {("t", 0)}},
    ],
)
def test_what_contradicts_itself_is_an_invalid_request(fields: dict[str, Any]) -> None:
    refused = heartbeat(World(), **fields)
    assert refused.error_code == 42
    assert refused.error_message


def test_a_member_that_joins_says_what_it_reads() -> None:
    assert heartbeat(World(), topics=None, subscribed_topic_regex=None).error_code == 42


def test_version_0_is_given_a_member_id() -> None:
    world = World()
    answer = heartbeat(world, "", version=0)
    assert answer.error_code == 0
    assert answer.member_id
    assert heartbeat(world, answer.member_id, 1, version=0).error_code == 0
    assert heartbeat(world, "", 1, version=0).error_code == 42


def test_groups_and_members_that_are_not_there() -> None:
    world = World()
    assert heartbeat(world, epoch=1).error_code == 69
    assert heartbeat(world, epoch=-1).error_code == 69
    heartbeat(world)
    assert heartbeat(world, "stranger", 1).error_code == 25
    assert heartbeat(world, "stranger", -1).error_code == 25


def test_a_full_group_refuses_a_member() -> None:
    world = World(group_consumer_max_size=1)
    heartbeat(world)
    assert heartbeat(world, "other").error_code == 81
    assert heartbeat(world, epoch=1).error_code == 0


def test_a_static_member_that_is_away_keeps_its_partitions() -> None:
    world = World()
    first = Client(world, "a", instance_id="i")
    second = Client(world, "b")
    settle(first, second)
    before = set(first.owned)
    assert first.leave(-2).member_epoch == -2
    second.beat()
    back = Client(world, "c", instance_id="i")
    back.beat()
    assert back.owned == before
    assert state(world) == "Stable"
    assert heartbeat(world, "a", 2, instance_id="i").error_code == 82


def test_a_static_member_that_stays_away_is_removed_with_its_session() -> None:
    world = World()
    first, second = Client(world, "a", instance_id="i"), Client(world, "b")
    settle(first, second)
    first.leave(-2)
    for _ in range(5):
        world.pass_time(10_000)
        second.beat()
    assert second.owned == ALL


def test_an_instance_id_that_is_in_use_is_not_given_to_another() -> None:
    world = World()
    heartbeat(world, "a", instance_id="i")
    assert heartbeat(world, "b", instance_id="i").error_code == 111
    assert heartbeat(world, "a", 1, instance_id="unknown").error_code == 25


def test_what_cannot_be_kept_changes_nothing() -> None:
    world = World()
    first = Client(world, "a")
    first.beat()
    world.append_error = 19
    assert heartbeat(world, "b").error_code == 15
    world.set_topics({"t": 8})
    assert heartbeat(world, "a", 1).error_code == 15
    world.append_error = 0
    group = world.groups.consumer_group("g")
    assert (list(group.members), group.epoch, group.target_epoch) == (["a"], 1, 1)
    first.beat()
    assert (first.epoch, len(first.owned)) == (2, 8)


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets_and_back() -> None:
    world = World()
    world.commit(7)
    assert heartbeat(world).error_code == 0
    assert world.committed() == 7
    assert [each.group_type for each in world.groups.listed()] == ["consumer"]
    assert world.join().value.error_code == 23
    heartbeat(world, epoch=-1)
    world.stable(1)
    assert [each.group_type for each in world.groups.listed()] == ["classic"]
    assert world.committed() == 7
    world.start()
    assert [each.group_type for each in world.groups.listed()] == ["classic"]


def test_a_restart_goes_on_with_members_targets_and_sessions() -> None:
    world = World()
    first, second = Client(world, "a", instance_id="i"), Client(world, "b")
    settle(first, second, rounds=2)
    before = world.groups.consumer_group("g")
    world.start()
    after = world.groups.consumer_group("g")
    for name in ("epoch", "target_epoch", "metadata_hash", "owners", "static_members", "regexes"):
        assert getattr(after, name) == getattr(before, name), name
    for member_id, member in before.members.items():
        again = after.members[member_id]
        assert (again.subscription, again.target, again.current) == (
            member.subscription,
            member.target,
            member.current,
        )
    settle(first, second)
    assert first.owned | second.owned == ALL
    world.pass_time(45_000)
    assert state(world) == "Empty"


def test_the_log_holds_what_the_audit_decodes() -> None:
    world = World(topics={"t": 2})
    heartbeat(world, "m", subscribed_topic_regex="t|u", topics=["t"], rack_id="r")
    found = {each["type"]: each for each in world.records("g")}
    assert all("fault" not in each for each in found.values()), found
    member = found["consumer-group-member"]
    assert member["key"] == {"group": "g", "member_id": "m"}
    assert member["value"]["subscribed_topic_names"] == ["t"]
    assert member["value"]["subscribed_topic_regex"] == "t|u"
    assert member["value"]["rack_id"] == "r"
    assert found["consumer-group"]["value"]["epoch"] == 1
    assert found["consumer-group-regular-expression"]["value"]["topics"] == ["t"]
    assert found["consumer-group-target-assignment"]["value"]["assignment_epoch"] == 1
    current = found["consumer-group-current-assignment"]["value"]
    assert (current["member_epoch"], current["state"]) == (1, 0)
    assert [each["partitions"] for each in current["assigned_partitions"]] == [[0, 1]]


def test_names_that_are_too_long_for_the_log_are_an_invalid_request() -> None:
    world = World()
    assert heartbeat(world, "m" * 40_000).error_code == 42
    assert heartbeat(world, group="g" * 40_000).error_code == 42
    assert world.commit(group="g" * 40_000) == 42
    joined = world.join(client="c" * 32_760).value
    assert world.sync(joined, {joined.member_id: b""}).value.error_code == 42


def test_an_expression_of_kafkas_own_log_that_is_not_known_here_keeps_what_it_matched() -> None:
    world = World()
    heartbeat(world, subscribed_topic_regex="t")
    group = world.groups.consumer_group("g")
    said = group.members["m"].subscription._replace(topic_regex=r"\pL")
    world.groups.store.keep(
        [
            MemberRecord("g", "m", said),
            RegexRecord("g", r"\pL", ResolvedRegex(("t",), 1, world.now_ms)),
        ],
        world.now_ms,
    )
    world.start()
    world.set_topics({"t": 4, "u": 1})
    assert heartbeat(world, epoch=1).error_code == 0
    assert world.groups.consumer_group("g").regexes[r"\pL"].topics == ("t",)
