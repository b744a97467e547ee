"""Failures that need no fault, with Apache Kafka as the broker: the measure of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from benches.failures.scenarios import SCENARIOS, Stage
from benches.failures.scenarios.stage import TOPIC, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.testing import Broker

    from benches.failures.scenarios import Observed

KAFKA_RELEASE = "4.4.0"
WITHIN_S = 60
WITHOUT_FAULTS = (
    "invalid-record-plain",
    "invalid-record",
    "record-too-large",
    "invalid-record-transaction",
    "fenced-in-commit",
    "offset-out-of-range",
)


class Kafka:
    """As much of `ottla.testing.Broker` as these scenarios need, of a broker that runs already."""

    def __init__(self, servers: str) -> None:
        self.bootstrap_servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._topics: list[str] = []

    def create_topic(self, name: str, partitions: int, **configs: object) -> None:
        """Create a topic."""
        config = {key.replace("_", "."): str(value) for key, value in configs.items()}
        new = NewTopic(name, partitions, 1, config=config)
        for future in self._admin.create_topics([new]).values():
            future.result(WITHIN_S)
        self._topics.append(name)

    def stop(self) -> None:
        """Delete what was created."""
        for future in self._admin.delete_topics(self._topics).values():
            future.result(WITHIN_S)


class KafkaStage(Stage):
    """A stage whose broker is Apache Kafka."""

    def __init__(self, kind: str, servers: str) -> None:
        self._kafka = Kafka(servers)
        super().__init__(kind, "kafka")

    def _start(self) -> Broker:
        return cast("Broker", self._kafka)

    def values(self, topic: str = TOPIC) -> list[str]:
        """Return the values in the log of a topic."""
        return values_of(self._kafka.bootstrap_servers, topic, "read_uncommitted")

    def fill(self, values: Sequence[str], topic: str = TOPIC) -> None:
        """Append values, each in a batch of its own."""
        servers = self._kafka.bootstrap_servers
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0})
        for value in values:
            producer.produce(topic, value, "k", 0)
            producer.flush(WITHIN_S)


def observe_kafka(client: str, name: str, servers: str) -> Observed:
    """Return what a client does in a scenario with Apache Kafka."""
    stage = KafkaStage(client, servers)
    try:
        return SCENARIOS[name].run(stage)
    finally:
        stage.close()
