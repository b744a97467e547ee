"""Ottla's own client as an agent."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla import __version__
from ottla.client import AsyncConsumer, AsyncProducer, OffsetAndMetadata, TopicPartition

from benches.failures.agents.agent import LINGER_MS, Agent, Options, Record, name_of, serve
from benches.failures.agents.loop import Loop, outcomes


class OttlaAgent(Agent):
    """Errors are told by their classes."""

    version = __version__

    def __init__(self) -> None:
        self._run = Loop().run

    def describe(self, error: BaseException) -> str:
        """Return the class, and that of the cause."""
        return name_of(error)

    def producer(self, options: Options) -> Mapping[str, object]:
        """Make the producer."""
        settings: dict[str, Any] = {
            "enable_idempotence": options.is_idempotent,
            "acks": "all",
            "delivery_timeout_ms": options.timeout_ms,
            "request_timeout_ms": options.timeout_ms // 2,
            "max_block_ms": options.timeout_ms,
            "linger_ms": LINGER_MS,
        }
        if options.transactional_id:
            settings["transactional_id"] = options.transactional_id

        async def make() -> None:
            self._producer = AsyncProducer(bootstrap_servers=options.servers, **settings)

        self._run(make())
        return settings

    def send(self, records: Sequence[Record]) -> list[BaseException | None]:
        """Send records, and wait for their futures."""
        sending = [
            self._producer.send(record.topic, record.value, record.key, 0) for record in records
        ]
        return self._run(outcomes(sending))

    def init(self) -> None:
        """Initialise transactions."""
        self._run(self._producer.init_transactions())

    def begin(self) -> None:
        """Begin a transaction."""
        self._run(self._producer.begin_transaction())

    def commit(self) -> None:
        """Commit the transaction."""
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        """Abort the transaction."""
        self._run(self._producer.abort_transaction())

    def offsets(self, topic: str, offset: int) -> None:
        """Commit an offset with the transaction."""
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(offset)}
        metadata = self._consumer.group_metadata()
        self._run(self._producer.send_offsets_to_transaction(offsets, metadata))

    def consumer(self, options: Options) -> Mapping[str, object]:
        """Make the consumer."""
        settings: dict[str, Any] = {
            "auto_offset_reset": options.reset,
            "isolation_level": options.isolation,
            "enable_auto_commit": False,
        }
        if options.group:
            settings["group_id"] = options.group

        async def make() -> None:
            self._consumer = AsyncConsumer(bootstrap_servers=options.servers, **settings)

        self._run(make())
        return settings

    def assign(self, topic: str, offset: int) -> None:
        """Have the consumer read partition 0."""

        async def assign() -> None:
            self._consumer.assign([TopicPartition(topic, 0)])
            self._consumer.seek(TopicPartition(topic, 0), offset)

        self._run(assign())

    def subscribe(self, topic: str) -> None:
        """Have the consumer read as a member."""

        async def subscribe() -> None:
            self._consumer.subscribe([topic])

        self._run(subscribe())

    def poll(self, within_s: float) -> list[bytes]:
        """Return values that have come."""
        found = self._run(self._consumer.poll(int(within_s * 1000)))
        return [record.value or b"" for record in found]

    def commit_positions(self) -> None:
        """Commit what was read."""
        self._run(self._consumer.commit())


if __name__ == "__main__":
    serve(OttlaAgent())
