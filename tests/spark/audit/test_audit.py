"""The audit on Spark gives what the embedded one gives, wherever and however it runs."""

import os
import random
import signal
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.audit.plan.plan import plan_audit
from ottla.audit.result.columns import TABLES
from ottla.errors import SparkError
from ottla.spark.audit import audit, runner
from ottla.spark.work import items
from support.frames import arrow_of
from support.logs import segment_name, write_log_directory
from support.random_logs import write_random_log

pytestmark = pytest.mark.spark

LOGS = 500


def assert_equal(on_spark: Any, embedded: ottla.AuditResult) -> None:
    """Every table by its rows, order and types, and the summary."""
    assert asdict(on_spark.summary) == asdict(embedded.summary)
    assert on_spark.advice == embedded.advice
    for name in TABLES:
        expected = getattr(embedded, name).to_arrow()
        found = arrow_of(getattr(on_spark, name))
        assert found.schema.names == expected.schema.names, name
        assert found.schema.types == expected.schema.types, name
        assert found.to_pylist() == expected.to_pylist(), name


@pytest.fixture(scope="module")
def random_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a seed under one directory, many of them hurt."""
    root = tmp_path_factory.mktemp("random") / "kafka"
    write_log_directory(root)
    for number in range(LOGS):
        write_random_log(root / f"random-{number}", random.Random(number))
    return root


@pytest.fixture
def judged_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read on the driver that a task may read."""
    for bound in ("DRIVER_LOGS", "DRIVER_STARTS", "DRIVER_BYTES"):
        monkeypatch.setattr(runner, bound, 0)


def test_the_demo_is_the_same_on_spark(everywhere: Any, demo: Path) -> None:
    assert_equal(ottla.spark.audit(everywhere, demo), ottla.audit(demo))


@pytest.mark.usefixtures("judged_by_tasks")
def test_logs_judged_by_tasks_are_the_same(everywhere: Any, demo: Path) -> None:
    assert_equal(ottla.spark.audit(everywhere, demo, split_bytes=65_536), ottla.audit(demo))


@pytest.mark.slow
def test_random_logs_and_random_splits_are_the_same(everywhere: Any, random_logs: Path) -> None:
    embedded = ottla.audit(random_logs)
    assert embedded.summary.findings["error"] > 100
    split_bytes = random.Random(everywhere.version + type(everywhere).__module__).randint(
        65_536, 200_000
    )
    assert_equal(ottla.spark.audit(everywhere, random_logs, split_bytes=split_bytes), embedded)


@pytest.mark.slow
@pytest.mark.usefixtures("judged_by_tasks")
def test_random_logs_judged_by_tasks_are_the_same(spark: Any, random_logs: Path) -> None:
    result = ottla.spark.audit(spark, random_logs, split_bytes=65_536)
    assert_equal(result, ottla.audit(random_logs))


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("which", ["corpus/kafka", "damage/cases"])
def test_logs_of_brokers_are_the_same(everywhere: Any, shared: Path, which: str) -> None:
    sources = sorted(path for path in (shared / which).iterdir() if path.is_dir())
    embedded = ottla.audit(sources)
    assert embedded.summary.partitions > 10
    assert_equal(ottla.spark.audit(everywhere, sources, split_bytes=65_536), embedded)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.usefixtures("judged_by_tasks")
def test_damaged_logs_judged_and_started_by_tasks_are_the_same(spark: Any, shared: Path) -> None:
    sources = sorted(path for path in (shared / "damage/cases").iterdir() if path.is_dir())
    embedded = ottla.audit(sources)
    assert len(embedded.recovery) > 100
    assert_equal(ottla.spark.audit(spark, sources), embedded)


def test_copies_of_a_partition_are_compared_in_tasks(
    spark: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = write_log_directory(tmp_path / "one")
    second = write_log_directory(tmp_path / "two")
    log = second / "orders-0" / segment_name(12)
    log.write_bytes(log.read_bytes()[:-40])
    replicas = {"one": first, "two": second}
    embedded = ottla.audit(replicas=replicas)
    assert len(embedded.differences) == 1
    assert_equal(ottla.spark.audit(spark, [], replicas=replicas), embedded)
    request.getfixturevalue("judged_by_tasks")
    assert_equal(ottla.spark.audit(spark, [], replicas=replicas), embedded)


def test_records_are_split_as_the_embedded_audit_splits_them(spark: Any, tmp_path: Path) -> None:
    root = write_log_directory(tmp_path / "kafka")
    for number in range(12):
        write_random_log(root / f"random-{number}", random.Random(number))
    embedded = ottla.audit(root).split_records()
    on_spark = ottla.spark.audit(spark, root).split_records()
    assert len(embedded[1]) > 10
    for found, expected in zip(on_spark, embedded, strict=True):
        assert arrow_of(found).to_pylist() == expected.to_arrow().to_pylist()


def test_what_cannot_be_read_is_a_finding_and_not_a_failed_job(spark: Any, tmp_path: Path) -> None:
    root = write_log_directory(tmp_path / "kafka")
    (root / "orders-0" / segment_name(24)).symlink_to(tmp_path / "nowhere")
    (root / "orders-1" / segment_name(24)).mkdir()
    result = ottla.spark.audit(spark, [root, tmp_path / "missing"])
    assert result.exit_code == 3
    assert_equal(result, ottla.audit([root, tmp_path / "missing"]))


def test_a_file_that_vanishes_after_listing_is_a_finding(spark: Any, tmp_path: Path) -> None:
    root = write_log_directory(tmp_path / "kafka")
    plan = plan_audit(root)
    (root / "orders-0" / segment_name(12)).unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "plan_audit", lambda *_, **__: plan)
        result = ottla.spark.audit(spark, root)
    assert result.exit_code == 3
    assert [row["message"] for row in result.collect().findings if row["name"] == "unreadable"] == [
        f"orders-0/{segment_name(12)}: no such file or directory"
    ]


