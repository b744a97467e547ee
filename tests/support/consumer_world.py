"""Members of consumer groups (KIP-848), as clients that do what they are told."""

from __future__ import annotations

from typing import Any

from ottla.broker.groups.classic import Caller
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from support.group_world import World, topic_id

Owned = set[tuple[str, int]]


def heartbeat(
    world: World,
    member_id: str = "m",
    epoch: int = 0,
    *,
    group: str = "g",
    version: int = 1,
    owned: Owned | None = None,
    topics: list[str] | None = None,
    rebalance_ms: int | None = None,
    **fields: Any,
) -> ConsumerGroupHeartbeatResponse:
    """Sends one heartbeat; with epoch 0 it says all that a member has to say."""
    if epoch == 0:
        owned = set() if owned is None else owned
        rebalance_ms = 60_000 if rebalance_ms is None else rebalance_ms
        if topics is None and "subscribed_topic_regex" not in fields:
            topics = ["t"]
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(owned or ()):
        by_topic.setdefault(topic, []).append(partition)
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=-1 if rebalance_ms is None else rebalance_ms,
        subscribed_topic_names=topics,
        topic_partitions=None
        if owned is None
        else [
            TopicPartitions(topic_id=topic_id(topic), partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
        **fields,
    )
    return world.groups.consumer_heartbeat(
        request, Caller(version, "c", "/127.0.0.1"), world.now_ms
    )


def assigned(response: ConsumerGroupHeartbeatResponse) -> Owned | None:
    """The partitions in an answer, `None` where it says nothing of them."""
    if response.assignment is None:
        return None
    return {
        (each.topic_id.rstrip(b"\0").decode(), partition)
        for each in response.assignment.topic_partitions
        for partition in each.partitions
    }


class Client:
    """A consumer that takes and gives up partitions as it is told."""

    def __init__(self, world: World, member_id: str, *, group: str = "g", **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.group = group
        self.fields = fields
        self.epoch = 0
        self.owned: Owned = set()
        self.error = 0
        # Whether it has to say everything, as after an answer that was lost.
        self.says_all = False

    def said(self) -> dict[str, Any]:
        """What it says in the next heartbeat beside its epoch."""
        if not self.says_all and self.epoch:
            return {}
        self.says_all = False
        return {"rebalance_ms": 60_000, **self.fields}

    def beat(self) -> ConsumerGroupHeartbeatResponse:
        """Sends a heartbeat and does what the answer says."""
        answer = heartbeat(
            self.world,
            self.member_id,
            self.epoch,
            group=self.group,
            owned=self.owned,
            **self.said(),
        )
        self.error = answer.error_code
        if self.error in {25, 110}:
            self.epoch, self.owned = 0, set()
        elif self.error == 0:
            self.epoch = answer.member_epoch
            told = assigned(answer)
            if told is not None:
                self.owned = told
        return answer

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        """Leaves, for good or for a while."""
        fields = {key: value for key, value in self.fields.items() if key == "instance_id"}
        answer = heartbeat(self.world, self.member_id, epoch, group=self.group, **fields)
        self.epoch, self.owned = 0, set()
        return answer


def settle(*clients: Client, rounds: int = 6) -> None:
    """Lets everybody send heartbeats until nothing is left to do."""
    for _ in range(rounds):
        for client in clients:
            client.beat()
