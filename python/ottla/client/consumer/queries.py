"""Calls that ask the cluster something for the application: offsets of times, partitions, topics.

Each ends by what was found, by an error that does not pass, or by its caller's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.consumer.lookup import EARLIEST, LATEST
from ottla.client.consumer.position import OffsetAndTimestamp, Position
from ottla.client.errors import RetriableError, error_of, topic_error
from ottla.client.network.exchange import ANY_NODE, Exchange
from ottla.client.partitions import TopicPartition, topic_of
from ottla.client.pending import Pending
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ottla.client.consumer.lookup import Found, Lookups
    from ottla.client.errors import KafkaError
    from ottla.client.network.exchange import Network
    from ottla.protocol.wire import Message

__all__ = ["Queries"]

_LASTING = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})

# The first version that can say so; earlier ones create nothing for who asks for all topics.
_WITH_CHOICE = 4


class Queries:
    """All that are under way."""

    def __init__(self, network: Network, offsets: Lookups) -> None:
        self._network = network
        self._offsets = offsets
        # What ends a call: by the call, a function that returns whether it has ended.
        self._waiting: dict[Pending, Callable[[], None]] = {}
        self._topics: dict[Pending, str] = {}
        self._lookups: dict[Pending, _OffsetQuery] = {}
        self._unsent: list[Pending] = []

    def offsets_for_times(self, timestamps: Mapping[TopicPartition, int]) -> Pending:
        """Looks up the first records of times or later."""
        return self._offsets_of("offsets_for_times", timestamps)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Pending:
        """Looks up the first offsets."""
        return self._offsets_of("beginning_offsets", dict.fromkeys(partitions, EARLIEST))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Pending:
        """Looks up the offsets of the records to come."""
        return self._offsets_of("end_offsets", dict.fromkeys(partitions, LATEST))

    def _offsets_of(self, name: str, wanted: Mapping[TopicPartition, int]) -> Pending:
        """Looks up the offsets of timestamps; the value has `None` where there is no record."""
        pending = Pending(name)
        self._network.metadata.add_topics(frozenset(topic for topic, _ in wanted))
        query = self._lookups[pending] = _OffsetQuery(pending, dict(wanted))
        pending.when_done(lambda: self._forget(pending))
        for partition, timestamp in wanted.items():
            self._offsets.ask(TopicPartition(*partition), timestamp, _Part(query, partition))
        if not wanted:
            pending.end(value={})
        return pending

    def partitions_for(self, topic: str) -> Pending:
        """Looks up how many partitions a topic has; the value is their numbers."""
        pending = Pending("partitions_for")
        metadata = self._network.metadata
        metadata.add_topics(frozenset([topic_of(topic)]))
        self._topics[pending] = topic

        def look() -> None:
            count = metadata.partition_count(topic)
            code = metadata.topic_error(topic)
            if count is not None:
                pending.end(value=frozenset(range(count)))
            elif code in _LASTING:
                pending.end(topic_error(code, topic))

        self._wait(pending, look)
        return pending

    def topics(self) -> Pending:
        """Looks up the names of all topics."""
        pending = Pending("topics")
        self._waiting[pending] = lambda: None
        self._unsent.append(pending)
        return pending

    def tick(self, now_ms: int) -> None:
        """Asks what is to be asked, and ends what can end."""
        unsent, self._unsent = self._unsent, []
        for each in unsent:
            self._network.send(ANY_NODE, _AllTopics(self, each), now_ms)
        failure = self._network.metadata.failure
        for pending, look in list(self._waiting.items()):
            if failure is not None:
                pending.end(failure)
            else:
                look()
            if pending.is_done:
                self._forget(pending)

    def time_out(self, pending: Pending) -> Collection[TopicPartition]:
        """The caller's time is over: a topic's own error says more than that.

        Returns the partitions that a lookup of offsets still waits for.
        """
        topic = self._topics.get(pending)
        code = 0 if topic is None else self._network.metadata.topic_error(topic)
        if code and topic is not None:
            pending.end(topic_error(code, topic))
        lookup = self._lookups.get(pending)
        self._forget(pending)
        return () if lookup is None else [one for one in lookup.wanted if one not in lookup.found]

    def ask_again(self, pending: Pending) -> None:
        """A call that asks for all topics got no answer."""
        if not pending.is_done:
            self._unsent.append(pending)

    def _wait(self, pending: Pending, look: Callable[[], None]) -> None:
        self._waiting[pending] = look

    def _forget(self, pending: Pending) -> None:
        self._waiting.pop(pending, None)
        self._topics.pop(pending, None)
        self._lookups.pop(pending, None)


class _AllTopics(Exchange):
    """Metadata of all topics, for a call that wants their names."""

    request = MetadataRequest

    def __init__(self, queries: Queries, pending: Pending) -> None:
        self._queries = queries
        self._pending = pending

    def message(self, version: int) -> Message:
        return MetadataRequest(
            topics=None if version else [], allow_auto_topic_creation=version < _WITH_CHOICE
        )

    def answered(self, response: Any, version: int, now_ms: int) -> None:  # noqa: ARG002
        names = (topic.name for topic in response.topics if not topic.error_code)
        self._pending.end(value=frozenset(name for name in names if name is not None))

    def failed(self, error: KafkaError | Exception, now_ms: int) -> None:  # noqa: ARG002
        if isinstance(error, RetriableError):
            self._queries.ask_again(self._pending)
        else:
            self._pending.end(error)


class _OffsetQuery:
    def __init__(self, pending: Pending, wanted: dict[TopicPartition, int]) -> None:
        self.pending = pending
        self.wanted = wanted
        self.found: dict[TopicPartition, OffsetAndTimestamp | None] = {}


class _Part:
    """One partition of a query."""

    def __init__(self, query: _OffsetQuery, partition: TopicPartition) -> None:
        self._query = query
        self._partition = partition

    def is_wanted(self) -> bool:
        return not self._query.pending.is_done

    def answered(self, found: Found, now_ms: int) -> None:  # noqa: ARG002
        query = self._query
        position = Position(found.offset, found.leader_epoch, found.partition_epoch)
        query.found[self._partition] = (
            None
            if found.offset < 0
            else OffsetAndTimestamp(
                found.offset, found.timestamp_ms, found.leader_epoch, position.offset_epoch()
            )
        )
        if len(query.found) == len(query.wanted):
            query.pending.end(value={one: query.found[one] for one in query.wanted})

    def refused(self, error: KafkaError | Exception, now_ms: int) -> bool:  # noqa: ARG002
        self._query.pending.end(error)
        return False

    def recreated(self, partition_epoch: int, now_ms: int) -> None:  # noqa: ARG002
        self._query.pending.end(error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
