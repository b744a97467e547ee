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
            Jar("org.apache.kafka", "kafka_2.13", version),
            Jar("org.slf4j", "slf4j-nop", "1.7.36"),
        ],
    )


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


@contextlib.contextmanager
def broker(
    home: Path, *, version: str = KAFKA_VERSION, is_formatted: bool = False, **settings: str
) -> Iterator[Broker]:
    """Runs a broker with its files under a directory; `settings` have `_` for each dot.

    Args:
        version: the release.
        is_formatted: whether there are logs already, below `logs`.

    Raises:
        MissingError: what it takes is not here.
    """
    jars = broker_jars(version)
    port, controller = _free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(home / "logs"),
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
    config = home / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    with (home / "broker.txt").open("w+b") as output:
        if not is_formatted:
            cluster = "AAAAAAAAAAAAAAAAAAAAAQ"
            subprocess.run(
                [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", config],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=STARTS_WITHIN_S,
            )
        process = subprocess.Popen(
            [*java, "kafka.Kafka", config],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            _wait_until_it_answers(process, port, output)
            yield Broker(f"127.0.0.1:{port}", home / "logs", process.pid)
        finally:
            _stop(process)


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
