"""confluent-kafka as an agent."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition

from benches.failures.agents.agent import LINGER_MS, Agent, Options, Record, serve


class ConfluentAgent(Agent):
    """Errors are told by the names of their codes, with the flags that a program can ask."""

    version = f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})"

    def describe(self, error: BaseException) -> str:
        """Return the name of the code, with the flags."""
        found = error.args[0] if isinstance(error, KafkaException) else None
        if not isinstance(found, confluent_kafka.KafkaError):
            return type(error).__name__
        flags = [
            flag
            for flag, is_set in (
                ("fatal", found.fatal()),
                ("retriable", found.retriable()),
                ("abort required", found.txn_requires_abort()),
            )
            if is_set
        ]
        return " ".join([found.name(), *([f"({', '.join(flags)})"] if flags else [])])

    def producer(self, options: Options) -> Mapping[str, object]:
        """Make the producer."""
        settings: dict[str, Any] = {
            "enable.idempotence": options.is_idempotent,
            "acks": "all",
            "delivery.timeout.ms": options.timeout_ms,
            "socket.timeout.ms": options.timeout_ms // 2,
            "linger.ms": LINGER_MS,
        }
        if options.transactional_id:
            settings["transactional.id"] = options.transactional_id
            settings["transaction.timeout.ms"] = 60_000
        self._timeout_s = options.timeout_ms / 1000
        self._producer = confluent_kafka.Producer(_quiet(options) | settings)
        return settings

    def send(self, records: Sequence[Record]) -> list[BaseException | None]:
        """Send records, and wait for their callbacks."""
        told: dict[int, BaseException | None] = {}

        def note(index: int, error: Any) -> None:
            told[index] = None if error is None else KafkaException(error)

        for index, record in enumerate(records):
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    0,
                    on_delivery=lambda error, _, index=index: note(index, error),
                )
            except KafkaException as error:
                told[index] = error
        while len(told) < len(records):
            self._producer.poll(0.1)
        return [told[index] for index in range(len(records))]

    def init(self) -> None:
        """Initialise transactions."""
        self._producer.init_transactions(self._timeout_s)

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def commit(self) -> None:
        """Commit the transaction."""
        self._producer.commit_transaction(self._timeout_s)

    def abort(self) -> None:
        """Abort the transaction."""
        self._producer.abort_transaction(self._timeout_s)

    def offsets(self, topic: str, offset: int) -> None:
        """Commit an offset with the transaction."""
        self._producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], self._consumer.consumer_group_metadata()
        )

    def consumer(self, options: Options) -> Mapping[str, object]:
        """Make the consumer."""
        settings = {
            "group.id": options.group or "unused",
            "auto.offset.reset": "error" if options.reset == "none" else options.reset,
            "isolation.level": options.isolation,
            "enable.auto.commit": False,
            "check.crcs": True,
        }
        self._consumer = confluent_kafka.Consumer(_quiet(options) | settings)
        return settings

    def assign(self, topic: str, offset: int) -> None:
        """Have the consumer read partition 0."""
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def subscribe(self, topic: str) -> None:
        """Have the consumer read as a member."""
        self._consumer.subscribe([topic])

    def poll(self, within_s: float) -> list[bytes]:
        """Return a value, or raise the error that comes in its place."""
        message = self._consumer.poll(within_s)
        if message is None:
            return []
        if message.error() is not None:
            raise KafkaException(message.error())
        return [message.value()]

    def commit_positions(self) -> None:
        """Commit what was read."""
        self._consumer.commit(asynchronous=False)


def _quiet(options: Options) -> dict[str, Any]:
    # Without the callback, a fatal error comes from `poll` as well.
    return {
        "bootstrap.servers": options.servers,
        "log_level": 0,
        "error_cb": lambda _: None,
    }


if __name__ == "__main__":
    serve(ConfluentAgent())
