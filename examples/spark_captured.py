"""Judge captured record sets on Spark, and keep the valid records of the others.

The capture is a table with a row for each partition of a produce request: when it was taken, the
topic, and the bytes of the record set. Here it is made of the batches of a segment, some of them
spoilt; a proxy or a broker's log of requests gives the same.

python examples/spark_captured.py
"""

import tempfile
from pathlib import Path

import ottla
import ottla.spark
import pyarrow as pa
import pyarrow.parquet as pq

ORDERS = Path(__file__).parent / "data" / "orders-1" / "00000000000000000000.log"
BASE_OFFSET_SIZE = 8
DAMAGED = (9, 19, 29)
CUT = 3


def make_captures(path: Path) -> None:
    """Write the table: three sets are damaged, and one is truncated."""
    log = ORDERS.read_bytes()
    sets = []
    for number, batch in enumerate(ottla.read_batches(log)):
        # A producer counts from 0; only the leader assigns offsets.
        data = bytearray(BASE_OFFSET_SIZE)
        data += log[batch.position + BASE_OFFSET_SIZE : batch.position + batch.size]
        if number in DAMAGED:
            data[-1] ^= 0x01
        sets.append(bytes(data))
    sets[CUT] = sets[CUT][:-5]
    no_key = ottla.NewRecord(value=b"{}", timestamp=1_800_000_000_000)
    key = ottla.NewRecord(b"order-1", b"{}", timestamp=1_800_000_000_000)
    sets.append(ottla.build_batch([key, no_key]))
    columns = {
        "captured_ms": [1_800_000_000_000 + number for number in range(len(sets))],
        "topic": ["orders"] * (len(sets) - 1) + ["customers"],
        "records": pa.array(sets, pa.binary()),
    }
    pq.write_table(pa.table(columns), path)


def main() -> None:
    """Judge the captures, then split them."""
    spark = ottla.spark.session("local[2]", spark__ui__enabled=False)
    topics = {
        "orders": ottla.TopicConfig(),
        "customers": ottla.TopicConfig(cleanup_policy="compact"),
    }
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "captures.parquet")
        make_captures(Path(path))

        # The tasks read the files themselves: large record sets do not pass through the JVM.
        verdicts = ottla.spark.validate_parquet(spark, path, config=topics, now_ms="captured_ms")
        for row in (
            verdicts.groupBy("topic", "error_name").count().orderBy("topic", "error_name").collect()
        ):
            print(f"{row['topic']}: {row['error_name']} {row['count']}")

        # The valid records and the others. ottla.spark.split does the same to any frame.
        valid, quarantine = ottla.spark.split_parquet(
            spark, path, config=topics, now_ms="captured_ms"
        )
        print(f"{valid.count()} good records, {valid.where('key is null').count()} without a key")
        for row in quarantine.groupBy("reason").count().orderBy("reason").collect():
            print(f"in quarantine: {row['reason']} {row['count']}")
        row = quarantine.where("record_index is not null").first()
        print(f"blamed: {row['topic']}, record {row['record_index']}: {row['message']}")
    spark.stop()


if __name__ == "__main__":
    main()
