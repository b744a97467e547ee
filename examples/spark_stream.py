"""A log followed as it grows, cell by cell: open it in a notebook, or run it as a program."""

# %% A growing log: a copy that so far has only the first kilobytes.
import tempfile
from pathlib import Path

import ottla.spark

source = Path(__file__).parent / "data" / "orders-0" / "00000000000000000000.log"
work = Path(tempfile.mkdtemp())
growing = work / "logs" / "orders-0" / source.name
growing.parent.mkdir(parents=True)
growing.write_bytes(source.read_bytes()[:5000])

spark = ottla.spark.session("local[2]", spark__ui__showConsoleProgress=False)


# %% A query that reads what is available, and ends. The next one continues from its checkpoint.
def follow() -> int:
    """Return the number of records in the table when the query has ended."""
    records = spark.readStream.format("ottla").load(str(work / "logs"))
    query = (
        records.writeStream.format("parquet")
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(work / "table"))
    )
    query.awaitTermination()
    count: int = spark.read.parquet(str(work / "table")).count()
    return count


print(f"{follow()} records in what is there, half a batch left for later")

# %% The rest is written.
growing.write_bytes(source.read_bytes())
print(f"{follow()} records in all, each once")

spark.stop()
