"""Model members of consumer groups: classic ones, and those of KIP-848.

A member owns partitions from when it is told until it lets them go, or until its session must have
ended; while it does, it commits for them what was committed before and one.
"""

import struct
from collections.abc import Callable, Generator
from typing import Any

from ottla.broker.broker import Broker
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.simulation.clients import AGAIN, GROUP, PARTITIONS, TOPIC, Model, Steps, until
from support.simulation.history import Commit, Ownership
from support.simulation.world import Ask, Client, Sleep

SESSION_MS = 10_000
NEW_SESSION_MS = 45_000
_NEW_REBALANCE_MS = 2 * NEW_SESSION_MS
"""Whoever stalls is out when its session ends, and not before."""
_REBALANCE_MS = 8_000
_LONG_MS = 30_000
"""Longer than anything waits in a group."""
_NEW_COMMIT = 9
"""The version of OffsetCommit for members of KIP-848."""
_OUT = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID}
_REJOIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}
_STALE = {ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
_HEAD = struct.Struct(f">hih{len(TOPIC)}s")


def _subscription(attempts: int) -> bytes:
    """Who joins with another one than before has the group join anew."""
    return _HEAD.pack(0, 1, len(TOPIC), TOPIC.encode()) + struct.pack(">ih", 2, attempts)


def _assignment(partitions: list[int]) -> bytes:
    head = _HEAD.pack(0, 1, len(TOPIC), TOPIC.encode())
    return head + struct.pack(f">i{len(partitions)}ii", len(partitions), *partitions, -1)


def _partitions(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    [count] = struct.unpack_from(">i", assignment, _HEAD.size)
    return list(struct.unpack_from(f">{count}i", assignment, _HEAD.size + 4))


class Member:
    """What both kinds of members do."""

    def __init__(self, model: Model, group: str, name: str, session_ms: int) -> None:
        self.session_ms = session_ms
        self.model = model
        self.group = group
        self.name = name
        self.member_id = ""
        self.epoch = 0
        self.owned: dict[int, Ownership] = {}
        self.alive_ms = 0
        self.attempts = 0

    def own(self, partitions: list[int]) -> None:
        """It has these, and no others; what it had it may have lost when its session ended."""
        end = min(self.model.moment(), (self.alive_ms + self.session_ms, 0))
        for partition in sorted(self.owned.keys() - set(partitions)):
            ownership = self.owned.pop(partition)
            ownership.end = max(end, ownership.begin)
        for partition in partitions:
            if partition not in self.owned:
                begin = self.model.moment()
                found = Ownership(self.group, partition, self.name, self.epoch, begin)
                self.owned[partition] = found
                self.model.history.ownerships.append(found)

    def commit(self, partition: int, version: int) -> Steps:
        """Commit what was committed, and one; return the error."""
        history = self.model.history
        asked = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[partition])
        fetch = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[asked])]
        )
        sent_at = history.step()
        _, answer = yield from until(fetch, 8, lambda answer: answer.groups[0].error_code)
        told = answer.groups[0].topics[0].partitions[0].committed_offset
        history.commits.append(
            Commit("fetch", partition, told, sent_at, history.step(), self.group)
        )
        entry = Commit("commit", partition, told + 1, history.step(), -1, self.group, self.epoch)
        kept = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=told + 1, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[kept])],
        )
        history.commits.append(entry)
        answer = yield Ask(request, version, may_be_late=version < _NEW_COMMIT)
        if answer is None:
            # What comes late is to find another generation.
            self.attempts += 1
            return int(ErrorCode.REBALANCE_IN_PROGRESS)
        error = answer.topics[0].partitions[0].error_code
        if error == ErrorCode.NONE:
            entry.answered_at = history.step()
        return int(error)

    def fault(self, error: int, what: str) -> None:
        """Notes what a broker should not have answered."""
        self.model.history.faults.append(f"{self.name} of {self.group}: error {error} for {what}")


def may_join_wait(group: str) -> Callable[[Broker], bool]:
    """A join waits for others as long as they are to join."""

    def may_wait(broker: Broker) -> bool:
        found = broker.groups.store.groups.get(group)
        return found is not None and getattr(found, "state", "") == "PreparingRebalance"

    return may_wait


def may_sync_wait(group: str) -> Callable[[Broker], bool]:
    """A sync waits for the leader's."""

    def may_wait(broker: Broker) -> bool:
        found = broker.groups.store.groups.get(group)
        return found is not None and getattr(found, "state", "") == "CompletingRebalance"

    return may_wait


