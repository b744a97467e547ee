"""A scripted cluster whose leaders are the engine's, and a producer that writes to it."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING, Any

import ottla
from ottla import Leader, TopicConfig
from ottla.client.errors import KafkaError
from ottla.client.options.settings import ProducerSettings
from ottla.client.producer.core import ProducerCore
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from support.scripted_cluster import ScriptedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.delivery.promises import Place
    from ottla.client.producer.accumulator import Waiter

__all__ = ["LeadingCluster", "Promises", "Sending"]


class LeadingCluster(ScriptedCluster):
    """Topics that want a key, and producers with ids.

    Attributes:
        leaders_of: what decides about batches, by topic and partition.
        logs: the values that were appended, by topic and partition.
        replies: what to answer the next batches with, in the place of the leader: an error code, or
            a function of the request's partition; ``None`` for the leader.
        produced: topic, partition and bytes of each batch that came.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.leaders_of: dict[tuple[str, int], Leader] = {}
        self.logs: dict[tuple[str, int], list[bytes]] = {}
        self.replies: deque[Any] = deque()
        self.produced: list[tuple[str, int, bytes]] = []
        self.ids = 6
        self.on("Produce", self.produce)
        self.on("InitProducerId", self.init_producer_id)

    def init_producer_id(self, _request: Any, _version: int) -> InitProducerIdResponse:
        """Each producer gets the next id."""
        self.ids += 1
        return InitProducerIdResponse(error_code=0, producer_id=self.ids, producer_epoch=0)

    def produce(self, request: Any, version: int) -> Any:
        """Each leader decides."""
        names = {self.id_of(name): name for name in self.topics}
        answers = []
        for topic in request.topic_data:
            name = topic.name or names[topic.topic_id]
            parts = []
            for one in topic.partition_data:
                self.produced.append((name, one.index, one.records))
                reply = self.replies.popleft() if self.replies else None
                if self.leader_of(name, one.index)[0] != self.node_id:
                    reply = 6
                if callable(reply):
                    return reply()
                parts.append(
                    self.append(name, one.index, one.records, version)
                    if reply is None
                    else PartitionProduceResponse(
                        index=one.index, error_code=reply, base_offset=-1, log_start_offset=0
                    )
                )
            answers.append(
                TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=parts)
            )
        return ProduceResponse(responses=answers)

    def append(
        self, topic: str, partition: int, data: bytes, version: int
    ) -> PartitionProduceResponse:
        """The leader's answer to a batch."""
        place = (topic, partition)
        leader = self.leaders_of.setdefault(place, Leader(TopicConfig(cleanup_policy="compact")))
        verdict = leader.append(data, now_ms=self.now_ms, api_version=version)
        log = self.logs.setdefault(place, [])
        if verdict.accepted and not verdict.is_duplicate:
            log += [one.value or b"" for one in ottla.read(data)]
        return PartitionProduceResponse(
            index=partition,
            error_code=verdict.error,
            base_offset=verdict.base_offset,
            log_append_time_ms=-1,
            log_start_offset=verdict.log_start_offset,
            record_errors=[
                BatchIndexAndErrorMessage(
                    batch_index=one.batch_index, batch_index_error_message=one.message
                )
                for one in verdict.record_errors
            ],
            error_message=verdict.error_message,
        )


class Promises:
    """What records came to, written down by their names."""

    def __init__(self, sending: Sending, names: list[bytes] | None = None) -> None:
        self.promises = names or []
        self.times: list[int] = []
        self.sending = sending

    def __len__(self) -> int:
        return len(self.promises)

    def part(self, start: int, stop: int) -> Promises:
        return Promises(self.sending, self.promises[start:stop])

    def succeed(self, place: Place) -> None:
        for index, name in enumerate(self.promises):
            offset = place.base_offset + index if place.base_offset >= 0 else -1
            self.sending.settle(name, (place.partition, offset))

    def fail(self, error: BaseException) -> None:
        for name in self.promises:
            self.sending.settle(name, error)


class Sending:
    """A producer on a cluster.

    Attributes:
        cluster: what it writes to.
        core: the producer.
        fates: partition and offset, or the error, of each record by its value.
        waiting: calls that wait, by value.
    """

    def __init__(self, cluster: LeadingCluster, **options: Any) -> None:
        self.cluster = cluster
        self.settings = ProducerSettings(bootstrap_servers="boot:9092", **options)
        self.fates: dict[bytes, Any] = {}
        self.lost: list[Any] = []
        self.waiting: dict[bytes, Waiter] = {}
        self.core = ProducerCore(
            self.settings,
            cluster.network,
            new_run=lambda: Promises(self),
            random=random.Random(1).random,
            now_ms=cluster.now_ms,
            on_data_loss=lambda *what: self.lost.append(what),
        )
        cluster.machine = self.core

    def settle(self, name: bytes, fate: Any) -> None:
        """The fate of a record is known, once."""
        assert name not in self.fates
        self.fates[name] = fate

    def send(
        self, *values: bytes, topic: str = "prices", partition: int = -1, key: bytes | None = b"k"
    ) -> None:
        """Sends records; those that begin with ``!`` have no key. What has to wait, waits."""
        for value in values:
            its_key = None if value.startswith(b"!") else key
            now_ms = self.cluster.now_ms
            left = self.core.put(topic, partition, its_key, value, now_ms, None, value)
            if left is not None:
                row = (now_ms, its_key, value, None)
                self._append(topic, left, row, value)

    def _append(self, topic: str, partition: int, row: Any, value: bytes) -> None:
        waiter = self.core.append(topic, partition, row, value, self.cluster.now_ms)
        if waiter is None:
            return
        self.waiting[value] = waiter

        def go_on() -> None:
            del self.waiting[value]
            if waiter.error is not None:
                self.settle(value, waiter.error)
            elif not waiter.value:
                try:
                    self._append(topic, partition, row, value)
                except KafkaError as error:
                    self.settle(value, error)

        waiter.when_done(go_on)

    def run(self, until: Callable[[], object] | None = None, max_ms: int = 600_000) -> None:
        """Lets time pass until every record has a fate, or something else is so."""
        self.cluster.run(until or self.is_done, max_ms)

    def is_done(self) -> bool:
        """Whether nothing is under way."""
        return not self.waiting and not self.core.are_incomplete()

    def offsets(self, partition: int = 0) -> dict[bytes, int]:
        """The offsets of records that were written to a partition."""
        return {
            name: fate[1]
            for name, fate in self.fates.items()
            if isinstance(fate, tuple) and fate[0] == partition
        }
