"""The first screen of the README: its commands say what it shows, and its test passes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ottla.testing import Broker
from support.served import served

SCREEN_LINES = 45
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PORT = re.compile(r"(?<=:)\d+$")
START = "from ottla_command import main; main()"
SEND = """
import confluent_kafka


def send_order(bootstrap_servers, topic):
    client = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap_servers, "retry.backoff.ms": 10, "log_level": 0}
    )
    client.produce(topic, b"1")
    assert client.flush(30) == 0


"""


def blocks(root: Path, language: str) -> list[str]:
    lines = (root / "README.md").read_text().splitlines(keepends=True)
    screen = "".join(lines[:SCREEN_LINES])
    return [text for kind, text in BLOCK.findall(screen) if kind == language]


def test_the_audit_says_what_is_shown_of_it(root: Path) -> None:
    audit, _ = blocks(root, "console")
    command, *shown = audit.splitlines()
    assert command.startswith("$ ottla ")
    ran = subprocess.run(
        [sys.executable, "-c", START, *command.split()[2:]],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    said = iter(ran.stdout.splitlines())
    for line in shown:
        assert line in said, line


def test_the_broker_is_ready_as_is_shown(root: Path) -> None:
    _, serve = blocks(root, "console")
    command, shown = serve.splitlines()
    assert command.startswith("$ ottla serve ")
    with served(*command.split()[3:]) as broker:
        name, address = next(iter(broker.ready.items()))
    # It is on a free port here.
    assert shown == f"ready: {name}={PORT.sub('9092', address)}"


def test_the_test_of_the_broker_passes(root: Path, tmp_path: Path) -> None:
    text, _ = blocks(root, "python")
    (tmp_path / "test_orders.py").write_text(SEND + text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_client_tells_one_refused_record_from_the_others(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = blocks(root, "python")
    with Broker() as broker:
        broker.create_topic("orders", 1, cleanup_policy="compact")
        shown = text.replace("127.0.0.1:9092", broker.bootstrap_servers)
        exec(compile(shown, "README.md", "exec"), {"keys": [b"alice", None, b"bob"]})  # noqa: S102
    first, refused, last = capsys.readouterr().out.splitlines()
    assert refused.startswith("refused: ")
    assert [int(first), int(last)] == [0, 1]
