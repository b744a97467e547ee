"""What a test of its own topic costs, beside a record that is sent and acknowledged."""

import time
from collections.abc import Callable

import confluent_kafka
import pytest
from ottla.testing import Broker
from ottla.testing.scope import Scope

pytestmark = pytest.mark.measures

ROUNDS = 5
TESTS = 40
MAX_RATIO = 12
"""Three answers of the broker for each: where the topic is, the record, and what is deleted."""


def seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    for _ in range(TESTS):
        work()
    return time.perf_counter() - begun


def test_a_topic_of_ones_own_costs_some_round_trips_and_no_more() -> None:
    with Broker(topics=["shared"]) as broker:
        client = confluent_kafka.Producer(broker.client_config(linger_ms=0))

        def send(topic: str) -> None:
            client.produce(topic, b"1")
            assert client.flush(30) == 0

        def test_of_its_own() -> None:
            with Scope(broker) as kafka:
                topic = kafka.topic("orders")
                send(topic)
                assert len(kafka.records(topic)) == 1

        send("shared")
        pairs = [(seconds(test_of_its_own), seconds(lambda: send("shared"))) for _ in range(ROUNDS)]
        assert min(own / shared for own, shared in pairs) < MAX_RATIO, pairs
        assert broker.topics == {"shared": 1}
