"""Streams into Delta and Iceberg: every record once, whatever of Spark is killed, and when."""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from support.table_streams import (
    COLUMNS,
    Driver,
    Kind,
    Log,
    Moment,
    driver,
    parent,
    stream,
    table_path,
)

pytestmark = pytest.mark.tables

KINDS: tuple[Kind, ...] = ("delta", "iceberg")
# The last two are no places in the source: between the sink's commit and that of the checkpoint,
# and wherever a driver is some moments after it planned a batch.
DRIVER_KILLS: tuple[Moment | Literal["committing", "later"], ...] = (
    *("reading", "committing", "planning", "later", "planned"),
    *("committing", "reading", "later", "planning", "committing"),
)
EXECUTOR_KILLS = 10
CLUSTER = "local-cluster[2,1,768]"


def begin(root: Path, name: str) -> tuple[Path, Log]:
    """Return a directory for a stream, and the log it reads."""
    home = root / name
    return home, Log(home / "logs")


def kill_at(running: Driver, moment: Moment | Literal["committing", "later"]) -> None:
    """Kill a driver when it comes to a moment."""
    planned = running.planned()
    if moment == "later":
        running.wait_until(lambda: running.planned() > planned)
        time.sleep(random.Random(planned).uniform(0, 1))
        running.kill()
    elif moment == "committing":
        kill_while_it_commits(running)
    else:
        running.stop_at(moment)
        running.waiting(moment)
        state = running.planned(), running.committed(), running.written()
        running.kill()
        assert (running.planned(), running.committed(), running.written()) == state
        assert moment == "planning" or running.planned() == running.committed() + 1


def kill_while_it_commits(running: Driver) -> None:
    """Kill a driver when the table has a batch of which the checkpoint does not know."""
    running.stop_at("reading")
    running.waiting("reading")
    batch, committed, written = running.planned(), running.committed(), running.written()
    # Where Spark would say that the batch is done there is a directory.
    in_the_way = running.home / "checkpoint" / "commits" / str(batch)
    in_the_way.mkdir(parents=True)
    running.go_on()
    running.wait_until(lambda: running.written() > written)
    running.kill()
    in_the_way.rmdir()
    assert (running.planned(), running.committed()) == (batch, committed)
    assert (committed, running.written()) == (batch - 1, written + 1)


def kill_executors(running: Driver, log: Log, times: int) -> None:
    """Kill a process that reads a batch, so many times: its JVM and its Python in turn."""
    for number in range(times):
        done = running.committed() + 1
        running.stop_at("reading")
        log.grow()
        process = running.waiting("reading")
        if number % 2 == 0:
            process = parent(parent(process))
            assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes()
        os.kill(process, signal.SIGKILL)
        running.go_on()
        running.wait_until(partial(running.has_committed, done))


def assert_every_record_is_there_once(spark: Any, kind: Kind, home: Path, log: Log) -> None:
    """Read on to the end, by the source as everybody has it, and compare with one read."""
    # Before PySpark 4.2, `availableNow` would be one batch: the one that was interrupted.
    query = stream(spark, kind, home, source="ottla", processingTime="0 seconds")
    query.processAllAvailable()
    query.stop()
    reader = spark.read.format("ottla").option("columns", COLUMNS)
    expected = sorted(map(tuple, reader.load(str(home / "logs")).collect()))
    assert expected == log.rows()
    reader = spark.read.format(kind)
    table = reader.load(str(table_path(kind, home.parent, home.name)))
    assert sorted(map(tuple, table.select(*COLUMNS.split(",")).collect())) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_in_the_table_once_when_an_executor_and_then_the_driver_was_killed(
    tables: Any, root: Path, kind: Kind
) -> None:
    home, log = begin(root, f"{kind}_both")
    with driver(kind, home, master=CLUSTER) as running:
        kill_executors(running, log, 1)
        log.grow()
        kill_while_it_commits(running)
    log.grow()
    assert_every_record_is_there_once(tables, kind, home, log)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_in_the_table_once_though_the_driver_was_killed_ten_times(
    tables: Any, root: Path, kind: Kind
) -> None:
    home, log = begin(root, f"{kind}_drivers")
    for moment in DRIVER_KILLS:
        with driver(kind, home) as running:
            kill_at(running, moment)
        log.grow()
    assert_every_record_is_there_once(tables, kind, home, log)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_in_the_table_once_though_executors_were_killed_ten_times(
    tables: Any, root: Path, kind: Kind
) -> None:
    home, log = begin(root, f"{kind}_executors")
    with driver(kind, home, master=CLUSTER) as running:
        kill_executors(running, log, EXECUTOR_KILLS)
        running.end()
    log.grow()
    assert_every_record_is_there_once(tables, kind, home, log)
