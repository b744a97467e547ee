"""Fetch: the request to one node, and what becomes of each partition in its answer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.network.exchange import Exchange
from ottla.client.partitions import TopicPartition
from ottla.protocol.messages import fetch as messages
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.consumer.session import Entry, Said
    from ottla.client.consumer.table import Assigned
    from ottla.client.errors import KafkaError
    from ottla.protocol.wire import Message

__all__ = ["Asked", "Fetch", "FetchSettings", "Fetcher"]

_FIRST, _FIRST_WITH_SESSIONS, _FIRST_WITH_IDS, _LAST = 4, 7, 13, 17


class FetchSettings(Protocol):
    """The options of a consumer that a Fetch has."""

    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    client_rack: str | None


class Asked(NamedTuple):
    """A partition that a fetch is about.

    Attributes:
        assigned: what is known of it.
        term: in which it was asked for.
        entry: from where.
        is_of_leader: whether the node is its leader, and no other replica.
    """

    assigned: Assigned
    term: int
    entry: Entry
    is_of_leader: bool


class Fetcher(Protocol):
    """Who fetches."""

    def fetched(self, fetch: Fetch, response: Any, version: int, now_ms: int) -> None:
        """The answer has come."""

    def failed(self, fetch: Fetch, error: KafkaError | Exception, now_ms: int) -> None:
        """No answer comes."""


class Fetch(Exchange):
    """A Fetch of partitions from a node.

    Attributes:
        node_id: the node.
        asked: the partitions that the answer may be about.
        sent_ms: when it was handed over.
    """

    request = messages.FetchRequest

    def __init__(
        self,
        fetcher: Fetcher,
        settings: FetchSettings,
        *,
        isolation_level: int,
        node_id: int,
        said: Said,
        asked: Mapping[TopicPartition, Asked],
        now_ms: int,
    ) -> None:
        self.node_id = node_id
        self.asked = asked
        self.sent_ms = now_ms
        self.versions = range(_FIRST, (_LAST if said.is_by_id else _FIRST_WITH_IDS - 1) + 1)
        self._fetcher = fetcher
        self._settings = settings
        self._isolation_level = isolation_level
        self._said = said

    def message(self, version: int) -> Message:
        """Returns what to send in a version."""
        said, settings = self._said, self._settings
        named = said.changed if version >= _FIRST_WITH_SESSIONS else said.all
        return messages.FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation_level,
            session_id=said.session_id,
            session_epoch=said.epoch,
            topics=[
                messages.FetchTopic(
                    topic=topic,
                    topic_id=topic_id,
                    partitions=[
                        messages.FetchPartition(
                            partition=number,
                            current_leader_epoch=entry.leader_epoch,
                            fetch_offset=entry.offset,
                            partition_max_bytes=entry.max_bytes,
                        )
                        for number, entry in partitions
                    ],
                )
                for (topic, topic_id), partitions in _by_topic(named).items()
            ],
            forgotten_topics_data=[
                messages.ForgottenTopic(
                    topic=topic, topic_id=topic_id, partitions=[number for number, _ in partitions]
                )
                for (topic, topic_id), partitions in _by_topic(said.forgotten).items()
            ],
            rack_id=settings.client_rack or "",
        )

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        """The answer has come."""
        self._fetcher.fetched(self, response, version, now_ms)

    def failed(self, error: KafkaError | Exception, now_ms: int) -> None:
        """No answer comes."""
        self._fetcher.failed(self, error, now_ms)

    def parts(self, response: Any, version: int) -> Iterable[tuple[Asked, Any]]:
        """Yields the partitions of an answer that were asked for, with what it says of them."""
        names: dict[bytes, str] = {}
        if version >= _FIRST_WITH_IDS:
            for partition, asked in self.asked.items():
                names[asked.entry.topic_id] = partition.topic
        for topic in response.responses:
            name = topic.topic if version < _FIRST_WITH_IDS else names.get(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                asked_for = self.asked.get(TopicPartition(name, data.partition_index))
                if asked_for is not None:
                    yield asked_for, data

    @property
    def is_by_id(self) -> bool:
        """Whether topics are named by their ids."""
        return self._said.is_by_id


def _by_topic(
    entries: Mapping[TopicPartition, Entry],
) -> dict[tuple[str, bytes], list[tuple[int, Entry]]]:
    by_topic: dict[tuple[str, bytes], list[tuple[int, Entry]]] = defaultdict(list)
    for (topic, number), entry in entries.items():
        by_topic[topic, entry.topic_id or NO_UUID].append((number, entry))
    return by_topic
