"""One clear error for a job that failed, however Spark tells of it."""

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.audit.plan.plan import plan_audit
from ottla.spark.audit import runner
from ottla.spark.setup.jobs import job
from ottla.spark.work import kind

pytestmark = pytest.mark.spark


def failing() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that fails in the worker; nested, as workers know no test."""

    def fail(_items: Iterator[Any]) -> Iterator[Any]:
        raise ValueError("the tape is full\nand more on that")

    return fail


def dying() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that ends the worker's process."""

    def die(_items: Iterator[Any]) -> Iterator[Any]:
        os._exit(3)

    return die


def test_what_a_worker_raised_is_the_error(everywhere: Any) -> None:
    frame = everywhere.range(0, 2, 1, 2).mapInArrow(failing(), "id bigint")
    with (
        pytest.raises(ottla.SparkError) as raised,
        job("counting", everywhere),
    ):
        frame.collect()
    assert str(raised.value) == "counting failed: ValueError: the tape is full"
    assert isinstance(raised.value.__cause__, Exception)


def test_what_a_worker_raised_over_rows_is_the_error(spark: Any) -> None:
    rows = spark.sparkContext.parallelize(range(2), 2).mapPartitions(failing())
    with (
        pytest.raises(ottla.SparkError, match=r"^counting failed: ValueError: the tape is full$"),
        job("counting", spark),
    ):
        rows.collect()


def test_a_worker_that_died_is_the_error(spark: Any) -> None:
    frame = spark.range(0, 2, 1, 2).mapInArrow(dying(), "id bigint")
    with (
        pytest.raises(ottla.SparkError, match="Python worker exited unexpectedly"),
        job("counting", spark),
    ):
        frame.collect()


def test_what_spark_refuses_is_the_error(everywhere: Any) -> None:
    with (
        pytest.raises(ottla.SparkError, match=r"^reading failed: \[PATH_NOT_FOUND\]"),
        job("reading", everywhere),
    ):
        everywhere.read.parquet("nowhere-at-all").collect()


def test_other_errors_pass_unchanged(spark: Any) -> None:
    with (
        pytest.raises(ottla.NotAPartitionError, match="not this"),
        job("reading", spark),
    ):
        raise ottla.NotAPartitionError("not this")


def test_a_file_that_is_no_parquet_is_the_error(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "one.parquet").write_bytes(b"twelve bytes")
    frame = spark.read.schema("id int").parquet(str(tmp_path))
    with (
        pytest.raises(ottla.SparkError, match=r"^reading failed: .*one\.parquet is not a Parquet"),
        job("reading", spark),
    ):
        frame.collect()


def test_a_file_that_is_gone_is_the_error(spark: Any, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "captures"))
    frame = spark.read.parquet(str(tmp_path / "captures"))
    for path in (tmp_path / "captures").glob("*.parquet"):
        path.unlink()
    with (
        pytest.raises(ottla.SparkError, match=r"^reading failed: .*\.parquet does not exist"),
        job("reading", spark),
    ):
        frame.collect()


def waiting(path: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that says that it has begun, and waits for its end."""

    def wait(items: Iterator[Any]) -> Iterator[Any]:
        (path / "begun").touch()
        while not (path / "end").exists():
            time.sleep(0.05)
        yield from items

    return wait


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_cancelled_job_is_told_and_ends_nothing_else(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_doctor(_: object) -> None:
        raise AssertionError("a cancelled job needs no doctor")

    monkeypatch.setattr("ottla.spark.setup.jobs.doctor", no_doctor)
    results: dict[str, object] = {}

    def run(name: str) -> None:
        (tmp_path / name).mkdir()
        kind.tag_jobs(spark, name)
        rows = spark.sparkContext.parallelize([name], 1).mapPartitions(waiting(tmp_path / name))
        try:
            with job("counting", spark):
                results[name] = rows.collect()
        except ottla.SparkError as error:
            results[name] = str(error)

    threads = {name: threading.Thread(target=run, args=(name,)) for name in ("one", "two")}
    for thread in threads.values():
        thread.start()
    until(lambda: all((tmp_path / name / "begun").exists() for name in threads))
    kind.interrupt_jobs(spark, "one")
    threads["one"].join(240)
    (tmp_path / "two" / "end").touch()
    threads["two"].join(240)
    (tmp_path / "one" / "end").touch()
    assert str(results["one"]).startswith("counting failed: ")
    assert "cancelled" in str(results["one"])
    assert "\n" not in str(results["one"])
    assert results["two"] == ["two"]


def test_a_job_that_fails_after_ctrl_c_was_handled_is_no_second_ctrl_c(spark: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    def clean_up() -> None:
        with job("cleaning up", spark):
            spark.read.parquet("nowhere-at-all")

    try:
        interrupt()
    except KeyboardInterrupt:
        with pytest.raises(ottla.SparkError, match=r"^cleaning up failed: \[PATH_NOT_FOUND\]"):
            clean_up()


def test_without_data_sources_the_error_says_what_reads(spark: Any, demo: Path) -> None:
    if kind.spark_version(spark.version) >= kind.SOURCE_VERSION:
        pytest.skip("there are data sources in Python")
    for reader in (spark.read, spark.readStream):
        with pytest.raises(ottla.SparkError) as raised, job("reading", spark):
            reader.format("ottla").load(str(demo))
        first, second = str(raised.value).splitlines()
        assert first.startswith("reading failed: ")
        assert second.startswith(
            f"format('ottla') needs PySpark 4.0 or newer, this is {spark.version}"
        )
    with pytest.raises(ottla.SparkError, match=r"needs PySpark 4\.0 or newer"):
        importlib.import_module("pyspark_ottla")


def descriptions(spark: Any, after: int = -1) -> dict[int, str]:
    """Return what Spark's UI shows of the jobs of a session behind one of them."""
    listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    jobs = sorted((listed.apply(at) for at in range(listed.size())), key=lambda job: job.jobId())
    return {
        job.jobId(): job.description().get() if job.description().isDefined() else ""
        for job in jobs
        if job.jobId() > after
    }


@pytest.mark.parametrize("by", ["driver", "tasks"])
def test_sparks_ui_shows_what_the_jobs_of_an_audit_do(
    spark: Any, demo: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "tasks":
        for bound in ("DRIVER_LOGS", "DRIVER_STARTS", "DRIVER_BYTES"):
            monkeypatch.setattr(runner, bound, 0)
    before = max(descriptions(spark), default=-1)
    ottla.spark.audit(spark, demo)
    shown = list(descriptions(spark, before).values())
    plan = plan_audit(demo)
    assert shown[0] == f"Ottla: scan {len(plan.logs)} logs, {plan.byte_count / 1e6:.1f} MB"
    assert all(text.startswith("Ottla: ") for text in shown)
    # What comes next is not Ottla's.
    spark.range(2).count()
    *_, next_one = descriptions(spark, before).values()
    assert not next_one.startswith("Ottla: ")


def test_a_description_of_ones_own_stays(spark: Any, demo: Path) -> None:
    before = max(descriptions(spark), default=-1)
    spark.sparkContext.setJobDescription("the nightly check")
    try:
        ottla.spark.audit(spark, demo)
        spark.range(2).collect()
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert set(descriptions(spark, before).values()) == {"the nightly check"}
