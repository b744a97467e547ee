"""Loads by confluent-kafka, as users have them."""

import statistics
import time

from confluent_kafka import Consumer, Producer, TopicPartition

_TIMEOUT_S = 120.0


def produce(address: str, topic: str, count: int, size: int) -> float:
    """Send so many records in batches, and return the seconds until all are acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 5,
            "acks": "all",
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    value = b"x" * size
    producer.list_topics(topic, timeout=_TIMEOUT_S)
    begin = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value, partition=0)
        if number % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(_TIMEOUT_S)
    took_s = time.perf_counter() - begin
    if left:
        raise TimeoutError(f"{left} of {count} records were not acknowledged")
    return took_s


def consume(address: str, topic: str, count: int) -> float:
    """Read so many records, and return the seconds from the first to the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 10 << 20,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    got, begin = 0, 0.0
    deadline = time.perf_counter() + _TIMEOUT_S
    while got < count:
        messages = consumer.consume(min(10_000, count - got), timeout=1.0)
        if messages and not got:
            begin = time.perf_counter()
        got += len(messages)
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{got} of {count} records came")
    took_s = time.perf_counter() - begin
    consumer.close()
    return took_s


def median_s(address: str, topic: str, count: int) -> float:
    """Return the median time from a record to its acknowledgement, one after the other."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    times = []
    for number in range(count + 20):
        begin = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.flush()
        if number >= 20:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)
