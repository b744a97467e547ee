"""A Kafka broker for tests, in the process or beside it.

    from ottla.testing import Broker

    with Broker(topics={"orders": 3}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        ...
        assert [record.value for record in broker.records("orders")] == [b"1"]

For pytest there are the fixtures `kafka_broker` and `kafka`, which it finds by itself;
the latter is a `Scope`.
"""

from ottla.testing.broker import Broker
from ottla.testing.clock import BrokerClock
from ottla.testing.fault import FaultHandle
from ottla.testing.scope import Scope

__all__ = ["Broker", "BrokerClock", "FaultHandle", "Scope"]
