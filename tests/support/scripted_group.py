"""A consumer's group whose coordinator answers as a test says."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.errors import KafkaError
from ottla.client.groups.group import Group
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupResponse
from support.scripted_cluster import SILENCE, ScriptedCluster

if TYPE_CHECKING:
    from ottla.client.groups.membership import EventKind
    from ottla.client.pending import Pending

CONSUMER = {
    "group_id": "g",
    "group_instance_id": None,
    "group_protocol": "classic",
    "group_remote_assignor": None,
    "client_rack": "",
    "partition_assignment_strategy": ("range",),
    "session_timeout_ms": 45_000,
    "heartbeat_interval_ms": 3_000,
    "max_poll_interval_ms": 300_000,
    "default_api_timeout_ms": 60_000,
}
_POLL_MS = 200
_SCRIPTED = (
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "OffsetCommit",
    "OffsetFetch",
)


class ScriptedGroup:
    """A group, a network and a cluster of two nodes, of which the first coordinates.

    Attributes:
        fail: by API, error codes to answer with before 0, the first first.
        raised: what `poll` raised.
        events: that appeared; each is done at once unless `holds_events`.
        is_polling: whether the application does.
        epoch_to_come: of KIP-848's member, from its next heartbeat on.
        refuse: error codes of partitions that are never committed.
        silent: APIs that are not answered.
        skips_assignment: whether a leader is told to assign nothing.
        target: partitions of "t" that KIP-848's coordinator wants the member to have.
        committed: what was committed, by topic and partition.
    """

    def __init__(self, *, versions: dict[str, range] | None = None, **settings: Any) -> None:
        self.cluster = ScriptedCluster(
            nodes=2, topics={"t": 4}, versions=versions, **{**CONSUMER, **settings}
        )
        self.network = self.cluster.network
        self.group = Group(self.cluster.settings, self.network, random=random.Random(1).random)
        self.fail: dict[str, list[int]] = {}
        self.raised: list[KafkaError] = []
        self.events: list[Any] = []
        self.is_polling = True
        self.holds_events = self.skips_assignment = False
        self.silent: set[str] = set()
        self.refuse: dict[int, int] = {}
        self.target: list[int] = [0, 1, 2, 3]
        self.committed: dict[tuple[str, int], Any] = {}
        self.generation = 0
        self.epoch = self.epoch_to_come = 0
        self.members: list[JoinGroupResponseMember] = []
        for api in _SCRIPTED:
            self.cluster.on(api, partial(self._answer, api))
        self.cluster.machine = self
        self._seen: Any = None
        self.cluster.after(0, self._poll)

    @property
    def membership(self) -> Any:
        """Of either protocol."""
        return self.group.membership

    @property
    def owned(self) -> list[int]:
        """Partitions of "t"."""
        return sorted(number for _, number in self.membership.assignment)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.cluster.now_ms

    def subscribe(self, *topics: str) -> ScriptedGroup:
        """Subscribes."""
        self.membership.subscribe(frozenset(topics or {"t"}), self.now_ms)
        return self

    def joined(self) -> ScriptedGroup:
        """Subscribes, and joins."""
        self.subscribe()
        self.cluster.run(lambda: self.owned == [0, 1, 2, 3])
        return self

    def wait(self, pending: Pending) -> Pending:
        """Lets time pass until a call has ended."""
        self.cluster.run(lambda: pending.is_done)
        return pending

    def told(self, kind: EventKind) -> list[list[int]]:
        """The partitions of the events of a kind."""
        return [sorted(n for _, n in each.partitions) for each in self.events if each.kind is kind]

    def count(self, api: str) -> int:
        """How often the cluster was asked."""
        return len(self.cluster.asked(api))

    def tick(self, now_ms: int) -> None:
        """Drives it as a shell does."""
        self.group.tick(now_ms)
        self.network.tick(now_ms)
        self.group.tick(now_ms)
        while (event := self.membership.event) is not None and event is not self._seen:
            self.events.append(event)
            self._seen = event
            if not self.holds_events:
                self.membership.event_done(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When it has something to do by itself."""
        deadlines = (self.group.next_deadline_ms(), self.network.next_deadline_ms())
        return min((each for each in deadlines if each is not None), default=None)

    def _poll(self) -> None:
        self.cluster.after(_POLL_MS, self._poll)
        if self.is_polling:
            try:
                self.membership.poll(self.now_ms)
            except KafkaError as error:
                self.raised.append(error)

    def _answer(self, api: str, request: Any, version: int) -> Any:
        if api in self.silent:
            return SILENCE
        codes = self.fail.get(api)
        code = codes.pop(0) if codes else 0
        return getattr(self, f"_{api}")(request, version, code)

    def _FindCoordinator(self, _request: Any, _version: int, code: int) -> Any:  # noqa: N802
        found: dict[str, Any] = {"node_id": 1, "host": "node-1", "port": 9092, "error_code": code}
        if _version < 4:
            return FindCoordinatorResponse(**found)
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", **found)])

    def _JoinGroup(self, request: Any, version: int, code: int) -> Any:  # noqa: N802
        if code:
            return JoinGroupResponse(
                error_code=code, protocol_name="", leader="", member_id="m", members=[]
            )
        self.generation += 1
        name = request.protocols[0].name
        own = JoinGroupResponseMember(member_id="m", metadata=request.protocols[0].metadata)
        if version >= 5:
            own.group_instance_id = request.group_instance_id
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name=name,
            skip_assignment=self.skips_assignment,
            leader="m",
            member_id="m",
            members=[own, *self.members],
        )

    def _SyncGroup(self, request: Any, _version: int, code: int) -> Any:  # noqa: N802
        own = [each.assignment for each in request.assignments if each.member_id == "m"] or [b""]
        return SyncGroupResponse(error_code=code, assignment=b"" if code else own[0])

    def _Heartbeat(self, _request: Any, _version: int, code: int) -> Any:  # noqa: N802
        return HeartbeatResponse(error_code=code)

    def _LeaveGroup(self, _request: Any, _version: int, code: int) -> Any:  # noqa: N802
        return LeaveGroupResponse(error_code=code)

    def _ConsumerGroupHeartbeat(self, request: Any, _version: int, code: int) -> Any:  # noqa: N802
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message="so it is")
        if not request.member_epoch:
            self.epoch += 1
        self.epoch = self.epoch_to_come or self.epoch
        target = TopicPartitions(topic_id=self.cluster.id_of("t"), partitions=self.target)
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.epoch if request.member_epoch >= 0 else request.member_epoch,
            heartbeat_interval_ms=5000,
            assignment=Assignment(topic_partitions=[target]),
        )

    def _OffsetCommit(self, request: Any, version: int, code: int) -> Any:  # noqa: N802
        topics = []
        for topic in request.topics:
            for each in topic.partitions if not code else ():
                if each.partition_index in self.refuse:
                    continue
                self.committed["t", each.partition_index] = each
            partitions = [
                OffsetCommitResponsePartition(
                    partition_index=each.partition_index,
                    error_code=self.refuse.get(each.partition_index, code),
                )
                for each in topic.partitions
            ]
            named = {"topic_id": topic.topic_id} if version >= 10 else {"name": topic.name}
            topics.append(OffsetCommitResponseTopic(partitions=partitions, **named))
        return OffsetCommitResponse(topics=topics)

    def _OffsetFetch(self, request: Any, version: int, code: int) -> Any:  # noqa: N802
        is_new = version >= 8
        found = []
        for topic in request.groups[0].topics if is_new else request.topics:
            kind: Any = OffsetFetchResponsePartitions if is_new else OffsetFetchResponsePartition
            partitions = []
            for index in topic.partition_indexes:
                known = self.committed.get(("t", index))
                partitions.append(
                    kind(
                        partition_index=index,
                        committed_offset=-1 if known is None or code else known.committed_offset,
                        committed_leader_epoch=-1
                        if known is None or version < 5
                        else known.committed_leader_epoch,
                        metadata="" if known is None else known.committed_metadata,
                        error_code=code,
                    )
                )
            named = {"topic_id": topic.topic_id} if version >= 10 else {"name": topic.name}
            answer: Any = OffsetFetchResponseTopics if is_new else OffsetFetchResponseTopic
            found.append(answer(partitions=partitions, **named))
        if is_new:
            group = OffsetFetchResponseGroup(group_id="g", topics=found)
            return OffsetFetchResponse(groups=[group])
        return OffsetFetchResponse(topics=found)
