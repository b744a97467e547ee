"""Records that are synced when they have an age (`flush.ms`), by the broker's clock."""

import time
from pathlib import Path

import confluent_kafka
from ottla.testing import Broker

# Clients have the time of the machine.
AT_MS = int(time.time() * 1000)
PATIENCE_S = 30.0


def produce(broker: Broker, topic: str = "orders") -> None:
    client = confluent_kafka.Producer(broker.client_config(linger_ms=0))
    client.produce(topic, b"1")
    assert client.flush(PATIENCE_S) == 0


def recovery_point(broker: Broker, topic: str = "orders") -> int:
    """What is known to be on the disk of the first partition."""
    rows = broker.run(lambda core: core.plane.checkpoints())
    (found,) = [at for name, index, at, *_ in rows if (name, index) == (topic, 0)]
    return found


def wait_for(broker: Broker, offset: int) -> None:
    def is_synced(core: object) -> bool:
        rows = core.plane.checkpoints()  # type: ignore[attr-defined]
        return any(row[:3] == ("orders", 0, offset) for row in rows)

    broker.until(is_synced, timeout_s=PATIENCE_S)


def test_records_are_synced_when_the_oldest_is_so_old(tmp_path: Path) -> None:
    with Broker(data=tmp_path, frozen_at_ms=AT_MS) as broker:
        broker.create_topic("orders", flush_ms=700)
        broker.create_topic("others")
        # Nobody waits for it.
        produce(broker)
        produce(broker, "others")
        broker.clock.advance(seconds=0.4)
        produce(broker)
        broker.clock.advance(seconds=0.299)
        assert recovery_point(broker) == 0
        broker.clock.advance(seconds=0.001)
        wait_for(broker, 2)
        broker.clock.advance(seconds=5)
        produce(broker)
        broker.clock.advance(seconds=0.699)
        assert recovery_point(broker) == 2
        broker.clock.advance(seconds=0.001)
        wait_for(broker, 3)
        assert recovery_point(broker, "others") == 0


def test_the_age_may_be_a_setting_of_the_broker(tmp_path: Path) -> None:
    config = {"log.flush.interval.ms": 700}
    with Broker(["orders"], data=tmp_path, config=config, frozen_at_ms=AT_MS) as broker:
        produce(broker)
        broker.clock.advance(seconds=0.7)
        wait_for(broker, 1)
    # It is that of a topic that was there.
    with Broker(data=tmp_path, config=config, frozen_at_ms=AT_MS + 10_000) as broker:
        produce(broker)
        broker.clock.advance(seconds=0.7)
        wait_for(broker, 2)


def test_a_topic_may_be_deleted_before_its_records_are_so_old(tmp_path: Path) -> None:
    with Broker(data=tmp_path, frozen_at_ms=AT_MS) as broker:
        broker.create_topic("orders", flush_ms=700)
        produce(broker)
        broker.delete_topic("orders")
        broker.clock.advance(seconds=1)
        assert not broker.run(lambda core: dict(core.wrong))
