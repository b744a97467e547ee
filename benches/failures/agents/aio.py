"""aiokafka as an agent."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka import TopicPartition

from benches.failures.agents.agent import LINGER_MS, Agent, Options, Record, name_of, serve
from benches.failures.agents.loop import Loop, outcomes


class AiokafkaAgent(Agent):
    """Errors are told by their classes; the loop runs on a thread, between commands as well."""

    version = aiokafka.__version__

    def __init__(self) -> None:
        self._run = Loop().run

    def describe(self, error: BaseException) -> str:
        """Return the class."""
        return name_of(error)

    def producer(self, options: Options) -> Mapping[str, object]:
        """Make the producer, and start it."""
        settings: dict[str, Any] = {
            "enable_idempotence": options.is_idempotent,
            "acks": "all",
            "request_timeout_ms": options.timeout_ms,
            "linger_ms": LINGER_MS,
        }
        if options.transactional_id:
            settings["transactional_id"] = options.transactional_id
        self._timeout_s = options.timeout_ms / 1000

        async def start() -> None:
            self._producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=options.servers, **settings
            )
            await self._producer.start()

        # It initialises transactions as it starts, and so `init` does it.
        if options.transactional_id:
            self._start = start
        else:
            self._run(start())
        return settings

    def send(self, records: Sequence[Record]) -> list[BaseException | None]:
        """Send records, and wait for their futures."""
        sending = [
            self._producer.send(record.topic, record.value, key=record.key, partition=0)
            for record in records
        ]
        return self._run(outcomes(sending))

    def init(self) -> None:
        """Start the producer, which initialises transactions."""
        self._run(self._start())

    def begin(self) -> None:
        """Begin a transaction."""
        self._run(self._producer.begin_transaction())

    def commit(self) -> None:
        """Commit the transaction; it has no time-out of its own."""
        self._run(asyncio.wait_for(self._producer.commit_transaction(), self._timeout_s))

    def abort(self) -> None:
        """Abort the transaction."""
        self._run(asyncio.wait_for(self._producer.abort_transaction(), self._timeout_s))

    def offsets(self, topic: str, offset: int) -> None:
        """Commit an offset with the transaction."""
        offsets = {TopicPartition(topic, 0): offset}
        self._run(self._producer.send_offsets_to_transaction(offsets, self._group))

    def consumer(self, options: Options) -> Mapping[str, object]:
        """Make the consumer; it is started when it is told what to read."""
        settings: dict[str, Any] = {
            "auto_offset_reset": options.reset,
            "isolation_level": options.isolation,
            "enable_auto_commit": False,
        }
        if options.group:
            settings["group_id"] = self._group = options.group

        async def make() -> None:
            self._consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=options.servers, **settings
            )

        self._run(make())
        return settings

    def assign(self, topic: str, offset: int) -> None:
        """Have the consumer read partition 0."""

        async def assign() -> None:
            partition = TopicPartition(topic, 0)
            await self._consumer.start()
            self._consumer.assign([partition])
            self._consumer.seek(partition, offset)

        self._run(assign())

    def subscribe(self, topic: str) -> None:
        """Have the consumer read as a member."""

        async def subscribe() -> None:
            self._consumer.subscribe([topic])
            await self._consumer.start()

        self._run(subscribe())

    def poll(self, within_s: float) -> list[bytes]:
        """Return values that have come."""
        found = self._run(self._consumer.getmany(timeout_ms=int(within_s * 1000)))
        return [record.value for records in found.values() for record in records]

    def commit_positions(self) -> None:
        """Commit what was read."""
        self._run(self._consumer.commit())


if __name__ == "__main__":
    logging.disable()
    serve(AiokafkaAgent())
