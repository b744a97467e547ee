"""`make bench-kafka`: a topic of a broker by Spark's Kafka source, and its files by Ottla.

Before anything is timed, both have to give the same rows, by the digests of each partition.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from support.kafka_broker import Broker, broker, source_jars
from support.maven import MissingError

from benches.machine import demand_release
from benches.race import Times, race
from benches.spark import cases
from benches.spark.__main__ import keep, missing, place
from benches.spark.pages import write_section
from benches.spark.processes import cpu_seconds, cpu_seconds_below, jvm_of
from benches.worker import ROOT

TOPIC = "bench"
PARTITIONS = 6
# Of each five transactions, one is aborted.
A_TRANSACTION = 50_000
ABORTED = 5
A_BATCH = 1000
WHO = {"ottla": 'ottla, `format("ottla")`', "kafka": 'Spark\'s Kafka source, `format("kafka")`'}
LEVELS = ("read_uncommitted", "read_committed")

_SECTION = """`make bench-kafka`: a topic on one broker of Apache Kafka on the same machine, read by
Spark's own source, and the broker's files read by `format("ottla")` with `schema=kafka`. There are
{partitions} partitions, with values of 100 bytes, and of five transactions one was aborted. Both
gave the same rows, every column compared by digests of each partition, before they were timed: all
columns but headers, to a sink that drops them.

{cpu}, {cores} cores, Spark {spark}, Java {java}, Python {python}. Medians of {rounds} rounds in
turn. Other work on the machine: load average {load} when the session began, {load_in_the_end} in
the end, its own included.

| isolation level | who | records | seconds | CPU s | CPU s of the broker |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass
class Taken:
    """What a source takes for all records, in each round."""

    records: int
    wall: Times | None = None
    cpu_s: list[float] = field(default_factory=list)
    """Of the session: JVM, Python workers, driver."""
    broker_cpu_s: list[float] = field(default_factory=list)


