"""Kafka's own clients and tools: one JVM that runs the main methods of many classes in turn."""

import base64
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.maven import Jar, MissingError, fetched

_SOURCES = Path(__file__).parents[1] / "interop" / "java"
# Only what hangs takes as long, on any machine.
PATIENCE_S: Final = 180


def client_jars(release: str) -> Path:
    """The directory of the jars of a Java client.

    Raises:
        MissingError: no Java or Maven, or Maven reaches no repository.
    """
    clients = Jar("org.apache.kafka", "kafka-clients", release)
    return fetched(f"kafka/clients-{release}", [clients, _LOGGING])


def tool_jars(release: str) -> Path:
    """The directory of the jars of Kafka's command-line tools, of which some are the broker's.

    Raises:
        MissingError: no Java or Maven, or Maven reaches no repository.
    """
    kafka = "org.apache.kafka"
    return fetched(
        f"kafka/tools-{release}",
        [Jar(kafka, "kafka-tools", release), Jar(kafka, "kafka_2.13", release), _LOGGING],
    )


_LOGGING = Jar("org.slf4j", "slf4j-nop", "1.7.36")


@dataclass(frozen=True)
class Ran:
    """What a main method left."""

    status: int
    output: str
    errors: str


class JavaSession:
    """A JVM with a directory of jars, and with classes of `tests/interop/java`."""

    def __init__(self, jars: Path, classes: Path, *names: str, start: str = "Session") -> None:
        """Compiles into a directory the classes that are named, and begins.

        Args:
            start: the class that takes requests, `Tools` for Kafka's tools.

        Raises:
            MissingError: no compiler for Java.
        """
        compiler = shutil.which("javac")
        if compiler is None:
            raise MissingError("no command javac: install a JDK, 17 or newer")
        sources = [_SOURCES / f"{name}.java" for name in {"Session", start, *names}]
        subprocess.run(
            [compiler, "-nowarn", "-cp", f"{jars}/*", "-d", classes, *sources],
            check=True,
            timeout=PATIENCE_S,
        )
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._process = subprocess.Popen(
            [*command, "-cp", f"{classes}:{jars}/*", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """Ends the JVM, whatever it does."""
        self._process.kill()
        self._process.communicate()

    def run(self, name: str, *arguments: str, stdin: str = "") -> Ran:
        """Runs a main method to its end, and what it would do when the JVM ends."""
        words = (name, stdin, *arguments)
        line = " ".join(base64.b64encode(word.encode()).decode() for word in words)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE_S, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            watch.cancel()
        assert answer, f"{name} {arguments} ended its JVM, or took longer than {PATIENCE_S} s"
        status, output, errors = answer.rstrip("\n").split(" ")
        return Ran(
            int(status), base64.b64decode(output).decode(), base64.b64decode(errors).decode()
        )
