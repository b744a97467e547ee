"""Assignors: what they give whom, what Java's give on the same input, and what always holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.client.errors import InvalidConfigurationError
from ottla.client.groups.assignors import Subscription, assignor_of
from ottla.client.groups.assignors.ownership import without_transfers
from ottla.client.partitions import TopicPartition

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
STICKY = ["sticky", "cooperative-sticky"]


def reader(*topics: str, instance: str | None = None) -> Subscription:
    return Subscription(frozenset(topics), group_instance_id=instance)


def numbers(assignment: dict[str, list[TopicPartition]]) -> dict[str, list[str]]:
    """An assignment as short as Java's tests write it."""
    return {
        member: [f"{topic}{number}" for topic, number in partitions]
        for member, partitions in assignment.items()
    }


def again(name: str, member: Subscription, had: list[TopicPartition], generation: int) -> Any:
    """Returns the member as it joins the next time."""
    assignor = assignor_of(name)
    assignor.assigned(frozenset(had), generation)
    return member._replace(
        owned=frozenset(had) if assignor.is_cooperative else frozenset(),
        generation_id=generation,
        user_data=assignor.user_data(),
    )


def test_range_gives_runs_of_each_topic_and_the_first_members_one_more() -> None:
    counts = {"t": 3, "u": 3}
    found = assignor_of("range").assign(counts, {"b": reader("t", "u"), "a": reader("t", "u")})
    assert numbers(found) == {"a": ["t0", "t1", "u0", "u1"], "b": ["t2", "u2"]}


def test_range_counts_of_a_topic_only_those_who_read_it() -> None:
    members = {"a": reader("t"), "b": reader("t", "u"), "c": reader("t")}
    found = assignor_of("range").assign({"t": 3, "u": 2}, members)
    assert numbers(found) == {"a": ["t0"], "b": ["t1", "u0", "u1"], "c": ["t2"]}


def test_round_robin_goes_round_all_topics_and_passes_over_who_does_not_read_one() -> None:
    members = {"a": reader("t"), "b": reader("t", "u"), "c": reader("t", "u")}
    found = assignor_of("roundrobin").assign({"t": 3, "u": 2}, members)
    assert numbers(found) == {"a": ["t0"], "b": ["t1", "u0"], "c": ["t2", "u1"]}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_static_members_come_first_by_their_instance_and_keep_their_place(name: str) -> None:
    members = {"a": reader("t"), "z": reader("t", instance="1"), "y": reader("t", instance="2")}
    found = assignor_of(name).assign({"t": 3}, members)
    assert numbers(found) == {"z": ["t0"], "y": ["t1"], "a": ["t2"]}


def test_sticky_gives_what_javas_gives_without_a_past() -> None:
    members = {each: reader("t", "u") for each in ("c1", "c2", "c3")}
    found = assignor_of("sticky").assign({"t": 2, "u": 2}, members)
    assert numbers(found) == {"c1": ["t0", "u1"], "c2": ["t1"], "c3": ["u0"]}


@pytest.mark.parametrize("name", STICKY)
def test_a_member_that_joins_takes_only_its_share(name: str) -> None:
    before = {"c1": [TopicPartition("t", each) for each in range(3)]}
    members = {"c1": again(name, reader("t"), before["c1"], 1), "c2": reader("t")}
    found = assignor_of(name).assign({"t": 3}, members)
    assert numbers(found) == {"c1": ["t0", "t1"], "c2": ["t2"]}


@pytest.mark.parametrize("name", STICKY)
def test_what_a_member_leaves_is_all_that_moves(name: str) -> None:
    counts = {"t": 6, "u": 3}
    members = {each: reader("t", "u") for each in ("c1", "c2", "c3")}
    first = assignor_of(name).assign(counts, members)
    left = {each: again(name, members[each], first[each], 1) for each in ("c1", "c3")}
    second = assignor_of(name).assign(counts, left)
    for member in left:
        assert set(first[member]) <= set(second[member])


@pytest.mark.parametrize("name", STICKY)
def test_of_two_who_claim_a_partition_that_of_the_later_generation_has_it(name: str) -> None:
    had = [TopicPartition("t", 0), TopicPartition("t", 1)]
    members = {
        "a": again(name, reader("t"), had, 1),
        "b": again(name, reader("t"), had[:1], 2),
    }
    found = assignor_of(name).assign({"t": 2}, members)
    assert numbers(found) == {"a": ["t1"], "b": ["t0"]}


