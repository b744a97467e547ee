"""Who writes a topic: `python -m benches.client.writers NAME SERVERS RECORDS`.

Each runs in a process of its own and prints what it took: seconds by the clock, and of CPU. Every
record is of 100 bytes, without a key, and acknowledged by all replicas in the end.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

import numpy as np

TOPIC = "written"
VALUE = bytes(100)
PER_TURN = 10_000
PER_CALL = 100_000
LARGE_BATCH = 1 << 17

Writer = Callable[[str, int], None]


def ottla_send(servers: str, records: int) -> None:
    """`AsyncProducer.send`, a future a record."""
    from ottla.client import AsyncProducer

    async def main() -> None:
        async with AsyncProducer(bootstrap_servers=servers) as one:
            for _ in range(records // PER_TURN):
                sent = [await one.send(TOPIC, VALUE) for _ in range(PER_TURN)]
            await one.flush()
            assert sent[-1].done()

    asyncio.run(main())


def ottla_send_threads(servers: str, records: int) -> None:
    """`Producer.send`, a future a record."""
    from ottla.client import Producer

    with Producer(bootstrap_servers=servers) as one:
        for _ in range(records // PER_TURN):
            sent = [one.send(TOPIC, VALUE) for _ in range(PER_TURN)]
        one.flush()
        assert sent[-1].done()


def ottla_lists(servers: str, records: int) -> None:
    """`AsyncProducer.produce_many` of lists, batches of 128 KiB."""
    _ottla_many(servers, records, [VALUE] * PER_CALL)


def ottla_columns(servers: str, records: int) -> None:
    """`AsyncProducer.produce_many` of columns, batches of 128 KiB."""
    offsets = np.arange(PER_CALL + 1, dtype=np.int64) * len(VALUE)
    _ottla_many(servers, records, (offsets, np.zeros(PER_CALL * len(VALUE), np.uint8)))


def _ottla_many(servers: str, records: int, values: object) -> None:
    from ottla.client import AsyncProducer

    async def main() -> None:
        options = {"bootstrap_servers": servers, "batch_size": LARGE_BATCH}
        async with AsyncProducer(**options) as one:
            calls = [one.produce_many(TOPIC, values) for _ in range(records // PER_CALL)]
            for receipt in await asyncio.gather(*calls):
                receipt.raise_first()

    asyncio.run(main())


def aiokafka_send(servers: str, records: int) -> None:
    """`send` of aiokafka, a future a record."""
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        options = {"enable_idempotence": True, "linger_ms": 5}
        async with AIOKafkaProducer(bootstrap_servers=servers, **options) as one:
            for _ in range(records // PER_TURN):
                sent = [await one.send(TOPIC, VALUE) for _ in range(PER_TURN)]
            await one.flush()
            assert sent[-1].done()

    asyncio.run(main())


def confluent_produce(servers: str, records: int) -> None:
    """`produce` of confluent-kafka, a callback a record."""
    from confluent_kafka import Producer

    told = 0

    def on_delivery(error: object, _: object) -> None:
        nonlocal told
        assert error is None
        told += 1

    one = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
    for _ in range(records // PER_TURN):
        for _ in range(PER_TURN):
            one.produce(TOPIC, VALUE, on_delivery=on_delivery)
        while len(one) > 4 * PER_TURN:
            one.poll(0.01)
    one.flush()
    assert told == records


def kafka_python_send(servers: str, records: int) -> None:
    """`send` of kafka-python, a future a record."""
    from kafka import KafkaProducer

    one = KafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=5)
    for _ in range(records // PER_TURN):
        sent = [one.send(TOPIC, VALUE) for _ in range(PER_TURN)]
    one.flush()
    assert sent[-1].succeeded()
    one.close()


WRITERS: dict[str, Writer] = {
    one.__name__: one
    for one in (
        ottla_send,
        ottla_send_threads,
        ottla_lists,
        ottla_columns,
        aiokafka_send,
        confluent_produce,
        kafka_python_send,
    )
}


def main() -> None:
    """Write, and print what it took."""
    name, servers, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
    writer = WRITERS[name]
    writer(servers, PER_CALL)
    begun, cpu = time.perf_counter(), time.process_time()
    writer(servers, records)
    took = {
        "records": records,
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
    }
    print(json.dumps(took))


if __name__ == "__main__":
    main()
