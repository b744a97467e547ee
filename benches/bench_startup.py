"""Starting up: what a user waits for before anything is read."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ottla.testing import Broker

from benches.whole import OTTLA, write_log_directory

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="startup")]


@pytest.mark.parametrize("modules", ["numpy", "numpy, ottla"])
def test_the_package_is_imported(benchmark: Any, modules: str) -> None:
    command = [sys.executable, "-c", f"import {modules}"]
    assert benchmark(lambda: subprocess.run(command, check=False).returncode) == 0


def test_a_small_log_is_audited_by_the_command(benchmark: Any, tmp_path: Path) -> None:
    write_log_directory(tmp_path, 10_000, partitions=1)
    command = [str(OTTLA), "audit", str(tmp_path)]

    def audit() -> int:
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert benchmark(audit) == 0


MOCK = """
import sys
from confluent_kafka import Producer
client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
broker = next(iter(client.list_topics(timeout=10).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.readline()
"""
API_VERSIONS = bytes.fromhex("0000000c 0012 0000 00000001 0002 6d65")


@contextmanager
def mock() -> Iterator[str]:
    """Librdkafka's mock cluster, in a process of Python."""
    command = [sys.executable, "-c", MOCK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()


@contextmanager
def ours() -> Iterator[str]:
    with Broker(process=True) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("serving", [mock, ours])
def test_a_broker_is_there_in_a_process_of_its_own(benchmark: Any, serving: Any) -> None:
    """To the first answer to ApiVersions, and to its end; both need bytecode of what they load."""

    def ask() -> bytes:
        with serving() as address:
            host, _, port = address.partition(":")
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(API_VERSIONS)
                return bytes(connection.recv(4096))

    assert benchmark(ask)
