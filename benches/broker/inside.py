"""A broker in the process of a test, as a program of its own.

`python -m benches.broker.inside ours` or `mock` prints, as JSON, milliseconds to the first
acknowledged record of the first broker and of those after it, and the median microseconds of a
produced record.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module

from benches.broker.raw import RawClient, produce_frame

_BROKERS, _RECORDS = 9, 400
_TOPIC = "orders"


@contextmanager
def _ours() -> Iterator[str]:
    import ottla.testing

    with ottla.testing.Broker(topics=[_TOPIC]) as broker:
        yield broker.bootstrap_servers


@contextmanager
def _mock() -> Iterator[str]:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": "unused:1", "test.mock.num.brokers": 1, "log_level": 0}
    )
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"


def _first_ms(broker: Callable[[], AbstractContextManager[str]], frame: bytes) -> float:
    begin = time.perf_counter()
    with broker() as address, _client(address) as client:
        client.api_versions()
        client.metadata(_TOPIC)
        client.ask(frame)
        return (time.perf_counter() - begin) * 1000


def _client(address: str) -> RawClient:
    host, _, port = address.rpartition(":")
    return RawClient((host, int(port)))


def main() -> None:
    """Measure one of the two."""
    broker = {"ours": _ours, "mock": _mock}[sys.argv[1]]
    for module in ("confluent_kafka", "ottla.testing", "ottla.testing.broker"):
        import_module(module)
    frame = produce_frame(_TOPIC, [0])
    first, *others = (_first_ms(broker, frame) for _ in range(_BROKERS))
    with broker() as address, _client(address) as client:
        client.metadata(_TOPIC)
        median_us = client.median_s(frame, _RECORDS) * 1e6
    print(json.dumps({"first_ms": first, "others_ms": statistics.median(others), "us": median_us}))


if __name__ == "__main__":
    main()
