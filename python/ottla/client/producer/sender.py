"""What a producer sends: batches that are due, to leaders that take them; requests for an id.

    tick ─▸ InitProducerId, where there is no id ─▸ a request of the transaction ─▸ Produce

A request has one batch of each partition at most, and as many as `max_request_size` allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.delivery.batch import Identity
from ottla.client.errors import CorrelationIdMismatchError, NetworkError, error_of
from ottla.client.producer.requests import InitId, Produce, Sent, Transactional
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.client.delivery.partition import PartitionQueue
    from ottla.client.delivery.reactions import Kind
    from ottla.client.producer.accumulator import Accumulator
    from ottla.client.producer.metrics import Metrics
    from ottla.client.transactions.manager import TransactionManager
    from ottla.client.transactions.requests import Request

__all__ = ["Core", "Sender"]

_LAST_EPOCH = 32767
_BUMPS_FROM = 3


class Core(Protocol):
    """The producer whose batches they are."""

    settings: Any
    network: Any
    kind: Kind
    identity: Identity
    metrics: Metrics
    accumulator: Accumulator
    manager: TransactionManager | None
    is_closed: bool

    @property
    def linger_ms(self) -> int:
        """How long a batch waits for more records."""

    def backoff_ms(self, attempts: int) -> int:
        """Returns how long to wait before the next attempt."""

    def fail_fatally(self, error: BaseException) -> None:
        """The producer has to be closed."""


class Sender:
    """Makes the requests of one producer, and takes their answers.

    Args:
        core: the producer.

    Attributes:
        under_way: how many requests with batches have no answer yet.
    """

    def __init__(self, core: Core) -> None:
        self.under_way = 0
        self.settings = core.settings
        self.network = core.network
        self._core = core
        self._is_id_asked = False
        self._id_attempts = 0
        self._id_not_before_ms = 0
        self._stalled_since_ms: dict[int, int] = {}

    def tick(self, now_ms: int) -> None:
        """Sends what may be sent."""
        self._ask_for_id(now_ms)
        self._send_transactional(now_ms)
        self._drain(now_ms)

    def next_deadlines_ms(self) -> list[int]:
        """Returns when there is something to do again."""
        times: list[int] = []
        manager = self._core.manager
        if manager is not None and (manager_ms := manager.next_deadline_ms()) is not None:
            times.append(manager_ms)
        if self._needs_id and not self._is_id_asked:
            times.append(self._id_not_before_ms)
        # A batch that is due asks for no other time itself.
        chances_ms = map(self.network.chance_ms, self._stalled_since_ms)
        times += [chance_ms for chance_ms in chances_ms if chance_ms is not None]
        return times

    def is_slow(self, node_id: int, now_ms: int) -> bool:
        """Whether a node has taken no batch for `partitioner_availability_timeout_ms`."""
        timeout_ms = self.settings.partitioner_availability_timeout_ms
        since_ms = self._stalled_since_ms.get(node_id)
        return timeout_ms > 0 and since_ms is not None and now_ms - since_ms > timeout_ms

    # What requests tell.

    def data_of(self, sent: Sent, now_ms: int) -> bytes:
        """Returns a batch as it is sent."""
        queue, batch = sent
        identity = batch.identity
        settings = self.settings
        data: bytes = batch.records.finish(
            compression=settings.compression_type,
            compression_level=settings.compression_level,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=batch.sent_sequence,
            is_transactional=self._core.manager is not None,
        )
        if batch.attempts == 1:
            whole = batch.records.size_bytes
            metrics = self._core.metrics
            metrics.measure("batch-size", len(data), now_ms)
            metrics.measure("record-size", whole, now_ms, batch.count)
            metrics.measure("record-queue-time", now_ms - batch.created_ms, now_ms)
            if settings.compression_type != "none":
                metrics.measure("compression-rate", len(data) / whole, now_ms)
                topic = self._core.accumulator.topics[queue.topic]
                topic.observe(len(data) / whole, settings.batch_size)
        return data

    def landed(self, exchange: Produce, now_ms: int) -> None:
        """A request with batches has an end."""
        self.under_way -= 1
        self._core.accumulator.is_new = True
        self._core.metrics.measure("request-latency", now_ms - exchange.sent_ms, now_ms)

    def id_answered(self, response: Any, now_ms: int) -> None:
        """There is an id, or an error in its place."""
        self._is_id_asked = False
        self._core.accumulator.is_new = True
        if response.error_code == ErrorCode.NONE:
            self._core.identity = Identity(response.producer_id, response.producer_epoch)
            self._id_attempts = 0
            return
        error = error_of(response.error_code)
        if error.retriable:
            self._ask_again(now_ms)
        else:
            self._core.fail_fatally(error)

    def id_failed(self, error: Exception, now_ms: int) -> None:
        """No answer came."""
        self._is_id_asked = False
        self._core.accumulator.is_new = True
        if isinstance(error, (NetworkError, CorrelationIdMismatchError)):
            self._ask_again(now_ms)
        else:
            self._core.fail_fatally(error)

    def transaction_answered(
        self, request: Request, response: Any, version: int, now_ms: int
    ) -> None:
        """A coordinator has answered."""
        manager = self._core.manager
        if manager is None or self._core.is_closed:
            return
        if request.api == "InitProducerId":
            manager.can_bump = version >= _BUMPS_FROM
        manager.answered(request, response, now_ms)
        self._core.accumulator.is_new = True

    def transaction_failed(self, request: Request, error: Exception, now_ms: int) -> None:
        """No answer came."""
        manager = self._core.manager
        if manager is None or self._core.is_closed:
            return
        if isinstance(error, NetworkError):
            manager.disconnected(request, now_ms)
        elif isinstance(error, CorrelationIdMismatchError):
            manager.mismatched(request, error.request_id, error.response_id)
        else:
            manager.refused(request, error)
        self._core.accumulator.is_new = True

    # Within.

    @property
    def _needs_id(self) -> bool:
        return self._core.kind == "idempotent" and self._core.identity.producer_id < 0

    def _ask_for_id(self, now_ms: int) -> None:
        is_wanted = self._needs_id and not self._is_id_asked
        if is_wanted and now_ms >= self._id_not_before_ms:
            self._is_id_asked = True
            self.network.send(None, InitId(self), now_ms)

    def _ask_again(self, now_ms: int) -> None:
        self._id_attempts += 1
        self._id_not_before_ms = now_ms + self._core.backoff_ms(self._id_attempts)

    def _send_transactional(self, now_ms: int) -> None:
        manager = self._core.manager
        if manager is None:
            return
        request = manager.next_request(now_ms)
        if request is not None:
            exchange = Transactional(self, request, manager, is_implicit=manager.is_implicit)
            self.network.send(manager.node_of(request), exchange, now_ms)

    def _drain(self, now_ms: int) -> None:
        """Sends what is due to leaders that take it."""
        if self._core.kind != "none" and self._core.identity.producer_id < 0:
            return
        linger_ms = self._core.linger_ms
        by_node: dict[int, list[PartitionQueue]] = {}
        metadata = self.network.metadata
        for queue in self._core.accumulator.queues():
            if not queue.has_next(now_ms, linger_ms) or not self._may_send(queue):
                continue
            leader = metadata.leader(queue.topic, queue.partition)
            if leader is None or leader.node_id < 0:
                metadata.request_update()
            else:
                by_node.setdefault(leader.node_id, []).append(queue)
        for node_id, queues in by_node.items():
            if not self.network.may_send(node_id, now_ms):
                self._stalled_since_ms.setdefault(node_id, now_ms)
                continue
            self._stalled_since_ms.pop(node_id, None)
            while self.network.may_send(node_id, now_ms):
                sent = self._collect(queues, now_ms, linger_ms)
                if not sent:
                    break
                self._send(node_id, sent, now_ms)

    def _may_send(self, queue: PartitionQueue) -> bool:
        manager = self._core.manager
        if manager is None or queue.open:
            return True
        return manager.may_send(queue.topic, queue.partition)

    def _collect(self, queues: list[PartitionQueue], now_ms: int, linger_ms: int) -> list[Sent]:
        """Takes the next batches of partitions, as many as a request may have."""
        sent: list[Sent] = []
        size = 0
        most = self.settings.max_request_size
        in_flight = self.settings.max_in_flight_requests_per_connection
        for place, queue in enumerate(queues):
            size += queue.next_bytes
            if sent and size > most:
                # Those that are left come first in the next request.
                queues[:] = queues[place:] + queues[:place]
                break
            batch = queue.next_batch(now_ms, in_flight, linger_ms)
            if batch is None and queue.may_bump and self._bump():
                batch = queue.next_batch(now_ms, in_flight, linger_ms)
            if batch is not None:
                sent.append(Sent(queue, batch))
        return sent

    def _send(self, node_id: int, sent: list[Sent], now_ms: int) -> None:
        manager = self._core.manager
        is_implicit = None if manager is None else manager.is_implicit
        exchange = Produce(self, sent, is_implicit=is_implicit, now_ms=now_ms)
        self.under_way += 1
        self._core.metrics.measure(
            "records-per-request", sum(one.batch.count for one in sent), now_ms
        )
        self.network.send(node_id, exchange, now_ms)

    def _bump(self) -> bool:
        """Takes a new epoch, or asks for a new id behind the last; returns whether there is one."""
        if self._core.kind != "idempotent":
            return False
        if self._core.identity.epoch < _LAST_EPOCH:
            self._core.identity = self._core.identity._replace(epoch=self._core.identity.epoch + 1)
            return True
        self._core.identity = Identity()
        self._core.accumulator.is_new = True
        return False