def test_a_cooperative_leader_holds_back_what_another_still_has() -> None:
    had = [TopicPartition("t", 0), TopicPartition("t", 1)]
    members = {"a": again("cooperative-sticky", reader("t"), had, 1), "b": reader("t")}
    found = assignor_of("cooperative-sticky").assign({"t": 2}, members)
    assert numbers(without_transfers(found, members)) == {"a": ["t0"], "b": []}


def test_a_topic_that_a_member_reads_no_more_goes_to_another() -> None:
    had = [TopicPartition("t", 0), TopicPartition("u", 0)]
    members = {"a": again("sticky", reader("u"), had, 1), "b": reader("t", "u")}
    assert numbers(assignor_of("sticky").assign({"t": 1, "u": 1}, members)) == {
        "a": ["u0"],
        "b": ["t0"],
    }


def test_user_data_of_others_that_cannot_be_read_is_of_no_past() -> None:
    members = {"a": reader("t")._replace(user_data=b"\xff"), "b": reader("t")}
    for name in STICKY:
        found = assignor_of(name).assign({"t": 2}, members)
        assert numbers(found) == {"a": ["t0"], "b": ["t1"]}


def test_user_data_is_as_javas_sticky_assignor_writes_it() -> None:
    assignor = assignor_of("sticky")
    assert assignor.user_data() is None
    assignor.assigned(frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}), 7)
    assert assignor.user_data() == bytes.fromhex(
        "00000001 0001 74 00000002 00000000 00000001 00000007"
    )


@pytest.mark.parametrize("name", ["round-robin", "", "org.example.Own"])
def test_a_strategy_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="none of range, roundrobin, sticky"):
        assignor_of(name)


TOPICS = ["t", "u", "v"]
groups = st.dictionaries(
    st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), min_size=1
)
topic_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))


def check(
    found: dict[str, list[TopicPartition]],
    counts: dict[str, int],
    members: dict[str, Subscription],
) -> None:
    """Every partition that is read has one member, which reads it."""
    given = [one for partitions in found.values() for one in partitions]
    read = {topic for member in members.values() for topic in member.topics}
    expected = [TopicPartition(t, n) for t in counts if t in read for n in range(counts[t])]
    assert sorted(given) == sorted(expected)
    assert set(found) == set(members)
    assert all(p.topic in members[m].topics for m, ps in found.items() for p in ps)


def check_even(found: dict[str, list[TopicPartition]], members: dict[str, Subscription]) -> None:
    """Nobody has two fewer than another of which it could take one."""
    sizes = {member: len(partitions) for member, partitions in found.items()}
    for partitions in found.values():
        for partition in partitions:
            readers = [m for m in members if partition.topic in members[m].topics]
            assert len(partitions) <= min(sizes[each] for each in readers) + 1


@settings(max_examples=60)
@given(groups, topic_counts, st.sampled_from(NAMES))
def test_each_partition_that_is_read_has_one_member_that_reads_it(
    topics: dict[str, frozenset[str]], counts: dict[str, int], name: str
) -> None:
    members = {each: Subscription(read) for each, read in topics.items()}
    found = assignor_of(name).assign(counts, members)
    check(found, counts, members)
    if name in STICKY:
        check_even(found, members)


@settings(max_examples=60)
@given(groups, groups, topic_counts, topic_counts, st.sampled_from(STICKY))
def test_after_any_change_shares_are_even(
    first: dict[str, frozenset[str]],
    then: dict[str, frozenset[str]],
    counts: dict[str, int],
    counts_then: dict[str, int],
    name: str,
) -> None:
    assignor = assignor_of(name)
    before = assignor.assign(counts, {each: Subscription(read) for each, read in first.items()})
    members = {
        each: again(name, Subscription(read), before[each], 3)
        if each in before
        else Subscription(read)
        for each, read in then.items()
    }
    found = assignor.assign(counts_then, members)
    check(found, counts_then, members)
    check_even(found, members)


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from("abcdefgh"), min_size=1),
    st.sets(st.sampled_from("abcdefgh"), min_size=1),
    topic_counts,
    st.sampled_from(STICKY),
)
def test_of_members_that_read_the_same_nobody_gives_up_what_its_share_has_room_for(
    first: set[str], then: set[str], counts: dict[str, int], name: str
) -> None:
    assignor = assignor_of(name)
    every = reader(*TOPICS)
    before = assignor.assign(counts, dict.fromkeys(first, every))
    members = {
        each: again(name, every, before[each], 3) if each in before else every for each in then
    }
    found = assignor.assign(counts, members)
    share = sum(counts.values()) // len(then)
    for each in first & then:
        stayed = len(set(before[each]) & set(found[each]))
        assert stayed >= min(len(before[each]), share)
        assert stayed in (len(before[each]), len(found[each]))
