"""Checks the setup: Java, PySpark, the workers' Python and the packages it needs."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ottla import __version__
from ottla.spark.setup.causes import errors_of_spark, sentence_of
from ottla.spark.work.kind import (
    MIN_VERSION,
    SOURCE_VERSION,
    describing_jobs,
    interrupt_jobs,
    is_connect,
    is_stopped,
    spark_version,
    tag_jobs,
)
from ottla.spark.work.private import java_of
from ottla.spark.work.worker import find_ottla

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["Check", "Report", "doctor"]

JAVA_OF_3_5 = (8, 11, 17)
MIN_JAVA = 17
PYSPARK_TESTED = (MIN_VERSION, (4, 3))
MAX_PYTHON_OF_3_5 = (3, 11)
MIN_PYARROW = 16
MIN_TEMP_BYTES = 1 << 30
"""Spark spills to disk what does not fit in memory; with less, sorting a moderate size fails."""
TAG = "ottla-doctor"
ANSWER_WITHIN_S = 120
"""Executors that are just starting, and busy clusters, take time."""
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
ANSI = "spark.sql.ansi.enabled"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class Check:
    """The result of checking one thing.

    Attributes:
        name: what was checked, such as ``java`` or ``workers' Ottla``.
        status: ``ok``, ``warn`` (works, but slowly or partly) or ``fail``.
        found: what was found.
        expected: what is expected; empty if anything is.
        remedy: what to do; empty if nothing.
    """

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        parts = [self.name, self.found]
        if self.status != "ok":
            parts += [f"expected {self.expected}", self.remedy]
        return ": ".join(parts[:2]) + "".join(f"; {part}" for part in parts[2:] if part)


@dataclass(frozen=True)
class Report:
    """The results of `ottla.spark.doctor`, in the order of checking.

    Attributes:
        checks: the results.
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check has failed; warnings are not failures."""
        return not self.failures()

    def failures(self) -> list[str]:
        """Returns a sentence for each check that has failed."""
        return [str(check) for check in self.checks if check.status == "fail"]

    def __str__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for check in self.checks:
            lines.append(f"{check.status:4}  {check.name:{width}}  {check.found}")
            if check.status != "ok":
                margin = " " * (width + 8)
                lines += [f"{margin}expected: {check.expected}"] if check.expected else []
                lines += [f"{margin}to do: {check.remedy}"] if check.remedy else []
        return "\n".join(lines)


def doctor(spark: SparkSession | None = None) -> Report:
    """Checks what Ottla's jobs need on Spark, and says what to fix.

    With a session, a job of a few tiny tasks queries the workers, for two minutes at most. Nothing
    is changed. Problems are in the report; no exception is raised.

    Args:
        spark: a session, classic or Spark Connect; by default the running one, if any.

    Example:
        >>> print(doctor())  # doctest: +SKIP
        ok    java             17.0.15 (/usr/bin/java)
        ok    pyspark          4.3.0
        ok    driver's Python  3.11.7 (/usr/bin/python3)
        ...
    """
    pyspark = _pyspark()
    if spark is None and pyspark.status != "fail":
        from pyspark.sql import SparkSession

        spark = SparkSession.getActiveSession()
    is_old = pyspark.status != "fail" and spark_version(pyspark.found) < SOURCE_VERSION
    here = [pyspark, _python(is_old=is_old), _pyarrow(), _temp_space("driver's temp space")]
    if is_old:
        here.append(_no_source(pyspark.found))
    if spark is not None:
        return Report((*here, *_session(spark)))
    if pyspark.status != "fail":
        here.append(
            Check("workers", "warn", "not checked", "a session", "ottla.spark.doctor(spark)")
        )
    return Report((_java(is_old=is_old), *here))


def _java(*, is_old: bool) -> Check:
    """Checks Java; `is_old` is for PySpark 3.5."""
    expected = "Java 8, 11 or 17" if is_old else f"Java {MIN_JAVA} or newer"
    remedy = "install Java 17 and point JAVA_HOME to it, or put java on the PATH"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        place = f"JAVA_HOME, {home}, has no bin/java" if home else "JAVA_HOME unset, none on PATH"
        return Check("java", "fail", f"no Java: {place}", expected, remedy)
    try:
        # The first line names the version in quotes: openjdk version "17.0.15" 2025-04-15.
        shown = subprocess.run(  # noqa: S603 - Spark is about to run the same program.
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
        version = shown.stderr.split('"')[1]
        first, second = [*version.split("."), "0"][:2]
        # Before 9, versions began with 1.
        major = int(second if first == "1" else first)
    except (OSError, subprocess.SubprocessError, IndexError, ValueError) as error:
        return Check("java", "fail", f"{java} prints no version: {error}", expected, remedy)
    found = f"{version} ({java})"
    if major < (JAVA_OF_3_5[0] if is_old else MIN_JAVA):
        return Check("java", "fail", found, expected, remedy)
    if is_old and major > JAVA_OF_3_5[-1]:
        return Check("java", "warn", found, expected, remedy)
    return Check("java", "ok", found)


def _pyspark() -> Check:
    lowest, highest = (".".join(map(str, version)) for version in PYSPARK_TESTED)
    expected = f"{lowest} to {highest}"
    try:
        import pyspark
    except ImportError as error:
        remedy = "pip install 'ottla[spark]'"
        return Check("pyspark", "fail", f"not installed ({error})", expected, remedy)
    version = spark_version(pyspark.__version__)
    if version < PYSPARK_TESTED[0]:
        remedy = f"pip install 'pyspark>={lowest}'"
        return Check("pyspark", "fail", pyspark.__version__, expected, remedy)
    if version > PYSPARK_TESTED[1]:
        return Check("pyspark", "warn", pyspark.__version__, expected, "newer than tested")
    return Check("pyspark", "ok", pyspark.__version__)


def _python(*, is_old: bool) -> Check:
    """Checks the driver's Python; `is_old` is for PySpark 3.5."""
    name, found = "driver's Python", f"{platform.python_version()} ({sys.executable})"
    if not is_old or sys.version_info[:2] <= MAX_PYTHON_OF_3_5:
        return Check(name, "ok", found)
    newest = ".".join(map(str, MAX_PYTHON_OF_3_5))
    remedy = f"run Python {newest}, here and on the workers, or PySpark 4.0"
    return Check(name, "warn", found, f"{newest} or older with PySpark 3.5", remedy)


