"""Questions that only the leader of a partition can answer, asked again until it does.

Those that are due for partitions of one leader go out as one request. A question ends by being
answered, refused, or no longer wanted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.consumer.reactions import Reaction, lookup_reaction
from ottla.client.errors import RetriableError, error_of
from ottla.client.network.exchange import Exchange
from ottla.client.partitions import TopicPartition
from ottla.protocol.messages import list_offsets, offset_for_leader_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.errors import KafkaError
    from ottla.client.network.exchange import Network
    from ottla.protocol.wire import Message

__all__ = ["EARLIEST", "LATEST", "Epochs", "Found", "Lookups", "Offsets", "Question"]


LATEST, EARLIEST = -1, -2
"""Timestamps that stand for both ends of a log."""


class Found(NamedTuple):
    """What a leader answered; -1 stands for none.

    Attributes:
        offset: of the timestamp asked for, or where the epoch asked for ends.
        timestamp_ms: of the record there.
        leader_epoch: of the record there, or the epoch found.
        partition_epoch: of the partition (KIP-232).
    """

    offset: int = -1
    timestamp_ms: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1


class Asker(Protocol):
    """Who asks a question."""

    def is_wanted(self) -> bool:
        """Whether the answer is of any interest."""

    def answered(self, found: Found, now_ms: int) -> None:
        """The leader has answered."""

    def refused(self, error: KafkaError | Exception, now_ms: int) -> bool:
        """The leader does not answer; returns whether to ask again after a back-off."""

    def recreated(self, partition_epoch: int, now_ms: int) -> None:
        """The partition is another of the same name."""


class Question:
    """One question about one partition.

    Attributes:
        partition: which.
        value: what is asked: a timestamp, or a leader epoch.
        asker: who asks.
        is_asked: whether a request with it is under way.
        not_before_ms: when it may be asked.
        attempts: how often it was asked in vain.
    """

    __slots__ = ("asker", "attempts", "is_asked", "not_before_ms", "partition", "value")

    def __init__(self, partition: TopicPartition, value: int, asker: Asker) -> None:
        self.partition = partition
        self.value = value
        self.asker = asker
        self.is_asked = False
        self.not_before_ms = 0
        self.attempts = 0


class Lookups:
    """All questions of one kind."""

    def __init__(
        self,
        network: Network,
        kind: type[_Lookup],
        isolation_level: int,
        backoff_ms: Callable[[int], int],
    ) -> None:
        self._network = network
        self._kind = kind
        self._isolation_level = isolation_level
        self._backoff_ms = backoff_ms
        self._questions: dict[Question, None] = {}

    def ask(self, partition: TopicPartition, value: int, asker: Asker) -> None:
        """Asks the leader of a partition, from the next `tick` on."""
        self._questions[Question(partition, value, asker)] = None

    def tick(self, now_ms: int) -> None:
        """Sends what is due."""
        if not self._questions:
            return
        self._questions = {one: None for one in self._questions if one.asker.is_wanted()}
        metadata = self._network.metadata
        by_node: dict[int, list[Question]] = defaultdict(list)
        for question in self._questions:
            if question.is_asked or now_ms < question.not_before_ms:
                continue
            leader = metadata.leader(*question.partition)
            if leader is None or leader.node_id < 0:
                # The next answer to Metadata has it asked.
                metadata.add_topics(frozenset([question.partition.topic]))
                metadata.request_update()
                question.not_before_ms = 0
                continue
            question.is_asked = True
            by_node[leader.node_id].append(question)
        for node_id, questions in by_node.items():
            for asked in _without_repetition(questions):
                lookup = self._kind(self, self._network, asked, self._isolation_level)
                self._network.send(node_id, lookup, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when a question is due that has to wait."""
        return min(
            (
                one.not_before_ms
                for one in self._questions
                if one.not_before_ms and not one.is_asked
            ),
            default=None,
        )

    def answered(self, question: Question, found: Found, now_ms: int) -> None:
        """Ends a question."""
        self._questions.pop(question, None)
        if question.asker.is_wanted():
            question.asker.answered(found, now_ms)

    def answered_with(self, question: Question, code: int, epoch: int, now_ms: int) -> None:
        """Does what there is to do about an error code."""
        reaction = lookup_reaction(code)
        if reaction is Reaction.NOTHING:
            self.answered(question, Found(), now_ms)
        elif reaction is Reaction.RECREATED:
            self._questions.pop(question, None)
            if question.asker.is_wanted():
                question.asker.recreated(epoch, now_ms)
        elif reaction is Reaction.RAISE:
            self.refused(question, error_of(code), now_ms)
        else:
            self.again(question, now_ms, is_outdated=reaction is Reaction.REFRESH)

    def again(self, question: Question, now_ms: int, *, is_outdated: bool) -> None:
        """Asks a question again, after a back-off."""
        if is_outdated:
            self._network.metadata.request_update()
        question.is_asked = False
        question.not_before_ms = now_ms + self._backoff_ms(question.attempts)
        question.attempts += 1

    def refused(self, question: Question, error: KafkaError | Exception, now_ms: int) -> None:
        """Tells who asks of an error, who says whether to go on."""
        if question.asker.is_wanted() and question.asker.refused(error, now_ms):
            self.again(question, now_ms, is_outdated=True)
        else:
            self._questions.pop(question, None)


