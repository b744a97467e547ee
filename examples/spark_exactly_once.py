"""Micro-batches of a Spark stream, each written to Kafka exactly once, also when it is repeated."""

# %% A broker to write to; a cluster of yours has its own addresses.
import tempfile
from pathlib import Path

import ottla.spark
import ottla.testing
from ottla.client import (
    Consumer,
    GroupMetadata,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
    run_transaction,
)
from pyspark.sql import DataFrame

LOG = Path(__file__).parent / "data" / "orders-0"
WRITER = "orders-writer"
LAST_BATCH = TopicPartition("orders", 0)

broker = ottla.testing.Broker(topics=["orders"]).start()
servers = broker.bootstrap_servers
producer = Producer(bootstrap_servers=servers, transactional_id=WRITER)
producer.init_transactions()


# %% The number of the batch is committed with its records: as an offset of a group of the writer's.
def batches_written() -> int:
    """Return how many micro-batches are in Kafka."""
    with Consumer(bootstrap_servers=servers, group_id=WRITER) as consumer:
        committed = consumer.committed(LAST_BATCH)
    return committed[LAST_BATCH].offset if LAST_BATCH in committed else 0


def write(batch: DataFrame, batch_id: int) -> None:
    """Write a micro-batch, unless it is written already."""
    if batch_id < batches_written():
        print(f"batch {batch_id} is there already")
        return

    def body() -> None:
        for row in batch.select("key", "value").toLocalIterator(prefetchPartitions=True):
            producer.send("orders", row.value, key=row.key)
        producer.send_offsets_to_transaction(
            {LAST_BATCH: OffsetAndMetadata(batch_id + 1)}, GroupMetadata(WRITER)
        )

    if not run_transaction(producer, None, body):
        raise RuntimeError(f"batch {batch_id} was aborted: start the query again")


# %% Spark repeats a micro-batch that it does not know the end of; here we do.
spark = ottla.spark.session("local[2]", spark__ui__showConsoleProgress=False)
work = Path(tempfile.mkdtemp())
query = (
    spark.readStream.format("ottla")
    .load(str(LOG))
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", str(work / "checkpoint"))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
write(spark.read.format("ottla").load(str(LOG)), 0)

# %% Each record is there once.
with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as reader:
    reader.assign([LAST_BATCH])
    reader.seek_to_beginning()
    found = 0
    while records := reader.poll(2_000):
        found += len(records)
print(f"{found} records in Kafka, of {batches_written()} batches")

spark.stop()
producer.close()
broker.stop()
