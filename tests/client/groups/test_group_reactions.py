"""What a consumer does about each error of each request of its group.

The table of `ottla.client.groups.reactions` is held here to what becomes of the consumer: what it
asks next, what it has lost, and what the application is told.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.client.errors import (
    KafkaError,
    OffsetCommitFailedError,
    RebalanceInProgressError,
    error_class,
)
from ottla.client.groups.membership import EventKind
from ottla.client.groups.reactions import APIS, TABLE, Reaction, reaction
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.protocol.error_code import ErrorCode, name_of
from support.scripted_group import ScriptedGroup

CODES = {name: code for name, code in vars(ErrorCode).items() if name.isupper() and code != 0} | {
    "a code of the future": 999
}
JOINING = ("FindCoordinator", "JoinGroup", "SyncGroup")
T0 = TopicPartition("t", 0)


def settings_of(api: str) -> dict[str, Any]:
    return {"group_protocol": "consumer"} if api == "ConsumerGroupHeartbeat" else {}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("api", JOINING)
def test_a_consumer_that_joins_reacts_as_the_table_says(api: str, name: str) -> None:
    code = CODES[name]
    group = ScriptedGroup()
    group.fail = {api: [code]}
    group.subscribe()
    expected = reaction(api, code)
    if expected is Reaction.FATAL:
        group.cluster.run(lambda: len(group.raised) > 1)
        assert {each.error_code for each in group.raised} == {code}
        assert not group.owned
        return
    group.cluster.run(lambda: group.owned == [0, 1, 2, 3])
    told = [each.error_code for each in group.raised]
    assert told == ([code] if expected is Reaction.RAISE else [])
    assert not group.told(EventKind.LOSE)
    joins = group.cluster.asked("JoinGroup")
    looked = group.count("FindCoordinator") - (api == "FindCoordinator")
    assert looked == (2 if expected is Reaction.FIND else 1)
    if api == "JoinGroup":
        is_named = expected is Reaction.IDENTIFY
        assert [each.member_id for each in joins] == ["", "m" if is_named else ""]
    elif api == "SyncGroup":
        assert [each.member_id for each in joins] == [
            "",
            "" if expected is Reaction.REMOVED else "m",
        ]


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("api", ["Heartbeat", "ConsumerGroupHeartbeat"])
def test_a_member_reacts_to_a_heartbeats_answer_as_the_table_says(api: str, name: str) -> None:
    code = CODES[name]
    group = ScriptedGroup(**settings_of(api)).joined()
    group.cluster.run(max_ms=10_000)
    group.events.clear()
    before, lookups = group.count(api), group.count("FindCoordinator")
    joins = group.count("JoinGroup")
    group.fail = {api: [code]}
    expected = reaction(api, code)
    group.cluster.run(lambda: group.count(api) > before + 1 or group.raised)
    lost = [[0, 1, 2, 3]]
    if expected is Reaction.FATAL:
        group.cluster.run(lambda: len(group.raised) > 1)
        assert {each.error_code for each in group.raised} == {code}
        assert group.told(EventKind.LOSE) == lost
        assert not group.owned
        return
    group.cluster.run(lambda: group.owned == [0, 1, 2, 3] and not group.membership.is_rebalancing)
    loses = expected in (Reaction.LOST, Reaction.REMOVED, Reaction.RAISE)
    assert group.told(EventKind.LOSE) == (lost if loses else [])
    assert [each.error_code for each in group.raised] == (
        [code] if expected is Reaction.RAISE else []
    )
    assert group.count("FindCoordinator") - lookups == (expected is Reaction.FIND)
    if api == "Heartbeat":
        joins_again = loses or expected is Reaction.REJOIN
        assert group.count("JoinGroup") - joins == joins_again
        if joins_again:
            is_removed = expected is Reaction.REMOVED
            assert group.cluster.asked("JoinGroup")[-1].member_id == ("" if is_removed else "m")


@pytest.mark.parametrize("name", CODES)
def test_a_commit_ends_as_the_table_says(name: str) -> None:
    code = CODES[name]
    group = ScriptedGroup().joined()
    group.fail = {"OffsetCommit": [code]}
    lookups = group.count("FindCoordinator")
    pending = group.wait(group.group.commit({T0: OffsetAndMetadata(5)}, group.now_ms))
    expected = reaction("OffsetCommit", code)
    if expected in (Reaction.RETRY, Reaction.FIND, Reaction.REFRESH, Reaction.STALE):
        assert pending.error is None
        assert group.committed["t", 0].committed_offset == 5
        assert group.count("OffsetCommit") == 2
        assert group.count("FindCoordinator") - lookups == (expected is Reaction.FIND)
        return
    assert group.count("OffsetCommit") == 1
    assert isinstance(pending.error, KafkaError)
    assert pending.error.error_code == code
    assert f"t-0: {name_of(code)}" in str(pending.error)
    is_lost = expected in (Reaction.LOST, Reaction.REMOVED)
    assert isinstance(pending.error, OffsetCommitFailedError) is is_lost
    assert isinstance(pending.error, RebalanceInProgressError) is (expected is Reaction.REJOINING)
    if not is_lost:
        assert isinstance(pending.error, error_class(code))
    group.cluster.run(max_ms=1)
    assert bool(group.told(EventKind.LOSE)) is (is_lost or expected is Reaction.FATAL)


@pytest.mark.parametrize("name", CODES)
def test_a_lookup_of_committed_offsets_ends_as_the_table_says(name: str) -> None:
    code = CODES[name]
    version = (5, 9, 10)[code % 3]
    group = ScriptedGroup(versions={"OffsetFetch": range(1, version + 1)}).joined()
    group.wait(group.group.commit({T0: OffsetAndMetadata(5, "x", 3)}, group.now_ms))
    group.fail = {"OffsetFetch": [code]}
    pending = group.wait(group.group.committed([T0, TopicPartition("t", 1)], group.now_ms))
    expected = reaction("OffsetFetch", code)
    if expected in (Reaction.RETRY, Reaction.FIND, Reaction.REFRESH, Reaction.STALE):
        assert group.count("OffsetFetch") == 2
        assert {each: one[:3] for each, one in pending.value.items()} == {T0: (5, "x", 3)}
    else:
        assert group.count("OffsetFetch") == 1
        assert isinstance(pending.error, KafkaError)
        assert pending.error.error_code == code


def test_the_table_has_a_row_a_code_and_a_cell_an_api() -> None:
    head, *rows = TABLE.strip().splitlines()
    assert len(head.split()) == len(APIS)
    assert {len(row.split()) for row in rows} == {len(APIS) + 1}
    assert {row.split()[0] for row in rows} <= set(CODES)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (24, "set another group_id"),
        (26, "group.min.session.timeout.ms"),
        (30, "ACL for READ on the group"),
        (81, "group.max.size"),
        (82, "group_instance_id: give each one of its own"),
    ],
)
def test_an_error_that_a_person_has_to_mend_says_how(code: int, advice: str) -> None:
    group = ScriptedGroup()
    group.fail = {"JoinGroup": [code]}
    group.subscribe()
    group.cluster.run(lambda: group.raised)
    assert advice in str(group.raised[0])