def test_workers_without_ottla_are_one_clear_error(new_cluster: Any, demo: Path) -> None:
    with pytest.raises(SparkError) as failure:
        ottla.spark.audit(new_cluster, demo)
    message = str(failure.value)
    assert message.startswith("the audit failed: ")
    assert "ottla.spark.ship(spark)" in message
    assert "Py4J" not in message


def test_an_empty_directory_is_not_read(spark: Any, tmp_path: Path) -> None:
    result = ottla.spark.audit(spark, tmp_path)
    assert result.exit_code == 3
    assert_equal(result, ottla.audit(tmp_path))


def test_arguments_are_those_of_the_embedded_audit(spark: Any, demo: Path) -> None:
    with pytest.raises(ValueError, match="level is 'deep', not one of crc, decode, full"):
        ottla.spark.audit(spark, demo, level="deep")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="split_bytes is 1, must be at least 65536"):
        ottla.spark.audit(spark, demo, split_bytes=1)
    with pytest.raises(ValueError, match="topics is empty: leave it out for all topics"):
        ottla.spark.audit(spark, demo, topics=[])
    result = ottla.spark.audit(spark, demo, topics=["orders"], level="crc")
    assert_equal(result, ottla.audit(demo, topics=["orders"], level="crc"))


def test_tables_are_asked_by_name_and_by_sql(spark: Any, demo: Path) -> None:
    result = ottla.spark.audit(spark, demo, topics=["refunds"])
    query = "select state, count(*) from transactions group by state order by state"
    expected = [("aborted", 3), ("committed", 2), ("open", 2)]
    assert [tuple(row) for row in result.sql(query).collect()] == expected
    with pytest.raises(AttributeError, match="no attribute or table 'nothing'; tables: files"):
        _ = result.nothing
    assert result.collect().sql(query).fetchall() == expected


def test_tables_are_saved_by_spark(spark: Any, demo: Path, tmp_path: Path) -> None:
    result = ottla.spark.audit(spark, demo, topics=["refunds"])
    result.save(str(tmp_path / "out"), records=True)
    saved = spark.read.parquet(str(tmp_path / "out" / "records"))
    assert saved.count() == len(result.collect().records)
    assert not (tmp_path / "out" / "batches").exists()


def dies_once(function: Any, marker: str) -> Any:
    """The same function, but the first task to hand something out then kills its executor."""

    def run(batches: Any) -> Any:
        for batch in function(batches):
            yield batch
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            # The worker's parent is PySpark's daemon, and the executor is the daemon's.
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii")
            os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)

    return run


@pytest.mark.parametrize("driver_logs", [0, 2_000])
def test_bins_are_shipped_in_parts(
    spark: Any, demo: Path, monkeypatch: pytest.MonkeyPatch, driver_logs: int
) -> None:
    monkeypatch.setattr(audit, "BIN_SIZE", replace(audit.BIN_SIZE, min_bytes=4_096))
    monkeypatch.setattr(items, "PART_BYTES", 64)
    monkeypatch.setattr(runner, "DRIVER_LOGS", driver_logs)
    assert_equal(ottla.spark.audit(spark, demo), ottla.audit(demo))


def dying_worker(sound: Any, marker: str, *work: Any) -> Any:
    return dies_once(sound(*work), marker)


@pytest.mark.parametrize("driver_logs", [0, 2_000])
def test_a_lost_executor_changes_nothing(
    cluster: Any, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_logs: int
) -> None:
    ottla.spark.ship(cluster)
    marker = tmp_path / "killed"
    for name in ("run_in_worker", "run_rows_in_worker"):
        sound = getattr(runner, name)
        dying = partial(dying_worker, sound, str(marker))
        monkeypatch.setattr(runner, name, dying)
    monkeypatch.setattr(audit, "BIN_SIZE", replace(audit.BIN_SIZE, min_bytes=4_096))
    monkeypatch.setattr(runner, "DRIVER_LOGS", driver_logs)
    result = ottla.spark.audit(cluster, demo)
    assert marker.exists()
    assert_equal(result, ottla.audit(demo))


def test_views_leave_what_the_session_has(everywhere: Any, demo: Path) -> None:
    result = ottla.spark.audit(everywhere, demo)
    everywhere.range(3).createOrReplaceTempView("monday_findings")
    with pytest.raises(SparkError, match="the session has monday_findings already"):
        result.create_views("monday_")
    assert not everywhere.catalog.tableExists("monday_files")
    assert everywhere.table("monday_findings").columns == ["id"]
    names = result.create_views("tuesday_")
    assert names == tuple(f"tuesday_{name}" for name in TABLES)
    assert everywhere.table("tuesday_findings").count() == result.findings.count()
    # Those of an earlier audit are replaced, others if that is asked for.
    assert ottla.spark.audit(everywhere, demo).create_views("tuesday_") == names
    result.create_views("monday_", replace=True)
    assert everywhere.table("monday_findings").columns == result.findings.columns
    for prefix in ("monday-", "`", "a b"):
        with pytest.raises(ValueError, match="letters, digits and _"):
            result.create_views(prefix)
