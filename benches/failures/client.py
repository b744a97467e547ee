"""A client in the hand of a scenario: its agent as a process, asked in turn, and never for ever."""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

OK = "ok"
NO_ANSWER = "no answer"
TIMEOUT_MS = 8_000
"""The time-out that every client is given for what it sends and asks."""
PATIENCE_S = 4 * TIMEOUT_MS / 1000
"""What has not come by then does not come."""

AT_ONCE, IN_TIME, LATE, NEVER = "at once", "within its time-out", "late", "never"


@dataclass(frozen=True)
class Answer:
    """What came of a command.

    Attributes:
        told: what came of each record, by `send`.
        read: what a poll returned.
        error: what the command raised, or `ok`.
        words: texts of the errors.
    """

    seconds: float
    error: str = OK
    told: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    version: str = ""

    @property
    def time(self) -> str:
        """Return how long it took, in classes that a busy machine does not change."""
        if self.error == NO_ANSWER:
            return NEVER
        share = self.seconds * 1000 / TIMEOUT_MS
        return AT_ONCE if share < 0.6 else IN_TIME if share < 1.5 else LATE


class Client:
    """An agent that runs."""

    def __init__(self, command: Sequence[str]) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "python"), str(ROOT / "tests")])
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._has_ended = False

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def ask(self, name: str, *words: str) -> Answer:
        """Return what came of a command; without an answer in time, the client is ended."""
        began = time.monotonic()
        if self._has_ended:
            return Answer(0, NO_ANSWER)
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join((name, *words)) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            line = ""
        if not line:
            self._has_ended = True
            self._process.kill()
            return Answer(PATIENCE_S, NO_ANSWER)
        return Answer(time.monotonic() - began, **json.loads(line))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


JAVA_RELEASE = "4.4.0"
PYTHON_AGENTS = {
    "aiokafka": "aio",
    "kafka-python": "kafka_python",
    "confluent-kafka": "confluent",
    "Ottla": "ottla",
}
JAVA = "Java"
CLIENTS = (*PYTHON_AGENTS, JAVA)


def command_of(client: str) -> list[str]:
    """Return the command that starts a client's agent.

    Raises:
        support.maven.MissingError: Java's client is asked for, and something of it is not here.
    """
    if client != JAVA:
        return [sys.executable, "-m", f"benches.failures.agents.{PYTHON_AGENTS[client]}"]
    from support.java_session import client_jars
    from support.maven import MissingError

    jars = client_jars(JAVA_RELEASE)
    compiler = shutil.which("javac")
    if compiler is None:
        raise MissingError("no command javac: install a JDK, 17 or newer")
    source = Path(__file__).parent / "java" / "Agent.java"
    classes = ROOT / "target" / "kafka" / "failures"
    made = classes / "Agent.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-cp", f"{jars}/*", "-d", classes, source], check=True)
    return [
        "java",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{classes}:{jars}/*",
        "Agent",
        JAVA_RELEASE,
    ]
