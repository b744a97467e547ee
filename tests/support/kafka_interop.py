"""Real releases of Apache Kafka on directories that Ottla serves as well."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ottla
import pytest
from ottla.client import Admin, NewTopic
from support import kafka_broker
from support.maven import MissingError

# The newest release, and the last one before Kafka 4.
RELEASES = ("4.4.0", "3.9.1")
# The newest release, the last with ZooKeeper alone, and one that does not name records to blame.
RELEASES_OF_CLIENTS = ("4.4.0", "2.8.2", "1.1.1")
WITHIN_S = 60


class RunningKafka(NamedTuple):
    """A broker of a release, for clients."""

    servers: str
    release: str

    @property
    def names_culprits(self) -> bool:
        """Whether it says which records of a batch it refuses, since 2.4."""
        return self.release != "1.1.1"

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Creates a topic; `configs` have `_` for each dot."""
        topic = NewTopic(
            name, partitions, 1, {key.replace("_", "."): value for key, value in configs.items()}
        )
        with Admin(bootstrap_servers=self.servers) as admin:
            admin.create_topics([topic]).check()


@contextlib.contextmanager
def kafka_on(
    home: Path, release: str, *, is_formatted: bool = True, **settings: str
) -> Iterator[str]:
    """Runs a broker on the logs below a directory; without Java or Maven the test is skipped."""
    _require_jars(release)
    with kafka_broker.broker(
        home, version=release, is_formatted=is_formatted, **settings
    ) as broker:
        yield broker.bootstrap_servers
    assert [path.name for path in (home / "logs").glob("*-stray")] == []


@contextlib.contextmanager
def killed_kafka(home: Path, release: str, **settings: Any) -> Iterator[kafka_broker.Kafka]:
    """Runs a broker that the test may kill and start again."""
    _require_jars(release)
    kafka = kafka_broker.Kafka(home, version=release, **settings)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.stop()


def _require_jars(release: str) -> None:
    try:
        kafka_broker.broker_jars(release)
    except MissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def findings(home: Path) -> list[str]:
    """What an audit of the logs finds, but for what is no fault."""
    found = ottla.audit(home / "logs").findings
    return [finding["name"] for finding in found if finding["severity"] != "info"]
