"""Compaction of logs in a directory: by the worker, and remembered over a restart."""

from pathlib import Path

import ottla
from ottla.broker.broker import Broker as Engine
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.testing import Broker
from support.wire_client import WireClient

PRICES = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
NEWEST = [(b"b", b"2"), (b"a", b"3")]


def produce(engine: Engine) -> None:
    batch = ottla.build_batch([ottla.NewRecord(key, value) for key, value in PRICES])
    topic = TopicProduceData(
        name="prices", partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    answer = WireClient(engine).ask(ProduceRequest(acks=-1, topic_data=[topic]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def prices(broker: Broker) -> list[tuple[bytes, bytes]]:
    records = broker.records("prices")
    return [(bytes(each.key or b""), bytes(each.value or b"")) for each in records]


def test_a_compacted_log_is_so_after_a_restart_and_the_cleaner_goes_on_from_there(
    tmp_path: Path,
) -> None:
    data = tmp_path / "kafka"
    with Broker(data=data) as broker:
        broker.create_topic("prices", cleanup_policy="compact")
        broker.run(produce)
        assert prices(broker) == PRICES
        broker.compact("prices")
        assert prices(broker) == NEWEST
        # Before any stop: an audit behind a crash has to know where gaps come from.
        assert "prices 0 3" in (data / "cleaner-offset-checkpoint").read_text().splitlines()
    assert "prices 0 3" in (data / "cleaner-offset-checkpoint").read_text().splitlines()
    with Broker(data=data) as broker:
        assert prices(broker) == NEWEST
        assert ("prices", 0, 3) in broker.run(lambda engine: engine.plane.cleaner_offsets())
        assert broker.audit().exit_code == 0
