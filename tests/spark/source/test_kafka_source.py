"""Spark's Kafka source from a real broker, and Ottla from its files, read the same records."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import ottla
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from support.kafka_broker import Broker, broker, source_jars
from support.maven import MissingError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Isolation = Literal["read_uncommitted", "read_committed"]
# Partition, offset, timestamp, key, value, headers.
Row = tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

# The least that a broker takes since Kafka 4.0.
SEGMENT_BYTES = 1 << 20
TOPICS = {
    "orders": (3, {"segment.bytes": str(SEGMENT_BYTES)}),
    "clicks": (1, {"message.timestamp.type": "LogAppendTime"}),
}
CODECS = (None, "gzip", "snappy", "lz4", "zstd")


async def _send(
    servers: str, topic: str, partition: int, *, compression: str | None = None
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, compression_type=compression)
    chance = random.Random(compression or "none")
    async with producer:
        # As a batch, since a record alone has to have a key or a value.
        batch = producer.create_batch()
        for number in range(120):
            batch.append(
                timestamp=1_700_000_000_000 - number % 7 if topic == "orders" else None,
                key=(None, b"", b"key-%d" % number)[number // 3 % 3],
                value=(None, b"", chance.randbytes(number))[number % 3],
                headers=[("trace", b"\0\xff"), ("none", None), ("é", b"")][: number % 4],
            )
        await (await producer.send_batch(batch, topic, partition=partition))


async def _transact(
    servers: str, partition: int, name: str, *, end: Literal["commit", "abort", "none"]
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, transactional_id=name, transaction_timeout_ms=600_000
    )
    chance = random.Random(name)
    async with producer:
        await producer.begin_transaction()
        for number in range(40):
            await producer.send(
                "orders", chance.randbytes(10_000), key=b"%d" % number, partition=partition
            )
        await producer.flush()
        if end == "commit":
            await producer.commit_transaction()
        elif end == "abort":
            await producer.abort_transaction()


async def _fill(servers: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics(
            [NewTopic(name, count, 1, topic_configs=c) for name, (count, c) in TOPICS.items()]
        )
    finally:
        await admin.close()
    for codec in CODECS:
        await _send(servers, "orders", 0, compression=codec)
        await _send(servers, "clicks", 0, compression=codec)
    ends: tuple[Literal["commit", "abort"], ...] = ("commit", "abort") * 4
    for number, end in enumerate(ends):
        await _transact(servers, 1, f"producer-{number % 4}", end=end)
        await _send(servers, "orders", 1)
    for partition in (1, 2):
        await _transact(servers, partition, f"unfinished-{partition}", end="none")
        await _transact(servers, partition, "behind", end="commit")
        await _send(servers, "orders", partition)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker with records of every kind."""
    try:
        with broker(tmp_path_factory.mktemp("kafka")) as running:
            asyncio.run(_fill(running.bootstrap_servers))
            yield running
    except MissingError as error:
        pytest.skip(f"no broker of Kafka: {error}")


@pytest.fixture
def reading_spark(spark: Any) -> Any:
    """Return the session, able to read from Kafka."""
    try:
        jars = source_jars(spark.version)
    except MissingError as error:
        pytest.skip(f"no Kafka source for Spark: {error}")
    added = {row[0].rpartition("/")[2] for row in spark.sql("LIST JARS").collect()}
    for jar in jars:
        if jar.name not in added:
            spark.sql(f"ADD JAR '{jar}'")
    return spark


def options_of(kafka: Broker, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }


def reader_of(spark: Any, source: str, kafka: Broker, topic: str, isolation: Isolation) -> Any:
    """Return a reader as a job for Spark's Kafka source has it, of that source or another."""
    return (
        spark.read.format(source)
        .options(**options_of(kafka, topic))
        .option("kafka.isolation.level", isolation)
        .option("includeHeaders", "true")
    )


