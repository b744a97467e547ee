"""What a reader of committed records sees at Apache Kafka.

Needs Java and Maven.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from ottla.client import Consumer, Producer, ProducerFencedError, TopicPartition
from support.content import listed
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, kafka_on

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.slow

WITHIN_MS = 60_000
PRODUCERS = 3
TRANSACTIONS = 60


@pytest.fixture(scope="module", params=RELEASES_OF_CLIENTS)
def apache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningKafka]:
    """A broker of each release."""
    home = tmp_path_factory.mktemp("kafka")
    with kafka_on(home, request.param, is_formatted=False) as servers:
        yield RunningKafka(servers, request.param)


def committed_values(servers: str, topic: str, count: int, *, as_columns: bool) -> list[bytes]:
    """As many as are to come, and what comes behind them."""
    found: list[bytes] = []
    with Consumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def take(timeout_ms: int) -> list[bytes]:
            if as_columns:
                return listed(consumer.poll_columns(timeout_ms).value[:2])
            return [one.value or b"" for one in consumer.poll(timeout_ms)]

        # A transaction that is committed can be read a moment later.
        while len(found) < count and (values := take(WITHIN_MS)):
            found += values
        return found + take(200)


def test_transactions_beside_each_other_are_read_whole_or_not_at_all(
    apache: RunningKafka,
) -> None:
    random = Random(apache.release)
    apache.create("beside")
    producers = [
        Producer(bootstrap_servers=apache.servers, transactional_id=f"beside-{number}")
        for number in range(PRODUCERS)
    ]
    for one in producers:
        one.init_transactions()
    written: dict[Producer, list[bytes]] = {}
    committed: list[bytes] = []
    for number in range(TRANSACTIONS * 3):
        producer = random.choice(producers)
        if producer not in written:
            producer.begin_transaction()
            written[producer] = []
        values = [b"%d-%d" % (number, row) for row in range(random.randrange(1, 40))]
        producer.produce_many("beside", values, partition=0).raise_first()
        written[producer] += values
        if random.random() < 0.4:
            values = written.pop(producer)
            if random.random() < 0.4:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                committed += values
    for producer, values in written.items():
        producer.commit_transaction()
        committed += values
    for as_columns in (False, True):
        found = committed_values(apache.servers, "beside", len(committed), as_columns=as_columns)
        assert len(found) == len({*found})
        assert sorted(found) == sorted(committed)
    for one in producers:
        one.close()


def test_a_second_producer_of_an_id_ends_what_the_first_has_open(apache: RunningKafka) -> None:
    apache.create("fenced")
    options = {"bootstrap_servers": apache.servers, "transactional_id": "fenced"}
    with Producer(**options) as first, Producer(**options) as second:
        first.init_transactions()
        first.begin_transaction()
        first.send("fenced", b"open", partition=0).result(60)
        second.init_transactions()
        second.begin_transaction()
        second.send("fenced", b"committed", partition=0).result(60)
        second.commit_transaction()
        with pytest.raises(ProducerFencedError):
            first.commit_transaction()
    found = committed_values(apache.servers, "fenced", 1, as_columns=False)
    assert found == [b"committed"]