def classic_member(model: Model, group: str, name: str, rounds: int) -> Client:
    """Joins, works for a while, and joins again; stalls or leaves now and then."""
    member, random = Member(model, group, name, SESSION_MS), model.random
    find = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
    yield from until(find, 4, lambda answer: answer.coordinators[0].error_code)
    for _ in range(rounds):
        while (error := (yield from _join(member))) != ErrorCode.NONE:
            if error in _OUT:
                member.member_id = ""
            elif error not in _REJOIN:
                member.fault(error, "a join or sync")
                return
        error = ErrorCode.NONE
        for _ in range(random.randrange(1, 5)):
            yield Sleep(2 * SESSION_MS if random.random() < 0.1 else random.randrange(1500))
            for partition in sorted(member.owned):
                error = yield from member.commit(partition, 7)
                if error != ErrorCode.NONE:
                    break
            if error == ErrorCode.NONE:
                beat = HeartbeatRequest(
                    group_id=group, generation_id=member.epoch, member_id=member.member_id
                )
                error, _ = yield from until(beat, 4, lambda answer: answer.error_code)
            if error != ErrorCode.NONE:
                break
        member.own([])
        if error in _OUT:
            member.member_id = ""
        elif error not in {ErrorCode.NONE, *_REJOIN, *AGAIN}:
            member.fault(error, "a commit or heartbeat")
            return
    identity = MemberIdentity(member_id=member.member_id)
    leave = LeaveGroupRequest(group_id=group, members=[identity])
    yield from until(leave, 5, lambda answer: answer.error_code)


def _join(member: Member) -> Generator[Ask | Sleep, Any, int]:
    request = JoinGroupRequest(
        group_id=member.group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=_REBALANCE_MS,
        member_id=member.member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="any", metadata=_subscription(member.attempts))],
    )
    error, joined = yield from until(
        request,
        7,
        lambda answer: answer.error_code,
        timeout_ms=_LONG_MS,
        may_wait=may_join_wait(member.group),
    )
    if error == ErrorCode.MEMBER_ID_REQUIRED:
        member.member_id = joined.member_id
        return ErrorCode.REBALANCE_IN_PROGRESS
    if error != ErrorCode.NONE:
        return int(error)
    member.member_id, member.epoch = joined.member_id, joined.generation_id
    assignments = []
    if joined.leader == joined.member_id:
        ids = sorted(each.member_id for each in joined.members)
        assignments = [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=_assignment(list(range(place, PARTITIONS, len(ids)))),
            )
            for place, member_id in enumerate(ids)
        ]
    sync = SyncGroupRequest(
        group_id=member.group,
        generation_id=member.epoch,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="any",
        assignments=assignments,
    )
    error, synced = yield from until(
        sync,
        5,
        lambda answer: answer.error_code,
        timeout_ms=_LONG_MS,
        may_wait=may_sync_wait(member.group),
    )
    if error == ErrorCode.NONE:
        member.own(_partitions(synced.assignment))
        model = member.model
        model.history.generations.append(
            (member.group, member.epoch, member.name, sorted(member.owned))
        )
    return int(error)


def new_member(model: Model, group: str, name: str, beats: int) -> Client:
    """Does as the coordinator tells it in answers to heartbeats (KIP-848)."""
    member, random = Member(model, group, name, NEW_SESSION_MS), model.random
    member.member_id = name
    find = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
    yield from until(find, 4, lambda answer: answer.coordinators[0].error_code)
    says_all = True
    for _ in range(beats):
        sent_ms = model.clock()
        answer = yield Ask(_heartbeat(model, member, says_all=says_all), 1)
        says_all = answer is None or answer.error_code != ErrorCode.NONE
        if answer is None or answer.error_code in AGAIN:
            yield Sleep(random.randrange(200))
            continue
        if answer.error_code in _OUT:
            member.own([])
            member.epoch = 0
            continue
        if answer.error_code != ErrorCode.NONE:
            member.fault(answer.error_code, "a heartbeat")
            return
        member.alive_ms, member.epoch = sent_ms, answer.member_epoch
        if answer.assignment is not None:
            wanted = [
                partition
                for each in answer.assignment.topic_partitions
                for partition in each.partitions
            ]
            says_all = sorted(wanted) != sorted(member.owned)
            member.own(wanted)
        for partition in sorted(member.owned):
            error = yield from member.commit(partition, _NEW_COMMIT)
            if error in _OUT | _STALE | _REJOIN | AGAIN:
                break
            if error != ErrorCode.NONE:
                member.fault(error, "a commit")
                return
        stalls = random.random() < 0.05
        yield Sleep(2 * NEW_SESSION_MS if stalls else random.randrange(3000))
    member.own([])
    member.epoch = -1
    yield from until(_heartbeat(model, member, says_all=False), 1, lambda answer: answer.error_code)


def _heartbeat(model: Model, member: Member, *, says_all: bool) -> ConsumerGroupHeartbeatRequest:
    is_first = member.epoch == 0
    owned = [TopicPartitions(topic_id=model.topic_id(), partitions=sorted(member.owned))]
    return ConsumerGroupHeartbeatRequest(
        group_id=member.group,
        member_id=member.member_id,
        member_epoch=member.epoch,
        rebalance_timeout_ms=_NEW_REBALANCE_MS if is_first or says_all else -1,
        subscribed_topic_names=[TOPIC] if is_first or says_all else None,
        topic_partitions=[] if is_first else owned if says_all else None,
    )
