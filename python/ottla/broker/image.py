"""The cluster as of one moment: brokers, topics, partitions.

An image never changes. Whoever changes the cluster makes a new one from it and replaces it whole,
so a request that took an image once gives an answer that was true at one moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["BrokerNode", "Image", "Partition", "Topic"]


class BrokerNode(NamedTuple):
    """A broker that clients can reach, by listener."""

    node_id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None = None

    def endpoint(self, listener: str) -> tuple[str, int]:
        """Returns the host and port of a listener, or of the first one."""
        found = self.endpoints.get(listener)
        return next(iter(self.endpoints.values()), ("", -1)) if found is None else found


class Partition(NamedTuple):
    """A partition of a topic."""

    partition_index: int
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    handle: int
    """What the data plane of this broker calls it; -1 where it has no replica."""


class Topic(NamedTuple):
    """A topic."""

    name: str
    topic_id: bytes
    partitions: tuple[Partition, ...]
    is_internal: bool
    configs: Mapping[str, str]
    """What was set for the topic itself, by Kafka's names."""

    def partition(self, index: int) -> Partition | None:
        """Returns a partition, or `None` if there is none of that index."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class Image:
    """An immutable view of the cluster.

    Attributes:
        cluster_id: as in ``meta.properties``.
        controller_id: the broker that requests about the cluster go to.
        brokers: by node id.
        topics: by name.
        topics_by_id: by topic id.
    """

    __slots__ = ("brokers", "cluster_id", "controller_id", "topics", "topics_by_id")

    def __init__(
        self,
        cluster_id: str,
        controller_id: int,
        brokers: Mapping[int, BrokerNode],
        topics: Mapping[str, Topic],
        topics_by_id: Mapping[bytes, Topic],
    ) -> None:
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = brokers
        self.topics = topics
        self.topics_by_id = topics_by_id

    @classmethod
    def of_one(cls, cluster_id: str, node: BrokerNode) -> Image:
        """Returns the image of a cluster of one broker, without topics."""
        return cls(cluster_id, node.node_id, {node.node_id: node}, {}, {})

    def partition(self, topic: str, index: int) -> Partition | None:
        """Returns a partition by the name of its topic, or `None`."""
        found = self.topics.get(topic)
        return None if found is None else found.partition(index)

    def with_topics(self, topics: Iterable[Topic]) -> Image:
        """Returns an image with topics added or replaced."""
        by_name, by_id = dict(self.topics), dict(self.topics_by_id)
        for topic in topics:
            before = by_name.get(topic.name)
            if before is not None:
                by_id.pop(before.topic_id, None)
            by_name[topic.name] = by_id[topic.topic_id] = topic
        return self._with(by_name, by_id)

    def without_topics(self, names: Iterable[str]) -> Image:
        """Returns an image without some topics."""
        by_name, by_id = dict(self.topics), dict(self.topics_by_id)
        for name in names:
            topic = by_name.pop(name, None)
            if topic is not None:
                by_id.pop(topic.topic_id, None)
        return self._with(by_name, by_id)

    def _with(self, topics: Mapping[str, Topic], topics_by_id: Mapping[bytes, Topic]) -> Image:
        return Image(self.cluster_id, self.controller_id, self.brokers, topics, topics_by_id)
