"""The fixtures for pytest, used by a project that is not ours."""

import subprocess
import sys
from pathlib import Path

PROJECT = """
import socket

import pytest

seen = []

@pytest.mark.parametrize("number", range(3))
def test_each_test_has_its_own_topic_on_one_broker(kafka, kafka_broker, number):
    topic = kafka.topic("orders", partitions=2)
    assert topic not in seen
    seen.append(topic)
    assert kafka_broker.topics == {topic: 2}
    kafka.fail("Metadata", error="INVALID_REQUEST")

def test_what_is_wrong_is_shown_with_the_requests(kafka, kafka_broker):
    host, port = kafka.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as connection:
        # ApiVersions 0.
        connection.sendall(bytes.fromhex("0000000c 0012 0000 00000001 0002 6d65"))
        assert connection.recv(4096)
    assert not list(kafka_broker.run(lambda broker: broker.faults))
    assert False
"""


def test_a_project_uses_the_fixtures_and_sees_the_requests_of_a_failed_test(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["ottla.testing.plugin"]\n')
    (tmp_path / "test_project.py").write_text(PROJECT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "requests to the Kafka broker" in done.stdout
    assert "me ApiVersions 0 errors []" in done.stdout
