"""Judge record sets of an RDD, in jobs that have no frames: `rdd.mapPartitions` and a function.

The record sets are bytes, as a proxy in front of brokers stores them, or rows that have more than
the bytes. Here they are the batches of a segment, one of them damaged. Spark Connect has no RDDs;
`ottla.spark.validate` works there, too, and is faster.

python examples/spark_partitions.py
"""

from pathlib import Path
from typing import Any

import ottla
import ottla.spark
from pyspark.sql import Row

ORDERS = Path(__file__).parent / "data" / "orders-0" / "00000000000000000000.log"
NOW_MS = 1_800_000_000_000
DAMAGED = 7


def capture() -> list[bytes]:
    """Return the batches of a segment as produce requests have them: their offsets begin at 0."""
    log = ORDERS.read_bytes()
    sets = []
    for batch in ottla.read_batches(log):
        data = bytearray(log[batch.position : batch.position + batch.size])
        data[:8] = bytes(8)
        sets.append(data)
    sets[DAMAGED][-1] ^= 0x01
    return [bytes(data) for data in sets]


def count_by_error(verdicts: Any) -> str:
    """Return how many rows have each error."""
    counts = sorted(verdicts.map(lambda row: row.error_name).countByValue().items())
    return ", ".join(f"{name} {count}" for name, count in counts)


def main() -> None:
    """Judge bytes, then rows, then make a frame of the verdicts."""
    spark = ottla.spark.session("local[2]", spark__ui__enabled=False)
    context = spark.sparkContext
    sets = capture()

    # Bytes: every set is judged by the same rules, at the same time.
    judge = ottla.spark.validate_partition(now_ms=NOW_MS)
    verdicts = context.parallelize(sets, 4).mapPartitions(judge)
    print(f"bytes: {count_by_error(verdicts)}")

    # Rows: their topic chooses the configuration, their own time is that of the leader.
    rows = [
        Row(topic=("orders", "customers")[number % 2], captured_ms=NOW_MS + number, records=data)
        for number, data in enumerate(sets)
    ]
    topics = {
        "orders": ottla.TopicConfig(),
        "customers": ottla.TopicConfig(max_message_bytes=600),
    }
    judge = ottla.spark.validate_partition(topics, now_ms="captured_ms", column="records")
    judged = context.parallelize(rows, 4).mapPartitions(judge)
    for topic in topics:
        of_topic = judged.filter(lambda row, topic=topic: row.topic == topic)
        print(f"{topic}: {count_by_error(of_topic)}")

    # The verdicts of bytes are a frame by their schema, which Spark need not guess.
    frame = verdicts.toDF(ottla.spark.verdict_schema())
    refused = frame.where("not accepted").select("error_name", "error_message").first()
    print(f"{frame.where('accepted').count()} accepted, the first refused is {refused.error_name}:")
    print(refused.error_message)
    spark.stop()


if __name__ == "__main__":
    main()
