"""The cluster as it was last told, and which answers are older than what is known (KIP-232).

An answer is outdated, and not used at all, if its largest partition epoch is below the one known,
or a partition in it has a lower partition epoch or, with the same one, a lower leader epoch. A
partition with a higher partition epoch, or another topic id, was created anew: what was known of
its leader epochs is forgotten. Brokers that know no partition epochs are held by leader epochs
alone, and believed in the end, since an unclean election may have taken the epoch back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.network.metadata import Leader, Node
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.protocol.messages.metadata import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

__all__ = ["ClusterMetadata"]

_RELIABLE_FROM: Final = 9
"""Before this version of Metadata, leader epochs may be old (KAFKA-9212)."""

_MOST_REWINDS: Final = 5


class _Partition:
    __slots__ = ("leader_epoch", "leader_id", "partition_epoch", "rewinds", "seen_max")

    def __init__(self, told: MetadataResponsePartition, seen_max: int) -> None:
        self.leader_id = told.leader_id
        self.leader_epoch = told.leader_epoch
        self.partition_epoch = told.partition_epoch
        self.seen_max = seen_max
        self.rewinds = 0


class _Topic:
    __slots__ = ("error_code", "is_internal", "missing_since_ms", "partitions", "topic_id")

    def __init__(self) -> None:
        self.topic_id = NO_UUID
        self.error_code = 0
        self.is_internal = False
        self.missing_since_ms: int | None = None
        self.partitions: dict[int, _Partition] = {}


class _Verdict:
    """What an answer is worth."""

    __slots__ = ("by_partition_epoch", "is_outdated", "recreated", "rewound")

    def __init__(self) -> None:
        self.is_outdated = False
        self.by_partition_epoch = False
        self.recreated: list[tuple[str, int]] = []
        self.rewound: list[_Partition] = []


class ClusterMetadata:
    """What is known; for its methods and attributes see `Metadata`.

    Attributes:
        is_followed: whether there is any interest.
        follows_all: whether the interest is in all topics.
        interest: the topics that are looked up, by name.
        wants_update: whether something says that the cluster has changed.
        has_new: whether a topic was never asked for.
        outdated_total, outdated_partition_epoch_total, rewind_accepted_total: how often an answer
            was outdated, was so by partition epochs, and was believed in the end.
    """

    def __init__(self, max_age_ms: int) -> None:
        self.nodes: dict[int, Node] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.update_count = 0
        self.failure: Exception | None = None
        self.interest: frozenset[str] = frozenset()
        self.follows_all = False
        self.wants_update = False
        self.has_new = False
        self.outdated_total = 0
        self.outdated_partition_epoch_total = 0
        self.rewind_accepted_total = 0
        self._max_age_ms = max_age_ms
        self._max_partition_epoch = -1
        self._learned: dict[int, Node] = {}
        self._topics: dict[str, _Topic] = {}
        self._names: dict[bytes, str] = {}
        self._on_change: list[Callable[[], None]] = []
        self._on_recreated: list[Callable[[str, int], None]] = []

    # The interest.

    @property
    def is_followed(self) -> bool:
        """Whether there is any interest."""
        return self.follows_all or bool(self.interest)

    def add_topics(self, topics: frozenset[str]) -> None:
        """Takes an interest in topics."""
        if not topics <= self.interest:
            self.interest |= topics
            self.has_new = True

    def set_topics(self, topics: frozenset[str]) -> None:
        """Takes an interest in these topics alone."""
        if not topics <= self.interest:
            self.has_new = True
        self.interest = topics
        if not self.follows_all:
            self._keep(topics)

    def follow_all_topics(self, follow: bool) -> None:
        """Takes an interest in all topics, or only in those named."""
        self.has_new |= follow and not self.follows_all
        self.follows_all = follow

    def request_update(self) -> None:
        """What is known is out of date."""
        self.wants_update = True

    def on_change(self, callback: Callable[[], None]) -> None:
        """Has a callback called after each accepted answer, and each failure."""
        self._on_change.append(callback)

    def on_recreated(self, callback: Callable[[str, int], None]) -> None:
        """Has a callback called for each partition that was created anew."""
        self._on_recreated.append(callback)

    # What is known.

    def node(self, node_id: int) -> Node | None:
        """Returns a broker, or a coordinator that was told."""
        return self.nodes.get(node_id) or self._learned.get(node_id)

    def topics(self) -> list[str]:
        """Returns all topics that are known."""
        return [name for name, topic in self._topics.items() if not topic.error_code]

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is one of Kafka's own."""
        known = self._topics.get(topic)
        return known is not None and known.is_internal

    def partition_count(self, topic: str) -> int | None:
        """Returns how many partitions a topic has."""
        known = self._topics.get(topic)
        return len(known.partitions) or None if known is not None else None

    def partition_epoch(self, topic: str, partition: int) -> int:
        """Returns the epoch of a partition."""
        known = self._partition(topic, partition)
        return -1 if known is None else known.partition_epoch

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Returns who leads a partition."""
        known = self._partition(topic, partition)
        if known is None or known.leader_id < 0:
            return None
        return Leader(known.leader_id, known.leader_epoch)

    def topic_id(self, topic: str) -> bytes:
        """Returns the id of a topic."""
        known = self._topics.get(topic)
        return NO_UUID if known is None else known.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """Returns the name of a topic."""
        return self._names.get(topic_id)

    def topic_error(self, topic: str) -> int:
        """Returns the error code that the last answer had for a topic."""
        known = self._topics.get(topic)
        return 0 if known is None else known.error_code

    def _partition(self, topic: str, partition: int) -> _Partition | None:
        known = self._topics.get(topic)
        return None if known is None else known.partitions.get(partition)

    # What other answers tell.

    def learn_nodes(self, nodes: Iterable[Node]) -> None:
        """Notes addresses that an answer told."""
        for node in nodes:
            if node.node_id in self.nodes:
                self.nodes[node.node_id] = node
            else:
                self._learned[node.node_id] = node

    def learn_leader(self, topic: str, partition: int, leader: Leader) -> bool:
        """Takes the leader that a refusal names, if its epoch is higher."""
        known = self._partition(topic, partition)
        if (
            known is None
            or leader.leader_epoch <= known.leader_epoch
            or leader.node_id < 0
            or self.node(leader.node_id) is None
        ):
            return False
        known.leader_id, known.leader_epoch = leader
        return True

    def see_epoch(self, topic: str, partition: int, leader_epoch: int) -> None:
        """Notes an epoch that an answer had."""
        known = self._partition(topic, partition)
        if known is not None and leader_epoch > known.leader_epoch >= 0:
            self.wants_update = True

    # Answers to Metadata.

    def accept(self, response: MetadataResponse, version: int, now_ms: int) -> bool:
        """Takes an answer; returns whether it is used, and not outdated."""
        verdict = self._judge(response, version)
        if verdict.is_outdated:
            self.outdated_total += 1
            self.outdated_partition_epoch_total += verdict.by_partition_epoch
            return False
        self.rewind_accepted_total += len(verdict.rewound)
        self._max_partition_epoch = max(self._max_partition_epoch, response.max_partition_epoch)
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.nodes = {
                one.node_id: Node(one.node_id, one.host, one.port, one.rack)
                for one in response.brokers
            }
        told = {topic.name: topic for topic in response.topics if topic.name is not None}
        forgotten = set(verdict.recreated)
        for name, topic in told.items():
            self._take_topic(name, topic, now_ms, forgotten)
        if self.follows_all:
            for name in self._topics.keys() - told.keys():
                self._note_missing(name, now_ms, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            self._keep(self.interest)
        self._names = {topic.topic_id: name for name, topic in self._topics.items()}
        self._names.pop(NO_UUID, None)
        self.failure = None
        self.update_count += 1
        for each in verdict.recreated:
            for callback in self._on_recreated:
                callback(*each)
        self._tell_change()
        return True

    def fail(self, error: Exception) -> None:
        """Nothing can be looked up, and that does not pass by itself."""
        self.failure = error
        self._tell_change()

    @property
    def is_complete(self) -> bool:
        """Whether brokers are known, and each topic of interest, without an error that passes.

        A broker that has just started tells of no brokers, itself included, until the controller
        has told it of them. Nor is a topic known whose leader has no address.
        """
        return bool(self.nodes) and all(
            name in self._topics and self._is_settled(self._topics[name]) for name in self.interest
        )

    def _is_settled(self, topic: _Topic) -> bool:
        if topic.error_code:
            return topic.error_code not in _PASSING
        return all(self.node(one.leader_id) is not None for one in topic.partitions.values())

    def _keep(self, topics: frozenset[str]) -> None:
        for name in self._topics.keys() - topics:
            del self._topics[name]

    def _judge(self, response: MetadataResponse, version: int) -> _Verdict:
        verdict = _Verdict()
        if -1 < response.max_partition_epoch < self._max_partition_epoch:
            verdict.is_outdated = verdict.by_partition_epoch = True
            return verdict
        for told in response.topics:
            known = self._topics.get(told.name or "")
            if known is None or told.error_code:
                continue
            for partition in told.partitions:
                cached = known.partitions.get(partition.partition_index)
                if cached is not None:
                    pair = (known, told), (cached, partition)
                    self._judge_partition(verdict, *pair, response.max_partition_epoch, version)
        return verdict

    def _judge_partition(
        self,
        verdict: _Verdict,
        topics: tuple[_Topic, MetadataResponseTopic],
        partitions: tuple[_Partition, MetadataResponsePartition],
        told_max: int,
        version: int,
    ) -> None:
        (known, told), (cached, partition) = topics, partitions
        both_have_epochs = partition.partition_epoch >= 0 and cached.partition_epoch >= 0
        is_other_id = known.topic_id not in {told.topic_id, NO_UUID}
        if both_have_epochs:
            if partition.partition_epoch < cached.partition_epoch:
                verdict.is_outdated = verdict.by_partition_epoch = True
                return
            if partition.partition_epoch > cached.partition_epoch:
                verdict.recreated.append((told.name or "", partition.partition_index))
                return
        elif is_other_id and told.topic_id == NO_UUID and version >= _WITH_TOPIC_IDS:
            verdict.is_outdated = True
            return
        elif is_other_id and told.topic_id != NO_UUID:
            verdict.recreated.append((told.name or "", partition.partition_index))
            return
        if -1 < partition.leader_epoch < cached.leader_epoch and version >= _RELIABLE_FROM:
            is_newer = told_max > self._max_partition_epoch
            cached.rewinds += 1
            if cached.rewinds >= _MOST_REWINDS and (is_newer or not both_have_epochs):
                verdict.rewound.append(cached)
            else:
                verdict.is_outdated = True

    def _take_topic(
        self,
        name: str,
        told: MetadataResponseTopic,
        now_ms: int,
        recreated: set[tuple[str, int]],
    ) -> None:
        if told.error_code and not told.partitions:
            self._note_missing(name, now_ms, told.error_code)
            return
        topic = self._topics.setdefault(name, _Topic())
        topic.error_code = told.error_code
        topic.missing_since_ms = None
        topic.is_internal = told.is_internal
        if told.topic_id != NO_UUID:
            topic.topic_id = told.topic_id
        known, topic.partitions = topic.partitions, {}
        for one in sorted(told.partitions, key=lambda one: one.partition_index):
            index = one.partition_index
            new = _Partition(one, self._max_partition_epoch)
            before = known.get(index)
            if before is not None and (name, index) not in recreated:
                if new.leader_id < 0:
                    # Nobody leads it for the moment: the old leader is the best guess there is.
                    new.leader_id, new.leader_epoch = before.leader_id, before.leader_epoch
                    self.wants_update = True
                if new.partition_epoch < 0:
                    new.partition_epoch = before.partition_epoch
            topic.partitions[index] = new

    def _note_missing(self, name: str, now_ms: int, error_code: int) -> None:
        """A topic is not in an answer: it may be gone, or the answer old, or the topic new."""
        topic = self._topics.setdefault(name, _Topic())
        topic.error_code = error_code
        if topic.missing_since_ms is None:
            topic.missing_since_ms = now_ms
        is_newer = any(
            -1 < one.seen_max < self._max_partition_epoch for one in topic.partitions.values()
        )
        if is_newer or now_ms - topic.missing_since_ms >= self._max_age_ms:
            topic.partitions.clear()
            topic.topic_id = NO_UUID
            if name not in self.interest:
                del self._topics[name]

    def _tell_change(self) -> None:
        for callback in self._on_change:
            callback()


_WITH_TOPIC_IDS: Final = 10

_PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
