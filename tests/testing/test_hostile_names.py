"""What strangers call themselves, in what a person reads of a test that has failed."""

from typing import Any

import confluent_kafka
import pytest
from ottla.broker.journal import RequestEntry
from ottla.errors import KafkaError
from ottla.testing import Broker
from ottla.testing.request_lines import request_lines

EVIL = "a\x1b[2Jb\nready\u202e"


def test_no_client_id_forges_a_line_of_requests_or_commands_a_terminal() -> None:
    entry = RequestEntry(1250, "Produce", 9, EVIL, "127.0.0.1", "librdkafka", "2.4", ())
    (line,) = request_lines([entry], 1000, 20)
    assert line.isprintable()
    assert "a\\x1b[2Jb\\x0aready" in line


def test_no_name_of_a_group_or_transaction_commands_a_terminal_by_an_error() -> None:
    with Broker(topics=["orders"]) as broker:
        consumer = confluent_kafka.Consumer(broker.client_config(group_id=EVIL))
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition("orders", 0, 1)], asynchronous=False
        )
        consumer.close()
        producer = confluent_kafka.Producer(broker.client_config(transactional_id=EVIL))
        producer.init_transactions(10)
        assert EVIL in broker.groups
        assert EVIL in broker.transactions
        works: tuple[Any, ...] = (
            lambda: broker.expire(group="readers"),
            lambda: broker.wait_for(group="readers", members=1, timeout_s=0.01),
            lambda: broker.wait_for(group=EVIL, members=1, timeout_s=0.01),
            lambda: broker.wait_for(transactional_id="b", state="Ongoing", timeout_s=0.01),
            lambda: broker.wait_for(transactional_id=EVIL, state="Ongoing", timeout_s=0.01),
        )
        for work in works:
            with pytest.raises((KafkaError, TimeoutError)) as caught:
                work()
            assert str(caught.value).isprintable()
            assert "a\\x1b[2Jb\\x0aready" in str(caught.value)
