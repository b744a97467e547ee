"""The audit on Spark, cell by cell: open it in a notebook, or run it as a program."""

# %% A session: that of your platform, or a local one.
from pathlib import Path

import ottla.spark

spark = ottla.spark.session("local[2]", spark__ui__showConsoleProgress=False)

# %% One call scans everything, once. Driver and executors must be able to read the paths.
result = ottla.spark.audit(spark, Path(__file__).parent / "data")
print(f"{result.summary.partitions} partitions, {result.summary.records} records")

# %% What is wrong, as a data frame.
for row in result.findings.where("severity = 'warning'").select("name", "file").collect():
    print(f"{row['name']} in {row['file']}")

# %% Any table by its name, and SQL over all of them.
states = result.sql("select state, count(*) from transactions group by state order by state")
print(", ".join(f"{count} {state}" for state, count in states.collect()))

# %% Records are read from the segments when they are used.
orders = result.records.where("topic = 'orders' and control is null")
count, largest = orders.selectExpr("count(*)", "max(length(value))").first()
print(f"{count} orders, the largest has {largest} bytes")

# %% The embedded result, with tables on the driver.
print(f"exit code {result.collect().exit_code}")

spark.stop()
