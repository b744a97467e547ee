"""What a client knows of the cluster: brokers, topics, leaders of partitions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

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
    """

    def add_topics(self, topics: frozenset[str]) -> None:
        """Takes an interest in topics: they are looked up, and kept up to date."""

    def request_update(self) -> None:
        """What is known is out of date: it is looked up again, after a back-off."""

    def partition_count(self, topic: str) -> int | None:
        """Returns how many partitions a topic has; ``None`` where that is not known yet."""

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Returns who leads a partition; ``None`` where that is not known."""

    def topic_id(self, topic: str) -> bytes:
        """Returns the id of a topic; zeros where it is not known."""

    def topic_error(self, topic: str) -> int:
        """Returns the error code that the last answer had for a topic; 0 for none."""
