"""What is timed on Spark: each job as Ottla and as a peer does it, over the same data."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ottla
import ottla.spark
from ottla.logs.segment import segment_table

from benches.data import MIB
from benches.peers import AIOKAFKA, ALONE, OURS, READY, READY_SOURCE
from benches.race import Times, race
from benches.spark import peer
from benches.spark.data import Captured, Segments, record_sets
from benches.spark.processes import cpu_seconds, jvm_of, peak_resident, python_workers
from benches.spark.ready import ReadySource
from benches.worker import ROOT

GIB = 1 << 30
CORES = 2
SPLIT_BYTES = 512 * MIB
EMBEDDED = "ottla.audit, two threads"
SOURCE = "ottla, spark.read"
READ = "ottla.spark.read"
FRAME = "ottla, rows through the JVM"
FRAME_WHOLE = "ottla, rows through the JVM, every column of records"
EMBEDDED_VALIDATE = "ottla.validate, one process, sets in memory"

_NOW_MS = 1_800_000_000_000


@dataclass(frozen=True)
class Job:
    """What runs on Spark, and how much of the data it goes through."""

    run: Callable[[], int]
    """Does it once; returns the records or rows it saw."""
    expected: int
    size: int


@dataclass(frozen=True)
class Case:
    """One row of the table: jobs over the same data, ours and others."""

    title: str
    jobs: dict[str, Job]
    targets: dict[str, float]
    """How many times as fast as that one ours is to be."""
    before: str
    """CPU seconds a GiB of a prototype of ours on Spark, measured before there was Ottla."""


@dataclass
class Found:
    """Wall clock and CPU time of every job of a case."""

    case: Case
    walls: dict[str, Times]
    cpus: dict[str, list[float]] = field(default_factory=dict)

    def ratio(self, base: str) -> float:
        """Return how many times as fast as another job ours goes through a byte."""
        ours, theirs = self.case.jobs[OURS], self.case.jobs[base]
        return self.walls[OURS].faster_than(self.walls[base]) * ours.size / theirs.size

    def bytes_per_s(self, name: str) -> float:
        """Return the speed of a job."""
        return self.case.jobs[name].size / self.walls[name].median

    def cpu_s_per_gib(self, name: str) -> float:
        """Return the CPU seconds that a GiB takes a job."""
        return statistics.median(self.cpus[name]) * GIB / self.case.jobs[name].size


class WrongAnswerError(Exception):
    """A job did not see what the data hold: its time means nothing."""


def _expect(found: object, expected: object) -> None:
    if found != expected:
        raise WrongAnswerError(f"found {found}, expected {expected}")


def measure(case: Case, jvm: int, rounds: int) -> Found:
    """Run the jobs of a case in turn."""
    cpus: dict[str, list[float]] = {name: [] for name in case.jobs}

    def turn(name: str, job: Job) -> Callable[[], float]:
        def take() -> float:
            used = cpu_seconds(jvm)
            begin = time.perf_counter()
            seen = job.run()
            took = time.perf_counter() - begin
            cpus[name].append(cpu_seconds(jvm) - used)
            _expect(seen, job.expected)
            return took

        return take

    walls = race({name: turn(name, job) for name, job in case.jobs.items()}, rounds)
    return Found(case, walls, {name: used[1:] for name, used in cpus.items()})


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _agree(ours: tuple[Any, int], theirs: Any, *sums: str) -> None:
    """Hold a frame, and how often it has the same, against another before their times are taken."""
    wanted = ("count(*) AS rows", *sums)
    frame, links = ours
    (found,), (expected,) = (each.selectExpr(*wanted).collect() for each in (frame, theirs))
    _expect(tuple(found), tuple(each * links for each in expected))


def _in_tasks(spark: Any, work: peer.Work, tasks: int, schema: str) -> Any:
    return spark.range(0, tasks, 1, tasks).mapInArrow(work, schema)


def _bins(ranges: Sequence[peer.Range], count: int = 4 * CORES) -> list[Sequence[peer.Range]]:
    return [ranges[number::count] for number in range(min(count, len(ranges)))]


def checked(spark: Any, data: Segments) -> Case:
    """Files to findings: every rule of every batch and record."""
    bins = _bins(peer.ranges_of(data.paths))

    def theirs() -> int:
        frame = _in_tasks(spark, peer.count_records(bins), len(bins), peer.COUNT_SCHEMA)
        return sum(row.records for row in frame.collect())

    def ours() -> int:
        result = ottla.spark.audit(spark, str(data.directory), split_bytes=SPLIT_BYTES)
        return int(result.summary.records)

    def embedded() -> int:
        return int(ottla.audit(data.directory, threads=CORES).summary.records)

    size, records = data.whole_size, data.whole_records
    return Case(
        "files → checked, 100 B",
        {
            OURS: Job(ours, records, size),
            EMBEDDED: Job(embedded, records, size),
            AIOKAFKA: Job(theirs, data.records, data.size),
        },
        {AIOKAFKA: 8, EMBEDDED: 0.7},
        "0.36–0.45",
    )


def checked_codec(spark: Any, data: Segments, codec: str) -> Case:
    """Files of a codec to findings, by a byte of file."""
    bins = _bins(peer.ranges_of(data.paths))

    def theirs() -> int:
        frame = _in_tasks(spark, peer.count_records(bins), len(bins), peer.COUNT_SCHEMA)
        return sum(row.records for row in frame.collect())

    def ours() -> int:
        return int(ottla.spark.audit(spark, str(data.directory)).summary.records)

    return Case(
        f"files → checked, 100 B, {codec}",
        {
            OURS: Job(ours, data.whole_records, data.whole_size),
            AIOKAFKA: Job(theirs, data.records, data.size),
        },
        {},
        "–",
    )


def selected(spark: Any, data: Segments, columns: Sequence[str]) -> Case:
    """Files to some columns of records: the data source beside the function.

    One column is counted; more go to a sink, which drops them. Beside both there are jobs over
    ready-made columns: what these take is Spark's.
    """
    read = ottla.spark.read(spark, data.directory, columns=columns, partition_bytes=SPLIT_BYTES)
    source = spark.read.format("ottla").option("partition_bytes", SPLIT_BYTES)
    tasks = 4 * CORES
    path, count = str(data.paths[0]), data.whole_records // tasks
    schema = ", ".join(f"{name} bigint" for name in columns)
    spark.dataSource.register(ReadySource)
    ready = spark.read.format(ReadySource.name()).schema(schema)
    made = partial(peer.first_of_segment, path, columns)
    frames = {
        OURS: source.option("columns", ",".join(columns)).load(str(data.directory)),
        READ: read,
        READY_SOURCE: ready.options(path=path, count=count, tasks=tasks).load(),
        READY: _in_tasks(spark, peer.hand_out(made, count), tasks, schema),
    }
    if len(columns) == 1:
        title = f"files → count of records by {columns[0]}, 100 B"
        jobs = {
            who: Job(frame.count, data.whole_records, data.whole_size)
            for who, frame in frames.items()
        }
        for who in (READY_SOURCE, READY):
            jobs[who] = Job(frames[who].count, tasks * count, data.whole_size)
    else:
        title = f"files → DataFrame of {' and '.join(columns)}, 100 B"
        jobs = {
            who: _job(frame, data.whole_records, data.whole_size) for who, frame in frames.items()
        }
    jobs[ALONE] = _alone(data, columns)
    return Case(title, jobs, {READ: 1 / 1.3}, "–")


def _alone(data: Segments, columns: Sequence[str]) -> Job:
    """Make columns of records in this process, and drop them."""

    def run() -> int:
        tables = (segment_table(bytes(path), "records", columns=columns) for path in data.paths)
        return sum(len(rows) for table in tables for rows in table)

    return Job(run, data.records, data.size)


def rows(spark: Any, data: Segments, name: str, target: float, before: str) -> Case:
    """Files to a DataFrame of records, which a sink drops."""
    bins = _bins(peer.ranges_of(data.paths))
    columns = ["offset", "timestamp", "key", "value"]
    made = partial(peer.first_of_segment, str(data.paths[0]), columns)
    count, tasks = data.whole_records // (4 * CORES), 4 * CORES
    source = spark.read.format("ottla").option("partition_bytes", SPLIT_BYTES)
    frames = {
        OURS: ottla.spark.read(spark, data.directory, columns=columns, partition_bytes=SPLIT_BYTES),
        SOURCE: source.schema(peer.RECORD_SCHEMA).load(str(data.directory)),
        READY: _in_tasks(spark, peer.hand_out(made, count), tasks, peer.RECORD_SCHEMA),
        AIOKAFKA: _in_tasks(spark, peer.read_records(bins), len(bins), peer.RECORD_SCHEMA),
    }
    for who in (OURS, SOURCE):
        _agree(
            (frames[who], data.links),
            frames[AIOKAFKA],
            "sum(offset) AS offsets",
            "sum(timestamp - 1700000000000) AS timestamps",
            "sum(length(key)) AS keys",
            "sum(crc32(value)) AS values",
        )
    jobs = {who: _job(frame, data.whole_records, data.whole_size) for who, frame in frames.items()}
    jobs[AIOKAFKA] = _job(frames[AIOKAFKA], data.records, data.size)
    jobs[ALONE] = _alone(data, columns)
    return Case(f"files → DataFrame of records, {name}", jobs, {AIOKAFKA: target}, before)


def verdicts(spark: Any, data: Captured, name: str) -> Case:
    """Captured record sets in Parquet to verdicts, which a sink drops."""
    frame = spark.read.parquet(str(data.once))
    judge = ottla.spark.validate
    frames = {
        OURS: ottla.spark.validate_parquet(spark, str(data.directory), now_ms=_NOW_MS),
        FRAME: judge(frame, now_ms=_NOW_MS, keep_records=False),
        AIOKAFKA: frame.withColumn("error", peer.judging()("records")),
    }
    columns = ("topic", "partition", "error")
    frames = {who: each.select(*columns) for who, each in frames.items()}
    sums = ("sum(error) AS errors", "sum(partition) AS partitions")
    _agree((frames[OURS], data.links), frames[AIOKAFKA], *sums)
    _agree((frames[FRAME], 1), frames[AIOKAFKA], *sums)
    jobs = {who: _job(each, data.rows, data.size) for who, each in frames.items()}
    jobs[OURS] = _job(frames[OURS], data.rows * data.links, data.size * data.links)
    return Case(f"captured batches of {name} → verdicts", jobs, {AIOKAFKA: 5}, "3.4–4.0")


def partitions(spark: Any, data: Captured, name: str) -> Case:
    """Captured record sets of an RDD to verdicts, which are counted."""
    rdd = spark.read.parquet(str(data.once)).select("records").rdd
    verdicts = rdd.mapPartitions(ottla.spark.validate_partition(now_ms=_NOW_MS))
    sets = record_sets(data)

    def ours() -> int:
        return int(verdicts.map(lambda row: row.accepted).sum())

    def embedded() -> int:
        return sum(ottla.validate(records, now_ms=_NOW_MS).accepted for records in sets)

    jobs = {
        OURS: Job(ours, data.rows, data.size),
        EMBEDDED_VALIDATE: Job(embedded, data.rows, data.size),
    }
    return Case(f"captured batches of {name}, RDD → verdicts", jobs, {}, "–")


def splits(spark: Any, data: Captured, name: str) -> Case:
    """Captured record sets to their records, which a sink drops."""
    frame = spark.read.parquet(str(data.once)).select("records")
    columns = ["offset", "timestamp", "key", "value"]
    given: dict[str, Any] = {"now_ms": _NOW_MS, "record_columns": columns}
    valid, _ = ottla.spark.split_parquet(spark, str(data.directory), columns=[], **given)
    _, quarantine = ottla.spark.split_parquet(spark, str(data.once), **given)
    frames = {
        OURS: valid,
        FRAME: ottla.spark.split(frame, **given)[0],
        FRAME_WHOLE: ottla.spark.split(frame, now_ms=_NOW_MS)[0],
        AIOKAFKA: frame.mapInArrow(peer.read_sets, peer.RECORD_SCHEMA),
    }
    tasks = 4 * CORES
    rows_once = frames[OURS].count() // data.links
    count = rows_once * data.links // tasks
    made = partial(peer.first_of_sets, str(next(data.once.iterdir())), columns)
    frames[READY] = _in_tasks(spark, peer.hand_out(made, count), tasks, peer.RECORD_SCHEMA)
    sums = ("sum(offset) AS offsets", "sum(length(key)) AS keys", "sum(crc32(value)) AS values")
    _agree((frames[OURS], data.links), frames[AIOKAFKA], *sums)
    for who in (FRAME, FRAME_WHOLE):
        _agree((frames[who], 1), frames[AIOKAFKA], *sums)
    _expect(quarantine.count(), 0)
    jobs = {who: _job(each, data.rows, data.size) for who, each in frames.items()}
    for who in (OURS, READY):
        jobs[who] = _job(frames[who], data.rows * data.links, data.size * data.links)

    def alone() -> int:
        paths = sorted(map(str, data.once.iterdir()))
        return sum(len(rows) for path in paths for rows in peer.rows_of_sets(path, columns))

    jobs[ALONE] = Job(alone, rows_once, data.size)
    return Case(f"captured batches of {name} → DataFrame of records", jobs, {AIOKAFKA: 3}, "–")


def _job(frame: Any, count: int, size: int) -> Job:
    def run() -> int:
        _noop(frame)
        return count

    return Job(run, count, size)


@dataclass(frozen=True)
class Memory:
    """The most memory that a Python worker had resident."""

    title: str
    peak: int
    target: int = 256 * MIB

    @property
    def is_met(self) -> bool:
        """Whether it kept below the target."""
        return self.peak <= self.target


def worker_memory(spark: Any, data: Segments) -> Memory:
    """Audit large segments at full level in a fresh session, and look at its workers."""
    jvm = jvm_of(spark)
    for _ in range(2):
        result = ottla.spark.audit(spark, str(data.directory), level="full")
        _expect(result.summary.records, data.whole_records)
    peaks = [peak_resident(pid) for pid in python_workers(jvm)]
    if not peaks:
        raise WrongAnswerError("no Python worker is left to look at")
    size = data.size // len(data.paths) / GIB
    return Memory(
        f"resident memory of a Python worker, full level, segments of {size:.0f} GiB", max(peaks)
    )


def task_seconds(spark: Any, tasks: int = 64, rounds: int = 5) -> float:
    """Return the CPU seconds of a task in Python that does nothing."""
    jvm = jvm_of(spark)
    frame = _in_tasks(spark, peer.nothing, tasks, peer.COUNT_SCHEMA)
    used = []
    for _ in range(rounds + 1):
        before = cpu_seconds(jvm)
        _noop(frame)
        used.append(cpu_seconds(jvm) - before)
    return statistics.median(used[1:]) / tasks


def driver_at_scale(partitions: int = 100_000) -> Any:
    """Return what the driver takes for a listing, in a process of its own."""
    command = [sys.executable, "-m", "benches.spark.scale", str(partitions)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and not done.stdout:
        raise RuntimeError(done.stderr[-500:])
    return json.loads(done.stdout)


@contextmanager
def two_cores() -> Iterator[Any]:
    """Return a session on two cores whose workers find this tree."""
    paths = (str(ROOT), str(ROOT / "python"), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    spark = ottla.spark.session(
        f"local[{CORES}]",
        spark__ui__enabled=False,
        spark__ui__showConsoleProgress=False,
        spark__driver__memory="2g",
        spark__log__level="ERROR",
        spark__sql__shuffle__partitions=CORES,
        # By default 4,096 and 10,000 rows at once, however large: too many of record sets.
        spark__sql__parquet__columnarReaderBatchSize=256,
        spark__sql__execution__arrow__maxRecordsPerBatch=256,
    )
    try:
        yield spark
    finally:
        spark.stop()
