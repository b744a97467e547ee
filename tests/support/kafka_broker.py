"""One broker of Apache Kafka, and the jars of Spark's own Kafka source, both through Maven.

The jars are kept in `target/kafka`. A broker is a single process on a free port of 127.0.0.1 that
is broker and controller at once, with its files in a directory of the test.
"""

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from support.maven import Jar, MissingError, fetched

KAFKA_VERSION = "4.1.2"
KAFKA_CLIENTS_OF_SPARK = "3.9.1"
# Only what hangs takes as long, on any machine.
STARTS_WITHIN_S = 240
STOPS_WITHIN_S = 60


def broker_jars(version: str = KAFKA_VERSION) -> Path:
    """The directory of the jars of a broker.

    Raises:
        MissingError: no Java or Maven, or Maven reaches no repository.
    """
    return fetched(
        f"kafka/broker-{version}",
        [
            Jar("org.apache.kafka", f"kafka_{_scala_of(version)}", version),
            Jar("org.slf4j", "slf4j-nop", "1.7.36"),
        ],
    )


def _scala_of(version: str) -> str:
    major, minor = (int(part) for part in version.split(".")[:2])
    return "2.13" if (major, minor) >= (2, 4) else "2.12"


@lru_cache(maxsize=1)
def source_jars(spark_version: str) -> tuple[Path, ...]:
    """The jars that a session of Spark lacks to read from Kafka.

    A repository may lag behind Spark: of the versions that work with this one, the first that it
    has is taken.

    Raises:
        MissingError: no Java or Maven, or Maven reaches no repository.
    """
    spark = "org.apache.spark"
    why = ""
    for source, tokens in ((spark_version,) * 2, ("4.2.0", "4.0.0"), ("4.0.0", "4.0.0")):
        jars = [
            Jar(spark, "spark-sql-kafka-0-10_2.13", source, with_dependencies=False),
            Jar(spark, "spark-token-provider-kafka-0-10_2.13", tokens, with_dependencies=False),
            Jar(
                "org.apache.kafka", "kafka-clients", KAFKA_CLIENTS_OF_SPARK, with_dependencies=False
            ),
            Jar("org.apache.commons", "commons-pool2", "2.12.0"),
        ]
        try:
            return tuple(sorted(fetched(f"kafka/source-{source}", jars).glob("*.jar")))
        except MissingError as error:
            why = why or str(error)
    raise MissingError(why)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@dataclass(frozen=True)
class Broker:
    """A broker that answers."""

    bootstrap_servers: str
    log_directory: Path
    process_id: int

    def partition(self, topic: str, partition: int) -> Path:
        """The directory of a partition."""
        return self.log_directory / f"{topic}-{partition}"


class Kafka:
    """A broker on one port, which can be killed and started again on its files.

    Args:
        home: the directory of its files.
        version: the release; one before 3 gets a ZooKeeper beside it.
        is_formatted: whether there are logs already, below `logs`.
        settings: of the broker, with `_` for each dot.

    Raises:
        MissingError: what it takes is not here.
    """

    def __init__(
        self,
        home: Path,
        *,
        version: str = KAFKA_VERSION,
        is_formatted: bool = False,
        **settings: str,
    ) -> None:
        jars = broker_jars(version)
        self.home = home
        self.log_directory = home / "logs"
        self._needs_format = not is_formatted
        self._java = [
            *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{jars}/*"),
        ]
        self._port, other_port = _free_ports(2)
        self._zookeeper: ZooKeeper | None = None
        if version < "3":
            self._needs_format = False
            self._zookeeper = ZooKeeper(home, self._java, other_port)
            properties = self._zookeeper.settings_of_broker(self._port)
        else:
            properties = _settings_of_controller(self._port, other_port)
        properties |= {
            "log.dirs": str(self.log_directory),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "auto.create.topics.enable": "false",
            # Whatever the time of a record is, its segment stays.
            "log.retention.ms": "-1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "2097152",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self._config = home / "server.properties"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where it is, also while it is not there."""
        return f"127.0.0.1:{self._port}"

    @property
    def process_id(self) -> int:
        """The process of a broker that runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns once it takes connections."""
        if self._zookeeper is not None:
            self._zookeeper.start()
            self._zookeeper.wait_until_it_forgot_the_broker()
        with (self.home / "broker.txt").open("a+b") as output:
            if self._needs_format:
                self._format(output)
            self._process = _started([*self._java, "kafka.Kafka", str(self._config)], output)
            _wait_until_it_answers(self._process, self._port, output)

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ends it, and what it needs."""
        if self._process is not None:
            _stop(self._process)
        if self._zookeeper is not None:
            self._zookeeper.stop()

    def _format(self, output: IO[bytes]) -> None:
        cluster = "AAAAAAAAAAAAAAAAAAAAAQ"
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", self._config],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=STARTS_WITHIN_S,
        )
        self._needs_format = False


class ZooKeeper:
    """What keeps topics for releases of Kafka before 3."""

    def __init__(self, home: Path, java: list[str], port: int) -> None:
        self._home = home
        self._java = java
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def settings_of_broker(self, port: int) -> dict[str, str]:
        """What a broker is told to find it."""
        return {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": f"127.0.0.1:{self._port}",
            "zookeeper.connection.timeout.ms": str(STARTS_WITHIN_S * 1000),
            # A broker that was killed is waited for as long.
            "zookeeper.session.timeout.ms": "3000",
        }

    def start(self) -> None:
        """Starts it where it does not run."""
        if self._process is not None:
            return
        directory, tick_ms = self._home / "zookeeper", 500
        options = {
            "4lw.commands.whitelist": "dump",
            "admin.enableServer": "false",
            "jmx.log4j.disable": "true",
        }
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self._home / "zookeeper.txt").open("w+b") as output:
            self._process = _started(
                [
                    *self._java,
                    *(f"-Dzookeeper.{name}={value}" for name, value in options.items()),
                    *(main, str(self._port), str(directory), str(tick_ms)),
                ],
                output,
            )
            _wait_until_it_answers(self._process, self._port, output)

    def wait_until_it_forgot_the_broker(self) -> None:
        """Returns once the session of a broker that was killed is over: another is refused."""
        ends_at = time.monotonic() + STARTS_WITHIN_S
        while self._knows_the_broker():
            if time.monotonic() > ends_at:
                raise RuntimeError(f"ZooKeeper knows the broker after {STARTS_WITHIN_S} s")
            time.sleep(0.1)

    def _knows_the_broker(self) -> bool:
        # One that has just opened its port may leave what it is asked first without an answer.
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._port), 1) as connection,
        ):
            connection.sendall(b"dump")
            return b"/brokers/ids/" in b"".join(iter(lambda: connection.recv(65536), b""))
        return True

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            _stop(self._process)


@contextlib.contextmanager
def broker(
    home: Path, *, version: str = KAFKA_VERSION, is_formatted: bool = False, **settings: str
) -> Iterator[Broker]:
    """Runs a broker with its files under a directory; see `Kafka`."""
    kafka = Kafka(home, version=version, is_formatted=is_formatted, **settings)
    try:
        kafka.start()
        yield Broker(kafka.bootstrap_servers, kafka.log_directory, kafka.process_id)
    finally:
        kafka.stop()


def _settings_of_controller(port: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
    }


def _started(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, output: IO[bytes]) -> None:
    ends_at = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < ends_at and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    output.seek(0)
    said = output.read().decode("utf-8", "replace")[-2000:]
    raise RuntimeError(f"the broker did not answer within {STARTS_WITHIN_S} s: {said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