def _without_repetition(questions: list[Question]) -> Iterable[list[Question]]:
    """Returns the questions in lists that have each partition once, as a request must."""
    lists: list[dict[TopicPartition, Question]] = []
    for question in questions:
        for one in lists:
            if question.partition not in one:
                one[question.partition] = question
                break
        else:
            lists.append({question.partition: question})
    return [list(one.values()) for one in lists]


class _Lookup(Exchange):
    """A request with questions to the leader of their partitions."""

    def __init__(
        self, lookups: Lookups, network: Network, questions: list[Question], isolation_level: int
    ) -> None:
        self._lookups = lookups
        self._network = network
        self._asked = {one.partition: one for one in questions}
        self._isolation_level = isolation_level

    def failed(self, error: KafkaError | Exception, now_ms: int) -> None:
        for question in self._asked.values():
            if isinstance(error, RetriableError):
                self._lookups.again(question, now_ms, is_outdated=True)
            else:
                self._lookups.refused(question, error, now_ms)

    def answered(self, response: Any, version: int, now_ms: int) -> None:  # noqa: ARG002
        missing = dict(self._asked)
        for topic in response.topics:
            for answer in topic.partitions:
                number, found = self._found(answer)
                question = missing.pop(TopicPartition(self._topic(topic), number), None)
                if question is None:
                    continue
                if answer.error_code:
                    self._lookups.answered_with(
                        question, answer.error_code, found.partition_epoch, now_ms
                    )
                else:
                    self._lookups.answered(question, found, now_ms)
        for question in missing.values():
            self._lookups.again(question, now_ms, is_outdated=True)

    def _by_topic(self) -> dict[str, list[Question]]:
        by_topic: dict[str, list[Question]] = defaultdict(list)
        for question in self._asked.values():
            by_topic[question.partition.topic].append(question)
        return by_topic

    def _leader_epoch(self, question: Question) -> int:
        leader = self._network.metadata.leader(*question.partition)
        return -1 if leader is None else leader.leader_epoch

    @abstractmethod
    def _topic(self, topic: Any) -> str:
        """Returns the name of a topic in an answer."""

    @abstractmethod
    def _found(self, answer: Any) -> tuple[int, Found]:
        """Returns the number of a partition and what was found of it."""


# The first version that knows a timestamp that stands for something else than a time.
_FIRST_VERSION = {-3: 7, -4: 8, -5: 9, -6: 11}


class Offsets(_Lookup):
    """ListOffsets: the offsets of timestamps."""

    request = list_offsets.ListOffsetsRequest

    def __init__(
        self, lookups: Lookups, network: Network, questions: list[Question], isolation_level: int
    ) -> None:
        super().__init__(lookups, network, questions, isolation_level)
        first = max(_FIRST_VERSION.get(one.value, 1) for one in questions)
        # Without a level of isolation, the end is that of records that may never be delivered.
        self.versions = range(max(first, 2 if isolation_level else 1), 12)

    def message(self, version: int) -> Message:  # noqa: ARG002, D102 - as the base says
        messages = list_offsets
        return messages.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation_level,
            topics=[
                messages.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        messages.ListOffsetsPartition(
                            partition_index=one.partition.partition,
                            current_leader_epoch=self._leader_epoch(one),
                            timestamp=one.value,
                        )
                        for one in questions
                    ],
                )
                for topic, questions in self._by_topic().items()
            ],
        )

    def _topic(self, topic: Any) -> str:
        name: str = topic.name
        return name

    def _found(self, answer: Any) -> tuple[int, Found]:
        return answer.partition_index, Found(
            answer.offset, answer.timestamp, answer.leader_epoch, answer.partition_epoch
        )


class Epochs(_Lookup):
    """OffsetForLeaderEpoch: where leader epochs end (KIP-320)."""

    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest
    # Earlier ones need a right that consumers do not have.
    versions = range(3, 5)

    def message(self, version: int) -> Message:  # noqa: ARG002, D102 - as the base says
        messages = offset_for_leader_epoch
        return messages.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                messages.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        messages.OffsetForLeaderPartition(
                            partition=one.partition.partition,
                            current_leader_epoch=self._leader_epoch(one),
                            leader_epoch=one.value,
                        )
                        for one in questions
                    ],
                )
                for topic, questions in self._by_topic().items()
            ],
        )

    def _topic(self, topic: Any) -> str:
        name: str = topic.topic
        return name

    def _found(self, answer: Any) -> tuple[int, Found]:
        return answer.partition, Found(
            answer.end_offset, -1, answer.leader_epoch, answer.partition_epoch
        )
