"""What the doctor finds, where all is well and where something is missing."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.spark.setup import doctor
from ottla.spark.setup.doctor import Report
from ottla.spark.setup.jobs import job
from ottla.spark.work.worker import run_in_worker
from support.clusters import environ

pytestmark = pytest.mark.spark

SHOW = "import ottla.spark; report = ottla.spark.doctor(); print(report); print('ok:', report.ok)"
START = "import ottla.spark; ottla.spark.session('local[1]')"


def found(report: Report, name: str) -> tuple[str, str]:
    """Return status and finding of a check."""
    (check,) = [check for check in report.checks if check.name == name]
    return check.status, check.found


def run(code: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment changed in this way."""
    path = ":".join(path for path in sys.path if path)
    with environ(PYTHONPATH=path, **changed):
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
        )


def test_where_all_is_well_the_report_says_so_of_each_thing(spark: Any) -> None:
    report = ottla.spark.doctor(spark)
    assert report.ok, str(report)
    assert {check.status for check in report.checks if check.name != "workers' temp space"} <= {
        "ok",
        "warn",
    }
    status, session = found(report, "session")
    assert status == "ok"
    assert session.startswith("classic, Java ")
    assert session.endswith(", master local[2]")
    assert found(report, "workers' Ottla")[0] == "ok"
    assert found(report, "workers' Python")[1].endswith(sys.executable)
    assert str(report).splitlines()[0].startswith("ok    pyspark")


def is_cured_by_shipping(spark: Any) -> Report:
    """Hold a session whose workers have no Ottla before and after `ship`."""
    frame = spark.range(0, 2, 1, 2).mapInArrow(
        run_in_worker("functools:partial", iter), "id bigint"
    )
    with (
        pytest.raises(ottla.SparkError) as raised,
        job("counting", spark),
    ):
        frame.collect()
    first, second = str(raised.value).splitlines()
    assert first.startswith("counting failed: ImportError: the Python worker ")
    assert "cannot import Ottla" in first
    assert "call ottla.spark.ship(spark) before the job" in first
    assert second.startswith("workers' Ottla: the Python worker ")
    ottla.spark.ship(spark)
    assert sorted(row.id for row in frame.collect()) == [0, 1]
    report = ottla.spark.doctor(spark)
    assert report.ok, str(report)
    return report


def test_shipping_cures_workers_without_ottla_on_a_cluster(new_cluster: Any) -> None:
    report = is_cured_by_shipping(new_cluster)
    assert found(report, "session")[1].startswith("classic, Java ")
    assert f"{ottla.__version__} (" in found(report, "workers' Ottla")[1]


def test_shipping_cures_workers_without_ottla_behind_connect(new_connect: Any) -> None:
    report = is_cured_by_shipping(new_connect)
    assert found(report, "session")[1].startswith("Spark Connect, Spark ")


def test_without_java_the_report_has_one_line_on_it() -> None:
    shown = run(SHOW, PATH="", JAVA_HOME=None)
    assert shown.stderr == ""
    assert "fail  java" in shown.stdout
    assert "no Java: JAVA_HOME unset, none on PATH" in shown.stdout
    assert shown.stdout.endswith("ok: False\n")


def test_without_java_no_session_starts_and_the_error_says_why(tmp_path: Path) -> None:
    shown = run(START, PATH="/usr/bin:/bin", JAVA_HOME=str(tmp_path))
    last = shown.stderr.splitlines()[-2:]
    assert last[0].startswith("ottla.errors.SparkError: starting Spark ")
    assert last[1].startswith(f"java: no Java: JAVA_HOME, {tmp_path}, has no bin/java; expected")


RELEASE = "import pyspark; pyspark.__version__ = {!r}\n"


@pytest.mark.parametrize(
    ("pyspark", "version", "status", "expected"),
    [
        ("4.0.1", "11.0.2", "fail", "Java 17 or newer"),
        ("4.0.1", "1.8.0_402", "fail", "Java 17 or newer"),
        ("4.0.1", "25.0.1", "ok", ""),
        ("3.5.9", "1.7.0_80", "fail", "Java 8, 11 or 17"),
        ("3.5.9", "1.8.0_402", "ok", ""),
        ("3.5.9", "11.0.2", "ok", ""),
        ("3.5.9", "25.0.1", "warn", "Java 8, 11 or 17"),
    ],
)
def test_java_is_named_with_its_version(
    tmp_path: Path, pyspark: str, version: str, status: str, expected: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    shown = " ".join(run(RELEASE.format(pyspark) + SHOW, JAVA_HOME=str(tmp_path)).stdout.split())
    assert f"{status} java {version} ({java})" in shown
    assert not expected or f"expected: {expected}" in shown
    assert (f"ok: {status != 'fail'}") in shown


def test_what_a_release_lacks_is_told() -> None:
    shown = " ".join(run(RELEASE.format("3.5.9") + SHOW).stdout.split())
    assert "ok pyspark 3.5.9" in shown
    assert "warn format('ottla') not in PySpark 3.5.9 expected: 4.0 or newer" in shown
    old = " ".join(run(RELEASE.format("3.4.4") + SHOW).stdout.split())
    assert "fail pyspark 3.4.4 expected: 3.5 to 4.3 to do: pip install 'pyspark>=3.5'" in old


def test_a_java_that_does_not_run_is_no_java(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    shown = " ".join(run(SHOW, JAVA_HOME=str(tmp_path)).stdout.split())
    assert f"fail java {java} prints no version" in shown


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (SHOW, "to do: pip install 'ottla[spark]'"),
        (START, "ottla.errors.MissingDependencyError: ottla.spark needs PySpark 3.5 or newer"),
    ],
)
def test_a_missing_pyspark_is_named_with_the_command_that_installs_it(code: str, says: str) -> None:
    blocked = "import sys; sys.modules['pyspark'] = None\n"
    shown = run(blocked + code)
    assert says in shown.stdout + shown.stderr


def test_importing_the_package_loads_no_pyspark() -> None:
    shown = run("import sys, ottla.spark; print(sorted({'pyspark', 'pyarrow'} & set(sys.modules)))")
    assert shown.stdout == "[]\n"


def test_workers_of_another_python_are_told_of(spark: Any) -> None:
    context = spark.sparkContext
    context.pythonVer, ours = "3.9", context.pythonVer
    try:
        report = ottla.spark.doctor(spark)
    finally:
        context.pythonVer = ours
    status, problem = found(report, "workers")
    assert status == "fail"
    assert "3.9" in problem


def test_another_version_on_the_workers_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ottla.spark.ship(cluster)
    monkeypatch.setattr("ottla.spark.work.worker.__version__", "9.9.9")
    function = run_in_worker("functools:partial", iter, cluster)
    with (
        pytest.raises(ottla.SparkError, match=r"the driver has 9\.9\.9") as raised,
        job("counting", cluster),
    ):
        cluster.range(0, 2, 1, 2).mapInArrow(function, "id bigint").collect()
    assert raised.value.__cause__ is not None


def test_a_session_that_does_not_answer_in_time_is_told_of(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "ANSWER_WITHIN_S", 0.01)
    (failure,) = ottla.spark.doctor(spark).failures()
    assert failure.startswith("workers: no answer within 0.01 s; ")


def test_a_stopped_session_is_told_of(sessions: Any, spark: Any) -> None:
    spark.stop()
    try:
        assert found(ottla.spark.doctor(spark), "session") == ("fail", "stopped")
        with (
            pytest.raises(ottla.SparkError, match=r"^counting needs a running session"),
            job("counting", spark),
        ):
            spark.range(3).collect()
    finally:
        sessions.get("spark", fresh=True)
