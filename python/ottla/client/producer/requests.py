"""The requests of a producer: batches for leaders of partitions, an id, those of transactions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.errors import CorrelationIdMismatchError, NetworkError
from ottla.client.network.exchange import Exchange
from ottla.client.network.metadata import Leader, Node
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.delivery.batch import Batch
    from ottla.client.delivery.partition import PartitionQueue
    from ottla.client.transactions.requests import Request
    from ottla.protocol.wire import Message

__all__ = ["InitId", "Owner", "Produce", "Sent", "Transactional"]

_FIRST_OF_RECORD_BATCHES = 3
_FIRST_OF_ZSTD = 7
_FIRST_OF_TRANSACTIONS_2 = 12
_FIRST_OF_TOPIC_IDS = 13


class Sent(NamedTuple):
    """A batch on its way."""

    queue: PartitionQueue
    batch: Batch


class Owner(Protocol):
    """The producer that requests belong to."""

    settings: Any
    network: Any

    def data_of(self, sent: Sent, now_ms: int) -> bytes:
        """Returns a batch as it is sent."""

    def landed(self, exchange: Produce, now_ms: int) -> None:
        """A request with batches has an end."""

    def id_answered(self, response: Any, now_ms: int) -> None:
        """There is an id, or an error in its place."""

    def id_failed(self, error: Exception, now_ms: int) -> None:
        """No answer came."""

    def transaction_answered(
        self, request: Request, response: Any, version: int, now_ms: int
    ) -> None:
        """A coordinator has answered."""

    def transaction_failed(self, request: Request, error: Exception, now_ms: int) -> None:
        """No answer came."""


class Produce(Exchange):
    """Batches for partitions that a node leads.

    Args:
        owner: the producer.
        sent: the batches, one a partition.
        is_implicit: whether the transaction is of version 2; ``None`` without one.
        now_ms: the time.
    """

    request = ProduceRequest

    def __init__(
        self, owner: Owner, sent: Sequence[Sent], *, is_implicit: bool | None, now_ms: int
    ) -> None:
        settings = owner.settings
        metadata = owner.network.metadata
        self.sent = sent
        self.sent_ms = now_ms
        self.timeout_ms = settings.request_timeout_ms
        self.has_answer = settings.acks != 0
        self._owner = owner
        self._topic_ids: dict[str, bytes] = {
            one.queue.topic: metadata.topic_id(one.queue.topic) for one in sent
        }
        first, last = _FIRST_OF_RECORD_BATCHES, _FIRST_OF_TOPIC_IDS
        if NO_UUID in self._topic_ids.values():
            last = _FIRST_OF_TOPIC_IDS - 1
        if settings.compression_type == "zstd":
            first = _FIRST_OF_ZSTD
        if is_implicit is not None:
            if is_implicit:
                first = _FIRST_OF_TRANSACTIONS_2
            else:
                last = _FIRST_OF_TRANSACTIONS_2 - 1
        self.versions = range(first, last + 1)

    def message(self, version: int) -> Message:  # noqa: ARG002 - fields of others are left out
        """Returns the request."""
        settings = self._owner.settings
        topics: dict[str, TopicProduceData] = {}
        for one in self.sent:
            name = one.queue.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, topic_id=self._topic_ids[name])
            data = self._owner.data_of(one, self.sent_ms)
            topic.partition_data.append(
                PartitionProduceData(index=one.queue.partition, records=data)
            )
        return ProduceRequest(
            transactional_id=settings.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    def answered(self, response: Any, version: int, now_ms: int) -> None:  # noqa: ARG002
        """Each batch gets its answer."""
        if response is None:
            for queue, batch in self.sent:
                queue.answered(batch, _unacknowledged(queue.partition), now_ms)
            self._owner.landed(self, now_ms)
            return
        answers = self._answers(response)
        self._learn(response, answers)
        missing = NetworkError("a broker's answer to Produce leaves out a partition that was sent")
        for queue, batch in self.sent:
            answer = answers.get((queue.topic, queue.partition))
            if answer is None:
                queue.disconnected(batch, missing, now_ms)
            else:
                queue.answered(batch, answer, now_ms)
        self._owner.landed(self, now_ms)

    def failed(self, error: Exception, now_ms: int) -> None:
        """Each batch is sent again, unless the reason does not pass by itself."""
        is_passing = isinstance(error, (NetworkError, CorrelationIdMismatchError))
        for queue, batch in self.sent:
            if is_passing:
                queue.disconnected(batch, error, now_ms)
            else:
                queue.refused(batch, error)
        self._owner.landed(self, now_ms)

    def _answers(self, response: Any) -> dict[tuple[str, int], PartitionProduceResponse]:
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        return {
            (topic.name or names.get(topic.topic_id, ""), one.index): one
            for topic in response.responses
            for one in topic.partition_responses
        }

    def _learn(
        self, response: Any, answers: dict[tuple[str, int], PartitionProduceResponse]
    ) -> None:
        """Takes what an answer says of new leaders (KIP-951)."""
        metadata = self._owner.network.metadata
        if response.node_endpoints:
            metadata.learn_nodes(
                Node(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints
            )
        for (topic, partition), answer in answers.items():
            leader = answer.current_leader
            if answer.error_code and leader.leader_id >= 0:
                metadata.learn_leader(
                    topic, partition, Leader(leader.leader_id, leader.leader_epoch)
                )


def _unacknowledged(partition: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition, error_code=ErrorCode.NONE, base_offset=-1, log_append_time_ms=-1
    )


class InitId(Exchange):
    """An id for a producer without transactions."""

    request = InitProducerIdRequest

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def message(self, version: int) -> Message:  # noqa: ARG002 - it is the same in all
        """Returns the request."""
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)

    def answered(self, response: Any, version: int, now_ms: int) -> None:  # noqa: ARG002
        """There is an id, or an error in its place."""
        self._owner.id_answered(response, now_ms)

    def failed(self, error: Exception, now_ms: int) -> None:
        """No answer came."""
        self._owner.id_failed(error, now_ms)


class Transactional(Exchange):
    """A request of a transaction.

    Args:
        owner: the producer.
        request: what the manager asks for.
        manager: what its fields come from.
        is_implicit: whether the transaction is of version 2, which later versions mean.
    """

    def __init__(self, owner: Owner, request: Request, manager: Any, *, is_implicit: bool) -> None:
        module = import_module(f"ottla.protocol.messages.{request.module}")
        self.request = getattr(module, f"{request.api}Request")
        self.versions = request.versions
        if is_implicit and request.implicit_versions is not None:
            self.versions = request.implicit_versions
        self._owner = owner
        self._request = request
        self._manager = manager

    def message(self, version: int) -> Message:
        """Returns the request."""
        return self._request.message(self._manager, version)

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        """A coordinator has answered."""
        self._owner.transaction_answered(self._request, response, version, now_ms)

    def failed(self, error: Exception, now_ms: int) -> None:
        """No answer came."""
        self._owner.transaction_failed(self._request, error, now_ms)
