"""Kafka's own classes as workers: the project in `java`, built by Maven into `target/java`.

A Java worker is warm before it says that it is ready: three seconds of the job itself, long after
HotSpot's last compiler has taken it, and fifteen seconds give the same figures. What differs is one
start from another, by a fifth, as what is inlined falls out: who compares takes several starts.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benches.data import Data
from benches.maven import MavenError, run_maven
from benches.worker import ROOT, Worker, WorkerError

OLDEST = 17
_PROJECT = Path(__file__).with_name("java")
_TARGET = ROOT / "target" / "java"
# A young generation that a race seldom fills, collected by a thread that is not timed.
_MEMORY = ("-Xms1g", "-Xmx1g", "-XX:+UseSerialGC")


def missing() -> str | None:
    """Say what a Java worker needs and is not here; nothing where all of it is."""
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        return f"no Java: install a JDK {OLDEST} or newer, as the commands java and javac"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None:
        return f"java -version names no version: install a JDK {OLDEST} or newer"
    if int(version.group(1)) < OLDEST:
        return f"Java {version.group(1)} is too old: install a JDK {OLDEST} or newer"
    if shutil.which("mvn") is None:
        return "no Maven: install it, as the command mvn"
    return None


def _build() -> None:
    built = _TARGET / ".built"
    sources = [path for path in _PROJECT.rglob("*") if path.is_file()]
    if built.exists() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return
    shutil.rmtree(_TARGET, ignore_errors=True)
    try:
        run_maven(_PROJECT / "pom.xml", ["package", "dependency:copy-dependencies"])
    except MavenError as error:
        raise WorkerError(str(error)) from None
    built.touch()


@contextmanager
def java_worker(job: str, data: Data, *, calls: int = 1) -> Iterator[Worker]:
    """Start a job of `Race.java` on the log of some data, so many calls a run.

    Raises:
        WorkerError: there is no Java or Maven, they cannot build it, or Kafka refuses the data.
    """
    if (why := missing()) is not None:
        raise WorkerError(why)
    _build()
    classes = os.pathsep.join((str(_TARGET / "classes"), str(_TARGET / "dependency" / "*")))
    with tempfile.TemporaryDirectory(prefix="ottla-java-") as place:
        log = Path(place) / "log"
        log.write_bytes(data.log)
        command = ["java", *_MEMORY, "-cp", classes, "ottla.Race", job, str(log), str(calls)]
        with closing(Worker(command)) as worker:
            if worker.records != calls * data.records:
                raise WorkerError(
                    f"Java saw {worker.records} records, expected {calls * data.records}"
                )
            yield worker