def _no_source(version: str) -> Check:
    """Returns the check of the data source for a PySpark that has none."""
    remedy = "ottla.spark.read(spark, path) reads batches and records; streams need PySpark 4.0"
    return Check("format('ottla')", "warn", f"not in PySpark {version}", "4.0 or newer", remedy)


def _pyarrow() -> Check:
    try:
        import pyarrow as pa
    except ImportError as error:
        return _check_pyarrow("driver's pyarrow", f"missing ({error})", None)
    return _check_pyarrow("driver's pyarrow", pa.__version__, pa.__version__)


def _check_pyarrow(name: str, found: str, version: str | None) -> Check:
    if version is not None and int(version.split(".")[0]) >= MIN_PYARROW:
        return Check(name, "ok", found)
    remedy = f"pip install 'pyarrow>={MIN_PYARROW}'"
    return Check(name, "fail", found, f"{MIN_PYARROW} or newer", remedy)


def _temp_space(name: str) -> Check:
    directory = tempfile.gettempdir()
    return _check_space(name, shutil.disk_usage(directory).free, directory)


def _check_space(name: str, free: int, where: str) -> Check:
    found = f"{free / (1 << 30):.1f} GiB free in {where}"
    if free >= MIN_TEMP_BYTES:
        return Check(name, "ok", found)
    return Check(
        name, "warn", found, "1 GiB or more", "free some, or set TMPDIR and spark.local.dir"
    )


def _session(spark: SparkSession) -> list[Check]:
    """Checks the session and its workers, in a thread: a server may not answer for minutes."""
    seen: list[Check] = []
    # Of its own: another doctor of the session must not end with this one.
    tag = f"{TAG}-{uuid.uuid4()}"

    def look() -> None:
        try:
            seen.append(_kind(spark))
            seen.extend(_settings(spark))
            tag_jobs(spark, tag)
            with describing_jobs(spark, "ask the workers what they have"):
                answers = _ask(spark)
            seen.extend(_check_workers(answers))
        except errors_of_spark() as error:
            expected = "an answer of every worker"
            remedy = f"workers need Python {platform.python_version()}, as the driver, and pyarrow"
            seen.append(Check("workers", "fail", sentence_of(error), expected, remedy))
        except AttributeError:
            # PySpark's own, of a session that was stopped while it was asked.
            if not is_stopped(spark):
                raise

    def end_jobs() -> None:
        # The session may end meanwhile, and its jobs with it.
        with suppress(*errors_of_spark()):
            if not is_stopped(spark):
                interrupt_jobs(spark, tag)

    if is_stopped(spark):
        return [Check("session", "fail", "stopped", "a running session", "start a new one")]
    thread = threading.Thread(target=look, name=TAG, daemon=True)
    thread.start()
    thread.join(ANSWER_WITHIN_S)
    is_late = thread.is_alive()
    if is_late:
        threading.Thread(target=end_jobs, daemon=True).start()
    checks = list(seen)
    if not any(check.name.startswith("workers") for check in checks):
        found = f"no answer within {ANSWER_WITHIN_S} s" if is_late else "no answer"
        checks.append(
            Check("workers", "fail", found, "an answer of every worker", "look for free executors")
        )
    return checks


