"""What stands in the way of a consumer that gets no records, in a sentence.

Nothing of it is an error yet: a broker may come back, and a topic may be created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.protocol.error_code import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.network.metadata import Metadata
    from ottla.client.partitions import TopicPartition

__all__ = ["Complaints", "obstacle"]

_PATIENCE_MS = 2_000
_EACH_MS = 30_000


class Network(Protocol):
    """What is asked of the network."""

    @property
    def metadata(self) -> Metadata:
        """The cluster as it was last told."""

    def last_failure(self) -> Exception | None:
        """Why a node could not be reached."""


def obstacle(
    network: Network, topics: Iterable[str], partitions: Iterable[TopicPartition]
) -> str | None:
    """Returns what stands in the way of reading; ``None`` where nothing is known."""
    metadata, failure = network.metadata, network.last_failure()
    if metadata.failure is not None:
        return str(metadata.failure)
    if not metadata.update_count:
        return f"no broker has answered yet{f', the last reason: {failure}' if failure else ''}"
    for topic in topics:
        code = metadata.topic_error(topic)
        if code:
            return f"the brokers answer {name_of(code)} for the topic {topic!r}"
    for topic, number in partitions:
        count = metadata.partition_count(topic)
        if count is not None and number >= count:
            return f"the topic {topic!r} has {count} partitions, numbered from 0, and no {number}"
        if count is not None and metadata.leader(topic, number) is None:
            return f"{topic}-{number} has no leader"
    return None if failure is None else f"a broker cannot be reached: {failure}"


class Complaints:
    """When to complain: after a while without records, and then not too often."""

    def __init__(self) -> None:
        self._since_ms: int | None = None
        self._not_before_ms = 0

    def served(self) -> None:
        """There were records."""
        self._since_ms = None

    def is_due(self, now_ms: int) -> bool:
        """Whether the application waits in vain for long enough to be told why."""
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms >= max(self._since_ms + _PATIENCE_MS, self._not_before_ms)

    def made(self, now_ms: int) -> None:
        """A complaint was made."""
        self._not_before_ms = now_ms + _EACH_MS
