"""Streams of `ottla` into tables of Delta and Iceberg, in drivers that can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import ottla
from support.logs import batches, segment_name
from support.maven import Jar, fetched

Kind = Literal["delta", "iceberg"]
Moment = Literal["planning", "planned", "reading"]

PYSPARK = "4.1"
COLUMNS = "topic,partition,offset,key,value"
PARTITIONS = 3
# Only what hangs takes as long, on any machine.
WITHIN_S = 240
END = "end"


def settings(root: Path) -> dict[str, str]:
    """Settings of a session with both formats, and with its tables below a directory.

    Raises:
        MissingError: no Maven, or not what it has to fetch.
    """
    delta, iceberg = "io.delta", "org.apache.iceberg"
    alone = [
        Jar(delta, "delta-spark_4.1_2.13", "4.4.0", with_dependencies=False),
        Jar(delta, "delta-storage", "4.4.0", with_dependencies=False),
        Jar(iceberg, "iceberg-spark-runtime-4.1_2.13", "1.12.0", with_dependencies=False),
    ]
    jars = fetched("tables/delta-4.4.0-iceberg-1.12.0", alone)
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": str(root / "warehouse"),
        "spark.sql.warehouse.dir": str(root / "warehouse" / "delta"),
        # By default Delta reads its small log in fifty tasks.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def table_name(kind: Kind, name: str) -> str:
    """The name of a table in SQL."""
    return f"default.{name}" if kind == "delta" else f"iceberg.db.{name}"


def table_path(kind: Kind, root: Path, name: str) -> Path:
    """The directory of a table."""
    return root / "warehouse" / ("delta" if kind == "delta" else "db") / name


def written(kind: Kind, root: Path, name: str) -> int:
    """How often a table was written to."""
    log = "_delta_log/*.json" if kind == "delta" else "metadata/v*.metadata.json"
    return sum(1 for _ in table_path(kind, root, name).glob(log))


class Log:
    """A log directory that grows: batches are appended, and segments rolled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.offsets = [0] * PARTITIONS
        self.grow()

    def grow(self) -> None:
        """Append some batches to every partition, every second time in a new segment."""
        for number, base_offset in enumerate(self.offsets):
            directory = self.root / f"orders-{number}"
            directory.mkdir(parents=True, exist_ok=True)
            segments = sorted(directory.glob("*.log"))
            path = directory / segment_name(base_offset)
            if segments and len(segments) * 100 > base_offset:
                path = segments[-1]
            with path.open("ab") as file:
                for batch in batches(5, base_offset=base_offset, records=10):
                    file.write(batch)
            self.offsets[number] += 50

    def rows(self) -> list[tuple[Any, ...]]:
        """Every record, as one read of the log finds it."""
        return [
            ("orders", number, record.offset, record.key, record.value)
            for number in range(PARTITIONS)
            for record in ottla.read_partition(self.root / f"orders-{number}")
        ]


def stream(spark: Any, kind: Kind, home: Path, *, source: str, **trigger: Any) -> Any:
    """Start the stream of the logs into the table."""
    reader = spark.readStream.format(source).option("columns", COLUMNS)
    # A task for each segment, so that every batch has several.
    rows = reader.option("partition_bytes", "65536").load(str(home / "logs"))
    writer = rows.writeStream.format(kind).option("checkpointLocation", str(home / "checkpoint"))
    writer = writer.outputMode("append").trigger(**trigger)
    if kind == "delta":
        return writer.start(str(table_path(kind, home.parent, home.name)))
    return writer.toTable(table_name(kind, home.name))


class Driver:
    """A driver whose stream runs."""

    def __init__(self, kind: Kind, home: Path, *, master: str) -> None:
        self.kind, self.home = kind, home
        self.stops = home / "stops"
        self.stops.mkdir(exist_ok=True)
        self.asked = ""
        self.output = home / "driver.txt"
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.table_driver", kind, home, master],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                    "PYSPARK_PYTHON": sys.executable,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; an error where the driver has ended, or it takes too long."""
        ends_at = time.monotonic() + WITHIN_S
        while not holds():
            if self.process.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError(f"the stream did not go on: {self.output.read_text()[-4000:]}")
            time.sleep(0.005)

    def stop_at(self, moment: Moment) -> None:
        """Have it wait from now on when it comes to a moment."""
        self.asked = str(time.monotonic_ns())
        (self.stops / moment).write_text(self.asked)

    def waiting(self, moment: Moment) -> int:
        """The process that waits, once one does."""
        pattern = f"{moment}-{self.asked}-*"
        self.wait_until(lambda: any(self.stops.glob(pattern)))
        return int(next(self.stops.glob(pattern)).name.rpartition("-")[2])

    def go_on(self) -> None:
        """Let whatever waits go on."""
        for path in self.stops.iterdir():
            path.unlink(missing_ok=True)

    def planned(self) -> int:
        """The last batch that was planned."""
        return last_batch(self.home / "checkpoint" / "offsets")

    def committed(self) -> int:
        """The last batch that the checkpoint calls done."""
        return last_batch(self.home / "checkpoint" / "commits")

    def has_committed(self, batch: int) -> bool:
        """Whether the checkpoint calls a batch done."""
        return self.committed() >= batch

    def written(self) -> int:
        """How often the table was written to."""
        return written(self.kind, self.home.parent, self.home.name)

    def kill(self) -> None:
        """Kill Python and JVM at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # The workers are no children of either, and end when they write.
        self.go_on()

    def end(self) -> None:
        """Have it read what there is, and end."""
        (self.stops / END).touch()
        status = self.process.wait(WITHIN_S)
        assert status == 0, self.output.read_text()[-4000:]


@contextlib.contextmanager
def driver(kind: Kind, home: Path, *, master: str = "local[2]") -> Iterator[Driver]:
    """Run a driver, which is killed in the end if it still runs."""
    running = Driver(kind, home, master=master)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def last_batch(log: Path) -> int:
    """The last batch that a log of a checkpoint has; -1 without any."""
    if not log.is_dir():
        return -1
    return max((int(path.name) for path in log.iterdir() if path.name.isdigit()), default=-1)


def parent(pid: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
