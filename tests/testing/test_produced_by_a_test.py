"""Records that a test appends itself, for whoever reads them."""

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from ottla.errors import KafkaError
from ottla.testing import Broker

PATIENCE_S = 30.0
WHERE = pytest.mark.parametrize("process", [False, True])


@WHERE
def test_a_consumer_that_waits_gets_what_a_test_appends(process: bool) -> None:
    with Broker(topics={"orders": 2}, process=process) as broker:
        consumer = confluent_kafka.Consumer(
            broker.client_config(group_id="readers", auto_offset_reset="earliest")
        )
        consumer.subscribe(["orders"])
        consumer.poll(0)
        broker.wait_for(group="readers", state="Stable", members=1)
        headers = [("trace", b"\x00\xff"), ("none", None), ("trace", b"")]
        places = [
            broker.produce(
                "orders", b"\x00\xff", key=b"k", partition=1, headers=headers, timestamp=17
            ),
            broker.produce("orders", partition=1),
        ]
        assert places == [0, 1]
        found: list[Any] = []
        for _ in range(int(PATIENCE_S * 10)):
            found += [message for message in [consumer.poll(0.1)] if message is not None]
            if len(found) == 2:
                break
        first, second = found
        assert (first.partition(), first.offset(), first.timestamp()[1]) == (1, 0, 17)
        assert (first.key(), first.value(), first.headers()) == (b"k", b"\x00\xff", headers)
        assert (second.key(), second.value(), second.headers()) == (None, None, None)
        assert second.timestamp()[1] == pytest.approx(broker.clock.now_ms, abs=60_000)
        consumer.close()


@WHERE
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"topic": "ordres"}, "UNKNOWN_TOPIC_OR_PARTITION", "there is no topic ordres"),
        ({"partition": 2}, "UNKNOWN_TOPIC_OR_PARTITION", "has no partition 2; it has 1"),
        ({"value": bytes(300)}, "MESSAGE_TOO_LARGE", "orders-0 refuses the record"),
        ({"timestamp": 1 << 52}, "INVALID_TIMESTAMP", "orders-0 refuses the record"),
    ],
)
def test_what_kafka_would_refuse_of_a_client_is_refused(
    arguments: dict[str, Any], error: str, said: str, process: bool
) -> None:
    with Broker(process=process) as broker:
        broker.create_topic("orders", max_message_bytes=200)
        with pytest.raises(KafkaError, match=said) as caught:
            broker.produce(**{"topic": "orders", **arguments})
        assert caught.value.error == error
        assert broker.records("orders") == []


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    with Broker() as broker:
        broker.create_topic("prices", cleanup_policy="compact")
        with pytest.raises(KafkaError, match="key"):
            broker.produce("prices", b"1")
        assert broker.produce("prices", b"1", key=b"a") == 0


def test_what_a_test_appends_is_kept(tmp_path: Path) -> None:
    with Broker(topics=["orders"], data=tmp_path / "data") as broker:
        broker.produce("orders", b"1")
    with Broker(data=tmp_path / "data") as broker:
        assert [record.value for record in broker.records("orders")] == [b"1"]