def read_by_spark(spark: Any, kafka: Broker, topic: str, isolation: Isolation) -> list[Row]:
    """Return every record of a topic as Spark's source reads it, by partition and offset."""
    frame = reader_of(spark, "kafka", kafka, topic, isolation).load()
    columns = ("partition", "offset", "unix_millis(timestamp) AS time", "key", "value", "headers")
    rows = frame.selectExpr(*columns).orderBy("partition", "offset").collect()
    return [
        (
            row.partition,
            row.offset,
            row.time,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple(
                (header.key, None if header.value is None else bytes(header.value))
                for header in row.headers or ()
            ),
        )
        for row in rows
    ]


def read_by_ottla(directory: Path, partition: int, isolation: Isolation) -> list[Row]:
    """Return the records of a partition as its segments hold them."""
    return [
        (partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for r in ottla.read_partition(directory, isolation=isolation)
    ]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", TOPICS)
def test_segments_hold_exactly_the_records_that_sparks_kafka_source_reads(
    reading_spark: Any, kafka: Broker, topic: str, isolation: Isolation
) -> None:
    partitions, _ = TOPICS[topic]
    ours = [
        row
        for number in range(partitions)
        for row in read_by_ottla(kafka.partition(topic, number), number, isolation)
    ]
    assert ours == read_by_spark(reading_spark, kafka, topic, isolation)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", TOPICS)
def test_a_job_for_sparks_kafka_source_runs_over_the_files_by_another_format_and_path(
    reading_spark: Any, kafka: Broker, topic: str, isolation: Isolation
) -> None:
    theirs = reader_of(reading_spark, "kafka", kafka, topic, isolation).load()
    ours = (
        reader_of(reading_spark, "ottla", kafka, topic, isolation)
        .option("schema", "kafka")
        .load(str(kafka.log_directory))
    )
    assert [(f.name, f.dataType) for f in ours.schema] == [
        (f.name, f.dataType) for f in theirs.schema
    ]
    found, expected = (frame.orderBy("partition", "offset").collect() for frame in (ours, theirs))
    assert found == expected
    # Without any headers both have null, and neither has an empty array.
    assert {row.headers is None for row in expected} == {True, False}
    assert all(row.headers != [] for row in expected)


@pytest.mark.parametrize("value", [None, "false", "TRUE"])
def test_headers_are_there_when_they_are_for_sparks_kafka_source(
    reading_spark: Any, kafka: Broker, value: str | None
) -> None:
    columns = []
    for name in ("kafka", "ottla"):
        reader = reading_spark.read.format(name).options(**options_of(kafka, "clicks"))
        if name == "ottla":
            reader = reader.option("schema", "kafka").option("path", str(kafka.log_directory))
        if value is not None:
            reader = reader.option("includeHeaders", value)
        columns.append(reader.load().columns)
    assert columns[0] == columns[1]


@pytest.mark.parametrize("topic", TOPICS)
def test_the_data_source_gives_the_records_that_sparks_kafka_source_reads(
    reading_spark: Any, kafka: Broker, topic: str
) -> None:
    frame = reading_spark.read.format("ottla").option("topics", topic)
    columns = ("partition", "offset", "timestamp AS time", "key", "value")
    ours = (
        frame.load(str(kafka.log_directory))
        .where("control IS NULL")
        .selectExpr(*columns)
        .orderBy("partition", "offset")
        .collect()
    )
    theirs = read_by_spark(reading_spark, kafka, topic, "read_uncommitted")
    assert [tuple(row) for row in ours] == [row[:5] for row in theirs]


def test_the_segments_hold_what_the_comparison_is_about(kafka: Broker) -> None:
    transactional = kafka.partition("orders", 1)
    assert len(list(transactional.glob("*.log"))) >= 4
    committed = ottla.read_partition(transactional, isolation="read_committed")
    assert len(list(committed)) < len(list(ottla.read_partition(transactional)))
    assert committed.stopped_by is not None
    codecs = [file["codecs"] for file in ottla.audit(kafka.partition("orders", 0)).files]
    assert {codec for named in codecs for codec in named or ()} == {
        *("none", "gzip", "snappy", "lz4", "zstd")
    }