async def _fill(servers: str, records: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    finally:
        await admin.close()
    for partition in range(PARTITIONS):
        producer = AIOKafkaProducer(
            bootstrap_servers=servers, transactional_id=f"bench-{partition}", max_batch_size=1 << 18
        )
        async with producer:
            for number in range(records // PARTITIONS // A_TRANSACTION):
                await _transact(producer, partition, number)


async def _transact(producer: AIOKafkaProducer, partition: int, number: int) -> None:
    chance = random.Random(partition * 1000 + number)
    values = [chance.randbytes(100) for _ in range(A_BATCH)]
    await producer.begin_transaction()
    for start in range(0, A_TRANSACTION, A_BATCH):
        batch = producer.create_batch()
        for index, value in enumerate(values):
            at = number * A_TRANSACTION + start + index
            taken = batch.append(
                timestamp=1_700_000_000_000 + at,
                key=b"%010d" % at,
                value=value,
                headers=[("trace", value[:8])] if index % 10 == 0 else [],
            )
            if taken is None:
                raise ValueError("a batch is too small for its records")
        await producer.send_batch(batch, TOPIC, partition=partition)
    if number % ABORTED == ABORTED - 1:
        await producer.abort_transaction()
    else:
        await producer.commit_transaction()


def frame(spark: Any, source: str, kafka: Broker, level: str, *, headers: bool = False) -> Any:
    """Return a topic as a job for Spark's Kafka source reads it, by that source or by Ottla."""
    reader = spark.read.format(source).options(
        **{
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "kafka.isolation.level": level,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
            "includeHeaders": str(headers).lower(),
        }
    )
    if source == "kafka":
        return reader.load()
    return reader.option("schema", "kafka").load(str(kafka.log_directory))


def digests(rows: Any) -> list[tuple[Any, ...]]:
    """Return of each partition how many records it has, between which offsets, and two digests.

    A row's hash is over all of its columns, its offset among them: so the order is held, too.
    """
    from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

    of_row = F.xxhash64(*rows.columns)
    found = rows.groupBy("topic", "partition").agg(
        F.count("*"),
        F.min("offset"),
        F.max("offset"),
        F.sum(of_row.cast("decimal(38,0)")),
        F.bit_xor(of_row),
    )
    return sorted(tuple(row) for row in found.collect())


def agree(spark: Any, kafka: Broker, level: str, expected: int) -> None:
    """Hold both sources against each other, every column of every record."""
    ours, theirs = (digests(frame(spark, who, kafka, level, headers=True)) for who in WHO)
    if ours != theirs or sum(row[2] for row in ours) != expected:
        raise cases.WrongAnswerError(f"{level}: {ours} by Ottla, {theirs} by Spark's source")


def measure(spark: Any, kafka: Broker, level: str, records: int, rounds: int) -> dict[str, Taken]:
    """Time both in turn: every column but headers, to a sink that drops them."""
    jvm = jvm_of(spark)
    taken = {who: Taken(records) for who in WHO}

    def turn(who: str) -> Callable[[], float]:
        def take() -> float:
            before = cpu_seconds(jvm), cpu_seconds_below(kafka.process_id)
            begin = time.perf_counter()
            frame(spark, who, kafka, level).write.format("noop").mode("overwrite").save()
            took = time.perf_counter() - begin
            taken[who].cpu_s.append(cpu_seconds(jvm) - before[0])
            taken[who].broker_cpu_s.append(cpu_seconds_below(kafka.process_id) - before[1])
            return took

        return take

    walls = race({who: turn(who) for who in WHO}, rounds)
    for who, wall in walls.items():
        # The first round only warms up.
        del taken[who].cpu_s[0], taken[who].broker_cpu_s[0]
        taken[who].wall = wall
    return taken


def section(written: Any) -> str:
    """Return what was measured, for the docs."""
    on = written["machine"]
    head = _SECTION.format(partitions=PARTITIONS, rounds=written["rounds"], **on)
    lines = head.splitlines()
    for level, found in written["kafka"].items():
        for who, each in found.items():
            times = (statistics.median(each[name]) for name in ("wall_s", "cpu_s", "broker_cpu_s"))
            cells = " | ".join(f"{seconds:.1f}" for seconds in times)
            lines.append(f"| `{level}` | {WHO[who]} | {each['records']:,} | {cells} |")
    faster = ", ".join(f"{ratio:.1f}× (`{level}`)" for level, ratio in written["ratios"].items())
    return "\n".join(
        [*lines, "", f"Ottla is {faster} as fast, by the median of the rounds' ratios.", ""]
    )


def main() -> None:
    """Start a broker, fill a topic, compare, measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benches.spark.kafka", description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    demand_release()
    if (why := missing()) is not None:
        sys.exit(f"not measured on Spark: {why}")
    target = ROOT / "target"
    target.mkdir(exist_ok=True)
    try:
        # Some hundred MB, which need not be on the disk of temporary files.
        with tempfile.TemporaryDirectory(dir=target, prefix="bench-kafka-") as home:
            written = _measured(Path(home), asked.records, asked.rounds)
    except MissingError as error:
        sys.exit(f"not measured beside a broker: {error}")
    print(section(written))
    keep(written, written["machine"])
    write_section(section(written))


def _measured(home: Path, records: int, rounds: int) -> Any:
    records -= records % (PARTITIONS * A_TRANSACTION * ABORTED)
    counts = dict(zip(LEVELS, (records, records * (ABORTED - 1) // ABORTED), strict=True))
    with broker(home) as kafka, cases.two_cores() as spark:
        for jar in source_jars(spark.version):
            spark.sql(f"ADD JAR '{jar}'")
        on = place(spark, cases.CORES)
        asyncio.run(_fill(kafka.bootstrap_servers, records))
        all_taken = {}
        for level, count in counts.items():
            agree(spark, kafka, level, count)
            print(f"{level}: the same {count:,} records", flush=True)
            all_taken[level] = measure(spark, kafka, level, count, rounds)
        on["load_in_the_end"] = place(spark, cases.CORES)["load"]
    ratios, found = {}, {}
    for level, taken in all_taken.items():
        walls = {who: each.wall for who, each in taken.items() if each.wall is not None}
        ratios[level] = walls["ottla"].faster_than(walls["kafka"])
        found[level] = {
            who: {
                "records": each.records,
                "wall_s": walls[who].seconds,
                "cpu_s": each.cpu_s,
                "broker_cpu_s": each.broker_cpu_s,
            }
            for who, each in taken.items()
        }
    return {"machine": on, "rounds": rounds, "kafka": found, "ratios": ratios}


if __name__ == "__main__":
    main()
