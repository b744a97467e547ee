"""Spark as users meet it: in this process, as a cluster of its own, behind Spark Connect.

A JVM costs memory and seconds, so one kind runs at a time: asking for another stops the one before.
The workers of the cluster and of Spark Connect run a Python without Ottla.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ottla.spark
from ottla.spark.work.kind import require_pyspark
from support.maven import Jar, fetched

HOST = "127.0.0.1"
# Only what hangs takes as long, on any machine.
STARTED_WITHIN_S = 240
# Tests are short: the second compiler of the JVM costs more than it gives.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}
CLUSTER_SETTINGS = {
    **SETTINGS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def python_without_ottla(directory: Path) -> str:
    """Write a command that runs this interpreter with everything it has installed but Ottla.

    Neither the links an editable installation leaves in `site-packages` nor PYTHONPATH count.
    """
    packages = directory / "packages"
    packages.mkdir(parents=True)
    for site in (path for path in sys.path if path.endswith("site-packages")):
        for entry in Path(site).iterdir():
            link = packages / entry.name
            if "ottla" not in entry.name and entry.suffix != ".pth" and not link.exists():
                link.symlink_to(entry)
    command = directory / "python"
    # Spark hands its own modules over in PYTHONPATH; of the rest, what the test run has is dropped.
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n'
    )
    command.chmod(0o755)
    return str(command)


def environment(python: str, directory: Path) -> dict[str, str]:
    """Return the environment of a JVM that is no child of this test's session."""
    ours = ("PYTHONPATH", "PYSPARK_", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    return {
        **kept,
        "SPARK_HOME": str(Path(pyspark.origin).parent),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory),
        "PYSPARK_PYTHON": python,
    }


def configured(directory: Path) -> dict[str, str]:
    """Return the variables of a user who configures Spark for all programs, as for sessions here.

    What a program sets itself comes before it.
    """
    settings = "".join(f"{name} {value}\n" for name, value in SETTINGS.items())
    (directory / "spark-defaults.conf").write_text(settings)
    return {"SPARK_CONF_DIR": str(directory)}


class Processes:
    """Spark's own programs, each started as a process and stopped by its handle."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = python_without_ottla(directory)
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str) -> Path:
        """Start one of Spark's main classes and return the file of its log."""
        environ = environment(self.python, self.directory)
        environ |= {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
        log = self.directory / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [Path(environ["SPARK_HOME"]) / "bin" / "spark-class", *command],
                cwd=self.directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(process)
        return log

    def wait_until(self, ready: Callable[[], bool], log: Path) -> None:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not ready():
            stopped = any(process.poll() is not None for process in self.running)
            if stopped or time.monotonic() > deadline:
                raise RuntimeError(f"Spark did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running.clear()


def says(log: Path, words: str) -> Callable[[], bool]:
    return lambda: words in log.read_text()


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


class Standalone(Processes):
    """A master and two workers of one core each."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        port = free_port()
        self.master = f"spark://{HOST}:{port}"
        package = "org.apache.spark.deploy"
        log = self.start(
            "master", f"{package}.master.Master",
            "--host", HOST, "--port", str(port), "--webui-port", "0",
        )  # fmt: skip
        self.wait_until(lambda: listens(port), log)
        logs = [
            self.start(
                name, f"{package}.worker.Worker",
                "--host", HOST, "--port", "0", "--webui-port", "0",
                "--cores", "1", "--memory", "1g",
                "--work-dir", str(directory / name), self.master,
            )
            for name in ("first", "second")
        ]  # fmt: skip
        for log in logs:
            self.wait_until(says(log, "registered with master"), log)


def connect_jars() -> list[str]:
    """The options with which Spark finds Connect's server, which PySpark brings since 4.0."""
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    if any((Path(pyspark.origin).parent / "jars").glob("spark-connect_*.jar")):
        return []
    version = require_pyspark().__version__
    server = Jar("org.apache.spark", "spark-connect_2.12", version, with_dependencies=False)
    jars = fetched(f"spark-connect-{version}", [server])
    return ["--jars", ",".join(map(str, jars.glob("*.jar")))]


class Connect(Processes):
    """A server of Spark Connect on two cores."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        port = free_port()
        self.remote = f"sc://{HOST}:{port}"
        settings = {**SETTINGS, "spark.connect.grpc.binding.port": str(port)}
        settings["spark.python.unix.domain.socket.enabled"] = "true"
        log = self.start(
            "connect", "org.apache.spark.deploy.SparkSubmit",
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master", "local[2]",
            *(word for name in settings for word in ("--conf", f"{name}={settings[name]}")),
            *connect_jars(),
            "spark-internal",
        )  # fmt: skip
        self.wait_until(lambda: listens(port), log)


class Sessions:
    """Returns a session of each kind and lets one kind run at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kind = ""
        self.spark: Any = None
        self.processes: Processes | None = None
        self.count = 0

    def get(self, kind: str, *, fresh: bool = False) -> Any:
        """Return the session of a kind.

        Args:
            kind: ``spark``, ``cluster`` or ``connect``.
            fresh: end the present session first; what was shipped with it is gone.
        """
        if kind != self.kind:
            self.close()
            self.count += 1
            folder = self.directory / f"{kind}-{self.count}"
            if kind == "cluster":
                self.processes = Standalone(folder)
            elif kind == "connect":
                self.processes = Connect(folder)
            # Last: where Spark did not start, the next test must not run on another kind.
            self.kind = kind
        elif fresh or self.spark is None:
            self._end_session()
        else:
            return self.spark
        self.spark = self._start()
        return self.spark

    def close(self) -> None:
        """End the session and whatever runs for it."""
        self._end_session()
        if self.processes is not None:
            self.processes.stop()
            self.processes = None
        self.kind = ""

    def _start(self) -> Any:
        if isinstance(self.processes, Connect):
            return ottla.spark.session(self.processes.remote)
        if isinstance(self.processes, Standalone):
            with environ(PYSPARK_PYTHON=self.processes.python):
                return ottla.spark.session(self.processes.master, **CLUSTER_SETTINGS)
        with environ(PYSPARK_PYTHON=sys.executable):
            return ottla.spark.session("local[2]", **SETTINGS)

    def _end_session(self) -> None:
        if self.spark is None:
            return
        self.spark.stop()
        self.spark = None
        for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
            os.environ.pop(name, None)


@contextmanager
def environ(**changed: str | None) -> Iterator[None]:
    """Set variables, or take away those that are None, while the block runs."""
    before = {name: os.environ.get(name) for name in changed}
    _set(changed)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def what_is_missing() -> str:
    """Say in a line why Spark cannot run here, or nothing."""
    needed = [check for check in ottla.spark.doctor().checks if check.name in {"java", "pyspark"}]
    return next((f"needs Spark: {check}" for check in needed if check.status == "fail"), "")
