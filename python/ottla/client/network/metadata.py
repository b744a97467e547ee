"""What a client knows of the cluster: brokers, topics, leaders of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Leader", "Metadata", "Node"]


class Node(NamedTuple):
    """A broker as it is told."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class Leader(NamedTuple):
    """Who leads a partition; -1 for nobody, or an epoch that is not known."""

    node_id: int
    leader_epoch: int = -1


class Metadata(Protocol):
    """What parts of a client ask of it.

    Topics of interest are looked up again each `metadata_max_age_ms`, and when something says that
    they have changed.

    Attributes:
        cluster_id: its name for itself; ``None`` where that is not known.
        controller_id: the node that takes changes; -1 where that is not known.
        update_count: how many answers were accepted.
        failure: why nothing can be looked up, which does not pass by itself: wrong credentials, a
            broker of other versions; ``None`` otherwise. What is asked next tries again.
    """

    @property
    def nodes(self) -> Mapping[int, Node]:
        """The brokers, by id."""

    cluster_id: str | None
    controller_id: int
    update_count: int
    failure: Exception | None

    def add_topics(self, topics: frozenset[str]) -> None:
        """Takes an interest in topics: they are looked up, and kept up to date."""

    def set_topics(self, topics: frozenset[str]) -> None:
        """Takes an interest in these topics alone."""

    def follow_all_topics(self, follow: bool) -> None:
        """Takes an interest in all topics, also in those that come, or only in those named."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Has a callback called after each answer that was accepted, and each `failure`."""

    def on_recreated(self, callback: Callable[[str, int], None]) -> None:
        """Has a callback called for each partition whose topic was deleted and created anew."""

    def learn_nodes(self, nodes: Iterable[Node]) -> None:
        """Notes addresses that an answer told: of leaders (KIP-951), or of a coordinator.

        Requests to a coordinator should not wait behind those to the same broker: it can be told
        under a number of its own, as ``2147483647 - node_id``.
        """

    def learn_leader(self, topic: str, partition: int, leader: Leader) -> bool:
        """Takes the leader that a refusal names, if its epoch is higher (KIP-951).

        Returns:
            Whether it was taken.
        """

    def see_epoch(self, topic: str, partition: int, leader_epoch: int) -> None:
        """Notes an epoch that an answer had: what is known is looked up again if it is older."""

    def request_update(self) -> None:
        """What is known is out of date: it is looked up again, after a back-off."""

    def partition_count(self, topic: str) -> int | None:
        """Returns how many partitions a topic has; ``None`` where that is not known yet."""

    def topics(self) -> list[str]:
        """Returns all topics that are known, without those that have an error."""

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is one of Kafka's own."""

    def topic_name(self, topic_id: bytes) -> str | None:
        """Returns the name of a topic; ``None`` where its id is not known."""

    def partition_epoch(self, topic: str, partition: int) -> int:
        """Returns the epoch of a partition (KIP-232); -1 where it is not known."""

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Returns who leads a partition; ``None`` where that is not known."""

    def topic_id(self, topic: str) -> bytes:
        """Returns the id of a topic; zeros where it is not known."""

    def topic_error(self, topic: str) -> int:
        """Returns the error code that the last answer had for a topic; 0 for none."""
