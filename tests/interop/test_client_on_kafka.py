"""The client with Apache Kafka itself, the newest release and 2.8. Needs Java and Maven."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ottla.client import Admin, Consumer, Producer, TopicPartition
from support.content import Block, Digest, block, runs
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, kafka_on

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# `make client-on-kafka` asks for more.
MEGABYTES = int(os.environ.get("OTTLA_KAFKA_MEGABYTES", "4"))
PATIENCE_S = 120


@pytest.fixture(scope="module", params=RELEASES_OF_CLIENTS)
def apache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningKafka]:
    """A broker of each release."""
    home = tmp_path_factory.mktemp("kafka")
    with kafka_on(home, request.param, is_formatted=False) as servers:
        yield RunningKafka(servers, request.param)


def tell(what: str, size_bytes: int, since_s: float) -> None:
    """Writes a rate, for who asked for a run of full size."""
    took_s = time.monotonic() - since_s
    size_mb = size_bytes / 1e6
    sys.stdout.write(f"{what}: {size_mb:.0f} MB in {took_s:.1f} s, {size_mb / took_s:.0f} MB/s\n")


def write_columns(producer: Producer, topic: str, rows: Block) -> np.ndarray[Any, Any]:
    receipt = producer.produce_many(
        topic, rows.values, rows.keys, partition=0, timestamps_ms=rows.timestamps_ms
    )
    receipt.raise_first()
    return receipt.offsets


def write_one_by_one(producer: Producer, topic: str, rows: Block) -> np.ndarray[Any, Any]:
    futures = [
        producer.send(topic, value, key, partition=1, timestamp_ms=timestamp_ms)
        for key, value, timestamp_ms in rows.rows()
    ]
    return np.array([one.result(PATIENCE_S).offset for one in futures])


def write(servers: str, topic: str, codec: str) -> list[Digest]:
    """Writes as many bytes as are asked for, half as columns and half one by one."""
    written = [Digest(), Digest()]
    with Producer(
        bootstrap_servers=servers, compression_type=codec, batch_size=1 << 17
    ) as producer:
        for partition, call in enumerate((write_columns, write_one_by_one)):
            begins_s, number = time.monotonic(), 0
            digest = written[partition]
            while digest.size_bytes < MEGABYTES * 500_000:
                rows = block(2 * number + partition)
                offsets = call(producer, topic, rows)
                assert offsets.tolist() == [*range(digest.count, digest.count + len(offsets))]
                digest.add(rows)
                number += 1
            tell(f"{codec}, {call.__name__}", digest.size_bytes, begins_s)
    return written


def read(
    servers: str, topic: str, codec: str, take: Callable[[Consumer, list[Digest]], int]
) -> list[Digest]:
    """Reads both partitions to their ends."""
    found = [Digest(), Digest()]
    partitions = [TopicPartition(topic, number) for number in range(2)]
    begins_s = time.monotonic()
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        left = sum(consumer.end_offsets(*partitions).values())
        while left:
            count = take(consumer, found)
            assert count, f"{left} records do not come"
            left -= count
    tell(f"{codec}, {take.__name__}", sum(one.size_bytes for one in found), begins_s)
    return found


def read_columns(consumer: Consumer, found: list[Digest]) -> int:
    columns = consumer.poll_columns(PATIENCE_S * 1000)
    for partition, offsets, rows in runs(columns):
        first = found[partition].count
        assert np.array_equal(offsets, np.arange(first, first + len(offsets)))
        found[partition].add(rows)
    return len(columns)


def read_objects(consumer: Consumer, found: list[Digest]) -> int:
    records = consumer.poll(PATIENCE_S * 1000, max_records=5000)
    for partition, digest in enumerate(found):
        chosen = [one for one in records if one.partition == partition]
        first = digest.count
        assert [one.offset for one in chosen] == [*range(first, first + len(chosen))]
        digest.add_records(chosen)
    return len(records)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_in_each_codec_comes_back(apache: RunningKafka, codec: str) -> None:
    if codec == "zstd" and apache.release == "1.1.1":
        pytest.skip("Kafka has zstd since 2.1")
    topic = f"codec-{codec}"
    apache.create(topic, 2)
    written = write(apache.servers, topic, codec)
    assert all(one.size_bytes for one in written)
    assert read(apache.servers, topic, codec, read_columns) == written
    assert read(apache.servers, topic, codec, read_objects) == written
    with Admin(bootstrap_servers=apache.servers) as admin:
        admin.delete_topics([topic]).check()
