"""Committed offsets: in order, once, by who may, and what is told where they are not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from ottla.client.errors import (
    KafkaTimeoutError,
    OffsetCommitFailedError,
    RebalanceInProgressError,
)
from ottla.client.groups.auto_commit import AutoCommit
from ottla.client.groups.membership import EventKind
from ottla.client.offset_epoch import Epochs, epochs_in, offset_epoch
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.client.pending import Pending
from support.group_members import GroupMembers
from support.scripted_group import ScriptedGroup

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset)


def test_what_is_committed_is_looked_up_with_its_metadata_and_epochs() -> None:
    world = GroupMembers()
    member = world.member("a").subscribe("t")
    world.settle()
    topic_id = world.broker.image.topics["t"].topic_id
    epoch = offset_epoch(Epochs(0, 0, topic_id))
    given = {T0: OffsetAndMetadata(7, "mine", 0, epoch), T1: at(8)}
    committed = member.group.commit(given, world.now_ms)
    world.run(1000, lambda: committed.is_done)
    assert committed.error is None
    asked = member.group.committed([T0, T1, TopicPartition("t", 2)], world.now_ms)
    world.run(1000, lambda: asked.is_done)
    assert asked.error is None
    assert set(asked.value) == {T0, T1}
    assert asked.value[T0][:3] == (7, "mine", 0)
    assert epochs_in(asked.value[T0].offset_epoch).leader_epoch == 0
    assert epochs_in(asked.value[T0].offset_epoch).topic_id == topic_id
    assert asked.value[T1].offset_epoch == b""


def test_a_consumer_that_assigns_itself_commits_without_being_a_member() -> None:
    group = ScriptedGroup()
    pending = group.wait(group.group.commit({T0: at(5)}, group.now_ms))
    assert pending.error is None
    (request,) = group.cluster.asked("OffsetCommit")
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


def test_commits_end_in_the_order_of_the_calls_and_the_last_of_a_partition_counts() -> None:
    group = ScriptedGroup().joined()
    group.fail = {"OffsetCommit": [16, 14]}
    ended: list[int] = []
    for number in range(5):
        pending = group.group.commit({T0: at(number), T1: at(number)}, group.now_ms)
        pending.when_done(partial(ended.append, number))
    group.cluster.run(lambda: len(ended) == 5)
    assert ended == [0, 1, 2, 3, 4]
    assert group.committed["t", 0].committed_offset == 4
    # The first, twice again; then all that had waited, at once.
    assert group.count("OffsetCommit") <= 4


def test_of_calls_that_go_out_together_only_those_fail_whose_partition_did() -> None:
    group = ScriptedGroup().joined()
    first = group.group.commit({T0: at(1)}, group.now_ms)
    second = group.group.commit({T0: at(2)}, group.now_ms)
    third = group.group.commit({T1: at(3)}, group.now_ms)
    group.refuse = {0: 12}
    for each in (first, second, third):
        group.wait(each)
    assert "offset.metadata.max.bytes" in str(second.error)
    assert third.error is None
    assert group.committed["t", 1].committed_offset == 3


def test_a_commit_is_of_the_generation_that_made_it() -> None:
    group = ScriptedGroup().joined()
    group.fail = {"OffsetCommit": [14]}
    pending = group.group.commit({T0: at(1)}, group.now_ms)
    group.membership.rejoin("a test", group.now_ms)
    group.cluster.run(lambda: group.count("SyncGroup") == 2)
    group.wait(pending)
    generations = {
        each.generation_id_or_member_epoch for each in group.cluster.asked("OffsetCommit")
    }
    assert generations == {1}


def test_a_member_that_is_joining_commits_after_it_has_joined() -> None:
    group = ScriptedGroup().joined()
    group.silent = {"JoinGroup"}
    group.membership.rejoin("a test", group.now_ms)
    group.cluster.run(lambda: group.count("JoinGroup") == 2)
    pending = group.group.commit({T0: at(1)}, group.now_ms)
    assert isinstance(pending.error, RebalanceInProgressError)
    assert "after the next poll()" in str(pending.error)
    assert not group.count("OffsetCommit")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_had_to_leave_is_told_what_became_of_its_commit(protocol: str) -> None:
    group = ScriptedGroup(group_protocol=protocol).joined()
    group.is_polling = False
    group.cluster.run(max_ms=300_500)
    assert group.told(EventKind.LOSE) == [[0, 1, 2, 3]]
    pending = group.group.commit({T0: at(1)}, group.now_ms)
    assert isinstance(pending.error, OffsetCommitFailedError)
    assert "poll() joins it again, and records that were not committed are read" in str(
        pending.error
    )
    assert not group.count("OffsetCommit")


def test_what_is_given_up_is_committed_before() -> None:
    group = ScriptedGroup().joined()
    group.holds_events = True
    leaving = group.membership.leave(group.now_ms)
    pending = group.wait(group.group.commit({T0: at(1)}, group.now_ms))
    assert pending.error is None
    group.membership.event_done(group.now_ms)
    group.wait(leaving)
    assert group.count("LeaveGroup") == 1


def test_a_coordinator_that_does_not_answer_is_waited_for_only_so_long() -> None:
    group = ScriptedGroup(default_api_timeout_ms=5000).joined()
    group.silent = {"OffsetCommit", "OffsetFetch", "Heartbeat"}
    begun_ms = group.now_ms
    commit = group.group.commit({T0: at(1)}, group.now_ms)
    lookup = group.group.committed([T0], group.now_ms)
    group.cluster.run(lambda: commit.is_done and lookup.is_done)
    assert group.now_ms == begun_ms + 5000
    for each in (commit, lookup):
        assert isinstance(each.error, KafkaTimeoutError)
        assert "default_api_timeout_ms = 5000" in str(each.error)


def test_an_offset_that_a_transaction_may_change_is_waited_for() -> None:
    group = ScriptedGroup().joined()
    group.fail = {"OffsetFetch": [88, 88, 88]}
    pending = group.wait(group.group.committed([T0], group.now_ms))
    assert pending.value == {}
    assert group.count("OffsetFetch") == 4
    assert all(each.require_stable for each in group.cluster.asked("OffsetFetch"))


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_committed_and_looked_up_in_every_version(version: int) -> None:
    only = range(version, version + 1)
    group = ScriptedGroup(versions={"OffsetCommit": only, "OffsetFetch": only}).joined()
    pending = group.wait(group.group.commit({T0: at(3), T1: at(4)}, group.now_ms))
    assert pending.error is None
    found = group.wait(group.group.committed([T0, T1], group.now_ms))
    assert found.error is None
    assert {each: one.offset for each, one in found.value.items()} == {T0: 3, T1: 4}


def test_a_topic_whose_id_is_not_known_is_named() -> None:
    group = ScriptedGroup()
    pending = group.wait(group.group.commit({TopicPartition("new", 0): at(3)}, group.now_ms))
    assert pending.error is None
    assert group.cluster.requests[-1][1:3] == ("OffsetCommit", 9)


def test_nothing_to_commit_is_committed_at_once() -> None:
    group = ScriptedGroup().joined()
    assert group.group.commit({}, group.now_ms).is_done
    assert group.group.committed([], group.now_ms).value == {}


class Recorder:
    """Commits that end when a test says."""

    def __init__(self) -> None:
        self.offsets: list[Any] = []
        self.pendings: list[Pending] = []

    def commit(self, offsets: Any, _now_ms: int) -> Pending:
        self.offsets.append(dict(offsets))
        self.pendings.append(Pending("commit"))
        return self.pendings[-1]


def test_offsets_are_committed_each_interval_and_one_at_a_time() -> None:
    recorder = Recorder()
    auto = AutoCommit(5000, recorder.commit)
    for now_ms in range(0, 20_001, 1000):
        auto.poll(now_ms, partial(dict, [(T0, at(now_ms))]))
        if now_ms == 12_000:
            recorder.pendings[0].end()
    assert [each[T0].offset for each in recorder.offsets] == [5000, 13_000]
    recorder.pendings[1].end(KafkaTimeoutError("too late"))
    assert isinstance(auto.error, KafkaTimeoutError)


def test_what_is_committed_at_the_end_does_not_wait_for_the_interval() -> None:
    recorder = Recorder()
    auto = AutoCommit(5000, recorder.commit)
    pending = auto.commit(0, {T0: at(1)})
    assert pending is recorder.pendings[0]
