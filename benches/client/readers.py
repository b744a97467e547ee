"""Who reads a topic to its end: `python -m benches.client.readers NAME SERVERS RECORDS PARTITIONS`.

Each runs in a process of its own and prints what it took: seconds by the clock, and of CPU.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

TOPIC = "read"
PATIENCE_MS = 10_000

Reader = Callable[[str, int, int], int]


def _places(partitions: int) -> list[tuple[str, int]]:
    return [(TOPIC, number) for number in range(partitions)]


def ottla_columns(servers: str, records: int, partitions: int) -> int:
    """`AsyncConsumer.poll_columns`."""
    from ottla.client import AsyncConsumer

    async def main() -> int:
        found = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as one:
            one.assign(_places(partitions))
            while found < records:
                found += len(await one.poll_columns(PATIENCE_MS))
        return found

    return asyncio.run(main())


def ottla_columns_threads(servers: str, records: int, partitions: int) -> int:
    """`Consumer.poll_columns`."""
    from ottla.client import Consumer

    found = 0
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as one:
        one.assign(_places(partitions))
        while found < records:
            found += len(one.poll_columns(PATIENCE_MS))
    return found


def ottla_poll(servers: str, records: int, partitions: int) -> int:
    """`AsyncConsumer.poll`, 500 records at a time."""
    from ottla.client import AsyncConsumer

    async def main() -> int:
        found = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as one:
            one.assign(_places(partitions))
            while found < records:
                found += len(await one.poll(PATIENCE_MS))
        return found

    return asyncio.run(main())


def ottla_each(servers: str, records: int, partitions: int) -> int:
    """`async for record in AsyncConsumer`."""
    from ottla.client import AsyncConsumer

    async def main() -> int:
        found = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as one:
            one.assign(_places(partitions))
            async for _ in one:
                found += 1
                if found == records:
                    break
        return found

    return asyncio.run(main())


def aiokafka_poll(servers: str, records: int, partitions: int) -> int:
    """`AIOKafkaConsumer.getmany`, 500 records at a time."""
    import aiokafka

    async def main() -> int:
        found = 0
        one = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await one.start()
        one.assign([aiokafka.TopicPartition(*place) for place in _places(partitions)])
        while found < records:
            taken = await one.getmany(timeout_ms=PATIENCE_MS, max_records=500)
            found += sum(map(len, taken.values()))
        await one.stop()
        return found

    return asyncio.run(main())


def aiokafka_each(servers: str, records: int, partitions: int) -> int:
    """`async for record in AIOKafkaConsumer`."""
    import aiokafka

    async def main() -> int:
        found = 0
        one = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await one.start()
        one.assign([aiokafka.TopicPartition(*place) for place in _places(partitions)])
        async for _ in one:
            found += 1
            if found == records:
                break
        await one.stop()
        return found

    return asyncio.run(main())


def confluent_batches(servers: str, records: int, partitions: int) -> int:
    """`confluent_kafka.Consumer.consume`, 10,000 records at a time, without touching one."""
    import confluent_kafka

    found = 0
    one = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # Its own second of waiting where its queue was full makes it seven times slower here.
            "fetch.queue.backoff.ms": 1,
        }
    )
    one.assign([confluent_kafka.TopicPartition(*place, 0) for place in _places(partitions)])
    while found < records:
        found += len(one.consume(10_000, PATIENCE_MS / 1000))
    one.close()
    return found


def kafka_python_poll(servers: str, records: int, partitions: int) -> int:
    """`kafka.KafkaConsumer.poll`, 500 records at a time."""
    import kafka

    found = 0
    one = kafka.KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    one.assign([kafka.TopicPartition(*place) for place in _places(partitions)])
    while found < records:
        found += sum(map(len, one.poll(PATIENCE_MS, max_records=500).values()))
    one.close()
    return found


READERS: dict[str, Reader] = {
    each.__name__: each
    for each in (
        ottla_columns,
        ottla_columns_threads,
        ottla_poll,
        ottla_each,
        aiokafka_poll,
        aiokafka_each,
        confluent_batches,
        kafka_python_poll,
    )
}


def _main(name: str, servers: str, records: str, partitions: str) -> None:
    read = READERS[name]
    # What a process loads at first is not what is measured.
    read(servers, 1, int(partitions))
    begun, worked = time.perf_counter(), time.process_time()
    found = read(servers, int(records), int(partitions))
    took = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - worked}
    print(json.dumps({"records": found, **took}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
