"""A group coordinator with a virtual clock, a list of what waits and a log in memory."""

from __future__ import annotations

import random
from typing import Any

import ottla
from ottla.broker.groups.classic import Caller
from ottla.broker.groups.config import GroupConfig
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.image import BrokerNode, Image, Partition, Topic
from ottla.broker.waiting import WaitingList
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

START_MS = 1_700_000_000_000


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


class Answer:
    """An answer that comes now or later."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def __call__(self, response: Any) -> None:
        assert not self.given, "a request is answered once"
        self.given.append(response)

    @property
    def waits(self) -> bool:
        return not self.given

    @property
    def value(self) -> Any:
        assert self.given, "not answered yet"
        return self.given[0]


class World:
    """A coordinator, and calls as clients make them, in short."""

    def __init__(self, *, topics: dict[str, int] | None = None, **settings: Any) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.config = GroupConfig(**settings)
        self.now_ms = START_MS
        self.logs: dict[int, bytearray] = {}
        self.append_error = 0
        self.bits = random.Random(1).getrandbits
        self.set_topics({"t": 4} if topics is None else topics)
        self.start()

    def start(self) -> None:
        """Starts a coordinator, which loads the log."""
        self.waiting = WaitingList()
        self.groups = GroupCoordinator(
            lambda: self.config,
            waiting=self.waiting,
            image=lambda: self.image,
            random_bits=self.bits,
            append=self.append,
        )
        for partition in range(self.groups.partitions.count):
            self.groups.partitions.lead(partition, 0)
        for partition, data in self.logs.items():
            self.groups.load(partition, bytes(data), self.now_ms)
        self.groups.resume(self.now_ms)

    def set_topics(self, topics: dict[str, int]) -> None:
        image = Image.of_one("cluster", BrokerNode(1, {}))
        self.image = image.with_topics(
            Topic(
                name,
                topic_id(name),
                tuple(Partition(index, 1, 0, 0, (1,), (1,), index) for index in range(count)),
                is_internal=False,
                configs={},
            )
            for name, count in topics.items()
        )

    def append(self, partition: int, records: bytes, _now_ms: int, _guard: object) -> int:
        if self.append_error == 0:
            self.logs.setdefault(partition, bytearray()).extend(records)
        return self.append_error

    def end_transaction(self, producer_id: int, group_id: str, *, commit: bool) -> None:
        """Has the marker of a transaction written to the log of a group."""
        partition = self.groups.partitions.of(group_id)
        marker = ottla.build_control_batch(
            "commit" if commit else "abort",
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=self.now_ms,
        )
        self.logs.setdefault(partition, bytearray()).extend(marker)
        self.groups.end_transaction(producer_id, partition, is_commit=commit)

    def pass_time(self, milliseconds: int) -> None:
        """Lets time pass, and what falls due happen at its time."""
        end_ms = self.now_ms + milliseconds
        while (next_ms := self.waiting.next_deadline_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self.waiting.tick(self.now_ms)
        self.now_ms = end_ms

    def records(self, group_id: str) -> list[dict[str, Any]]:
        """Returns what the audit decodes of the log of a group."""
        data = bytes(self.logs.get(self.groups.partitions.of(group_id), b""))
        decoded = [
            ottla.decode_record("__consumer_offsets", record.key, record.value)
            for record in ottla.read(data)
        ]
        return [each for each in decoded if each is not None]

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = 3,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        client: str = "c",
    ) -> Answer:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in (
                    {"range": b"sub"} if protocols is None else protocols
                ).items()
            ],
        )
        answer = Answer()
        self.groups.join(request, Caller(version, client, "/127.0.0.1"), self.now_ms, answer)
        return answer

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        **changed: Any,
    ) -> Answer:
        fields: dict[str, Any] = {
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        request = SyncGroupRequest(
            group_id=group,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ],
            **{**fields, **changed},
        )
        answer = Answer()
        self.groups.sync(request, self.now_ms, answer)
        return answer

    def heartbeat(
        self, member_id: str, generation_id: int, *, group: str = "g", instance: str | None = None
    ) -> int:
        return self.groups.heartbeat(
            HeartbeatRequest(
                group_id=group,
                generation_id=generation_id,
                member_id=member_id,
                group_instance_id=instance,
            ),
            self.now_ms,
        )

    def leave(self, member_id: str = "", *, group: str = "g", instance: str | None = None) -> int:
        identity = MemberIdentity(member_id=member_id, group_instance_id=instance)
        return self.groups.leave(group, [identity], self.now_ms)[0]

    def stable(self, count: int = 1, **options: Any) -> list[JoinGroupResponse]:
        """Brings so many new members to a stable generation, the leader first."""
        first = [self.join(**options) for _ in range(count)]
        self.pass_time(self.config.group_initial_rebalance_delay_ms)
        answers = [self.join(each.value.member_id, **options) for each in first if each.given]
        joined: list[JoinGroupResponse] = [
            each.value for each in (answers if any(a.given for a in answers) else first)
        ]
        return self.synced(joined, group=options.get("group", "g"))

    def synced(
        self, joined: list[JoinGroupResponse], *, group: str = "g"
    ) -> list[JoinGroupResponse]:
        """Syncs a generation; everybody is assigned its own name."""
        joined = sorted(joined, key=lambda each: each.member_id != each.leader)
        leader = joined[0]
        assignments = {each.member_id: each.member_id.encode() for each in leader.members}
        followers = [self.sync(each, group=group) for each in joined[1:]]
        answers: list[SyncGroupResponse] = [
            self.sync(leader, assignments, group=group).value,
            *(each.value for each in followers),
        ]
        assert [each.error_code for each in answers] == [0] * len(joined)
        assert [each.assignment.decode() for each in answers] == [each.member_id for each in joined]
        return joined

    def commit(
        self,
        offset: int = 5,
        *,
        group: str = "g",
        member_id: str = "",
        generation_id: int = -1,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        version: int = 8,
        retention_ms: int = -1,
    ) -> int:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        response = self.groups.commits.commit(request, version, self.now_ms)
        return response.topics[0].partitions[0].error_code

    def committed(self, group: str = "g", topic: str = "t", partition: int = 0) -> int:
        fetched = self.groups.commits.fetch(group, topic, [partition], require_stable=False)
        return fetched[0].offset

    def state(self, group: str = "g") -> str:
        return self.groups.describe(group).group_state