def _kind(spark: SparkSession) -> Check:
    if is_connect(spark):
        return Check("session", "ok", f"Spark Connect, Spark {spark.version}")
    context = spark.sparkContext
    found = f"classic, Java {java_of(context)}, master {context.master}"
    return Check("session", "ok", found)


def _look(find: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[str]]:
    """Returns the function that each task runs, pickled by value: it works without Ottla, too."""

    def look(items: Iterator[Any]) -> Iterator[str]:
        import json
        import platform
        import shutil
        import sys
        import tempfile
        import time

        seen: dict[str, Any] = {
            "host": platform.node(),
            "executable": sys.executable,
            "python": platform.python_version(),
            "temp": tempfile.gettempdir(),
            "free": shutil.disk_usage(tempfile.gettempdir()).free,
            "pyarrow": None,
            "ottla": None,
            "problem": None,
        }
        try:
            import pyarrow as pa

            seen["pyarrow"] = pa.__version__
        except ImportError:
            pass
        try:
            find()
            import ottla

            seen["ottla"] = f"{ottla.__version__} ({ottla.__path__[0]})"
        except ImportError as error:
            seen["problem"] = str(error)
        for _ in items:
            pass  # Spark discards a worker with input left.
        # Long enough to keep one fast executor from running all tasks.
        time.sleep(0.1)
        yield json.dumps(seen)

    return look


def _ask(spark: SparkSession) -> list[dict[str, Any]]:
    look = _look(find_ottla(spark))
    if not is_connect(spark):
        # Rows, not Arrow, to get an answer from workers without pyarrow.
        context = spark.sparkContext
        tasks = min(context.defaultParallelism, 1000)
        texts = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
        return [json.loads(text) for text in texts]

    def look_in_arrow(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"seen": list(look(batches))})

    rows = spark.range(0, 16, 1, 16).mapInArrow(look_in_arrow, "seen string").collect()
    return [json.loads(row.seen) for row in rows]


def _check_workers(answers: list[dict[str, Any]]) -> Iterator[Check]:
    def several(*names: str) -> str:
        """The distinct values of fields, up to three of them."""
        values = dict.fromkeys(" ".join(str(seen[name]) for name in names) for seen in answers)
        more = [f"and {len(values) - 3} more"] if len(values) > 3 else []  # noqa: PLR2004
        return ", ".join([*list(values)[:3], *more])

    hosts = len({seen["host"] for seen in answers})
    where = f" on {hosts} hosts" if hosts > 1 else ""
    python = several("python", "executable") + where
    ours = sys.version_info[:2]
    if all(seen["python"].split(".")[:2] == [str(part) for part in ours] for seen in answers):
        yield Check("workers' Python", "ok", python)
    else:
        expected = f"the driver's, {ours[0]}.{ours[1]}"
        yield Check("workers' Python", "fail", python, expected, "set PYSPARK_PYTHON to the same")
    bad = [seen["problem"] for seen in answers if seen["problem"]]
    if bad:
        remedy = f"ottla.spark.ship(spark), or pip install ottla=={__version__} on the workers"
        yield Check("workers' Ottla", "fail", bad[0], __version__, remedy)
    else:
        yield Check("workers' Ottla", "ok", several("ottla"))
    worst = min(answers, key=lambda seen: int((seen["pyarrow"] or "0").split(".")[0]))
    yield _check_pyarrow("workers' pyarrow", several("pyarrow"), worst["pyarrow"])
    least = min(answers, key=lambda seen: int(seen["free"]))
    place = f"{least['temp']} on {least['host']}"
    yield _check_space("workers' temp space", least["free"], place)


def _settings(spark: SparkSession) -> Iterator[Check]:
    def value(name: str) -> str | None:
        # Older versions of Spark do not know all of them.
        text: str | None = spark.conf.get(name, None)
        return text

    sockets = value(UNIX_SOCKETS)
    if sockets is None and spark_version(spark.version) >= (4, 1):
        sockets = "false"
    if sockets == "false":
        remedy = "start the session with it, as ottla.spark.session() does: tasks start faster"
        yield Check(UNIX_SOCKETS, "warn", "false", "true", remedy)
    elif sockets is not None:
        yield Check(UNIX_SOCKETS, "ok", sockets)
    yield Check(ANSI, "ok", f"{value(ANSI)} (either works)")
    rows = value(BATCH_ROWS) or "10000"
    if int(rows) > 0:
        yield Check(BATCH_ROWS, "ok", rows)
    else:
        remedy = "set it to 10000: otherwise a worker holds a whole partition of batches"
        yield Check(BATCH_ROWS, "warn", f"{rows}, no limit", "a limit", remedy)
