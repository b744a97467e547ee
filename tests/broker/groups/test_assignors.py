"""The assignors against all assignments there are: even ones, and among them the nearest."""

from collections.abc import Mapping
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.broker.groups.assignors import AssignedMember, assign_range, assign_uniform
from ottla.broker.groups.records import Partitions, by_topic

TOPICS = (b"t".ljust(16, b"\0"), b"u".ljust(16, b"\0"))
NAMES = "abc"
Partition = tuple[bytes, int]
Owners = dict[Partition, str | None]
Assignment = Mapping[Partition, str | None]

counts_ = st.fixed_dictionaries({TOPICS[0]: st.integers(0, 4), TOPICS[1]: st.integers(0, 3)})
owners_ = st.lists(st.sampled_from((None, *NAMES, "gone")), min_size=7, max_size=7)
subscriptions_ = st.lists(
    st.sampled_from([TOPICS[:1], TOPICS[1:], TOPICS, ()]), min_size=3, max_size=3
)


def partitions_of(counts: dict[bytes, int]) -> list[Partition]:
    return [(topic, index) for topic, count in counts.items() for index in range(count)]


def members_of(owners: Owners, subscriptions: list[tuple[bytes, ...]]) -> dict[str, AssignedMember]:
    """Members that have had partitions, also such of topics that they read no more."""
    return {
        name: AssignedMember(
            None,
            frozenset(topics),
            by_topic({each for each, owner in owners.items() if owner == name}),
        )
        for name, topics in zip(NAMES, subscriptions, strict=True)
    }


def owned(assigned: dict[str, Partitions]) -> Owners:
    """Who has what; each partition once."""
    found: Owners = {}
    for name, topics in assigned.items():
        for topic, indexes in topics.items():
            for index in indexes:
                assert (topic, index) not in found
                found[topic, index] = name
    return found


def kept(before: Assignment, after: Assignment) -> int:
    return sum(before[partition] == name for partition, name in after.items())


def is_even(after: Assignment) -> bool:
    shares = [[*after.values()].count(name) for name in NAMES]
    return max(shares) - min(shares) <= 1


@settings(max_examples=60, deadline=None)
@given(counts_, owners_)
def test_of_all_even_assignments_the_uniform_one_moves_least(
    counts: dict[bytes, int], owners: list[str | None]
) -> None:
    partitions = partitions_of(counts)
    before = dict(zip(partitions, owners, strict=False))
    after = owned(assign_uniform(members_of(before, [TOPICS] * 3), counts))
    assert after.keys() == {*partitions}
    assert is_even(after)
    others = (
        dict(zip(partitions, names, strict=True))
        for names in product(NAMES, repeat=len(partitions))
    )
    assert kept(before, after) == max(kept(before, other) for other in others if is_even(other))


@settings(max_examples=200, deadline=None)
@given(counts_, owners_, subscriptions_)
def test_shares_of_different_subscriptions_are_as_even_as_one_move_can_make_them(
    counts: dict[bytes, int],
    owners: list[str | None],
    subscriptions: list[tuple[bytes, ...]],
) -> None:
    before = dict(zip(partitions_of(counts), owners, strict=False))
    members = members_of(before, subscriptions)
    after = owned(assign_uniform(members, counts))
    read = {topic for topics in subscriptions for topic in topics}
    assert after.keys() == {each for each in before if each[0] in read}
    shares = {name: [*after.values()].count(name) for name in NAMES}
    for (topic, _), name in after.items():
        assert name is not None
        assert topic in members[name].topic_ids
        for other in NAMES:
            if topic in members[other].topic_ids:
                assert shares[other] + 1 >= shares[name]


@settings(max_examples=100, deadline=None)
@given(counts_, owners_, subscriptions_)
def test_an_assignment_that_is_even_stays(
    counts: dict[bytes, int],
    owners: list[str | None],
    subscriptions: list[tuple[bytes, ...]],
) -> None:
    before = dict(zip(partitions_of(counts), owners, strict=False))
    once = owned(assign_uniform(members_of(before, subscriptions), counts))
    assert owned(assign_uniform(members_of(once, subscriptions), counts)) == once


@settings(max_examples=100, deadline=None)
@given(counts_, subscriptions_)
def test_a_range_is_consecutive_and_goes_by_the_order_of_names(
    counts: dict[bytes, int], subscriptions: list[tuple[bytes, ...]]
) -> None:
    members = members_of({}, subscriptions)
    after = owned(assign_range(members, counts))
    for topic, count in counts.items():
        readers = [name for name in NAMES if topic in members[name].topic_ids]
        names = [after.get((topic, index)) for index in range(count)]
        assert names == sorted(names, key=str)
        if readers:
            shares = [names.count(name) for name in readers]
            assert sum(shares) == count
            assert shares == sorted(shares, reverse=True)
            assert max(shares) - min(shares) <= 1
