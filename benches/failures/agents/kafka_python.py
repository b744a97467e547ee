"""kafka-python as an agent."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import kafka
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from benches.failures.agents.agent import LINGER_MS, Agent, Options, Record, name_of, serve


class KafkaPythonAgent(Agent):
    """Errors are told by their classes."""

    version = kafka.__version__

    def describe(self, error: BaseException) -> str:
        """Return the class, and whether it says that trying again may help."""
        return name_of(error)

    def producer(self, options: Options) -> Mapping[str, object]:
        """Make the producer."""
        settings: dict[str, Any] = {
            "enable_idempotence": options.is_idempotent,
            "acks": "all",
            "delivery_timeout_ms": options.timeout_ms,
            "request_timeout_ms": options.timeout_ms // 2,
            "max_block_ms": options.timeout_ms,
            "bootstrap_timeout_ms": options.timeout_ms,
            "linger_ms": LINGER_MS,
        }
        if options.transactional_id:
            settings["transactional_id"] = options.transactional_id
        self._producer = kafka.KafkaProducer(bootstrap_servers=options.servers, **settings)
        return settings

    def send(self, records: Sequence[Record]) -> list[BaseException | None]:
        """Send records, and wait for their futures."""
        sent: list[Any] = []
        for record in records:
            try:
                sent.append(
                    self._producer.send(record.topic, record.value, key=record.key, partition=0)
                )
            except Exception as error:  # noqa: BLE001 - what it raises is what is measured
                sent.append(error)
        return [_outcome(each) for each in sent]

    def init(self) -> None:
        """Initialise transactions."""
        self._producer.init_transactions()

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def commit(self) -> None:
        """Commit the transaction."""
        self._producer.commit_transaction()

    def abort(self) -> None:
        """Abort the transaction."""
        self._producer.abort_transaction()

    def offsets(self, topic: str, offset: int) -> None:
        """Commit an offset with the transaction."""
        self._producer.send_offsets_to_transaction(
            {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)},
            self._consumer.group_metadata(),
        )

    def consumer(self, options: Options) -> Mapping[str, object]:
        """Make the consumer."""
        settings: dict[str, Any] = {
            "auto_offset_reset": options.reset,
            "isolation_level": options.isolation,
            "enable_auto_commit": False,
        }
        if options.group:
            settings["group_id"] = options.group
        self._consumer = kafka.KafkaConsumer(bootstrap_servers=options.servers, **settings)
        return settings

    def assign(self, topic: str, offset: int) -> None:
        """Have the consumer read partition 0."""
        partition = TopicPartition(topic, 0)
        self._consumer.assign([partition])
        self._consumer.seek(partition, offset)

    def subscribe(self, topic: str) -> None:
        """Have the consumer read as a member."""
        self._consumer.subscribe([topic])

    def poll(self, within_s: float) -> list[bytes]:
        """Return values that have come."""
        found = self._consumer.poll(timeout_ms=int(within_s * 1000))
        return [record.value for records in found.values() for record in records]

    def commit_positions(self) -> None:
        """Commit what was read."""
        self._consumer.commit()


def _outcome(sent: Any) -> BaseException | None:
    if isinstance(sent, BaseException):
        return sent
    try:
        sent.get()
    except Exception as error:  # noqa: BLE001 - what it raises is what is measured
        return error
    return None


if __name__ == "__main__":
    logging.disable()
    serve(KafkaPythonAgent())
