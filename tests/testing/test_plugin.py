"""The fixtures for pytest, used by a project that is not ours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
import socket

import pytest

seen = []

def ask(kafka, client=b"me"):
    host, port = kafka.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as connection:
        # ApiVersions 0.
        connection.sendall(bytes.fromhex("0000000c 0012 0000 00000001 0002") + client)
        assert connection.recv(4096)

@pytest.mark.parametrize("number", range(3))
def test_each_test_has_its_own_topic_on_one_broker(kafka, kafka_broker, number):
    topic = kafka.topic("orders", partitions=2)
    assert topic not in seen
    seen.append(topic)
    assert kafka_broker.topics == {topic: 2}
    kafka.fail("Metadata", error="INVALID_REQUEST")
    ask(kafka, b"ab")
    assert len(kafka.requests) == 1
    assert kafka_broker.groups == {}

def test_a_group_of_a_test_is_gone_behind_it(kafka):
    import confluent_kafka
    config = kafka.client_config(group_id=kafka.name("readers"), group_protocol="consumer")
    client = confluent_kafka.Consumer(config)
    client.subscribe([kafka.topic("orders")])
    client.poll(0)
    kafka.wait_for(group=kafka.name("readers"), state="Stable", members=1)
    client.close()

def test_what_is_wrong_is_shown_with_the_requests(kafka, kafka_broker):
    ask(kafka)
    assert not list(kafka_broker._desk.call("faults"))
    kafka.fail("ApiVersions", error="INVALID_REQUEST")
    ask(kafka)
    assert False

def test_requests_of_the_broker_alone_are_those_since_the_test_began(kafka_broker):
    ask(kafka_broker, b"xy")
    assert False

def test_what_is_its_own_and_what_is_the_brokers_is_told(kafka):
    topic = kafka.topic("orders", partitions=3)
    kafka.broker.create_topic("shared")
    assert (kafka.topics, kafka.groups, kafka.transactions) == ({topic: 3}, {}, {})
    assert kafka.producers(topic, 0) == ()
    assert len(kafka.columns(topic)) == 0
    with pytest.raises(AttributeError, match="take kafka.broker.clock"):
        kafka.clock
    with pytest.raises(AttributeError, match="take kafka.broker.create_topic"):
        kafka.create_topic("orders")
    with pytest.raises(AttributeError, match="kafka has no tpoic"):
        kafka.tpoic("orders")
    assert not hasattr(kafka, "_no_such")
    kafka.broker.delete_topic("shared")
"""

OPTIONS = """
import pytest

@pytest.fixture(scope="session")
def kafka_options():
    return {"config": {"num.partitions": 7}, "process": True}
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        check=False,
    )


@pytest.mark.parametrize("process", [False, True])
def test_a_project_uses_the_fixtures_and_sees_the_requests_of_a_failed_test(
    tmp_path: Path, process: bool
) -> None:
    if process:
        (tmp_path / "conftest.py").write_text(OPTIONS)
    (tmp_path / "test_project.py").write_text(PROJECT)
    done = run(tmp_path, "-p", "no:randomly")
    assert "2 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    shown = done.stdout.partition("requests to the Kafka broker")[2]
    assert re.search(r"^\+0\.\d{3} s  me  ApiVersions 0$", shown, re.MULTILINE), shown
    assert re.search(r"  me  ApiVersions 0  INVALID_REQUEST$", shown, re.MULTILINE), shown
    of_broker = shown.partition("requests to the Kafka broker")[2]
    assert re.search(r"^\+0\.\d{3} s  xy  ApiVersions 0$", of_broker, re.MULTILINE), of_broker
    assert "  me  " not in of_broker
    # Those of the tests before it are not among them.
    assert "ab  ApiVersions" not in shown


@pytest.mark.parametrize("process", [False, True])
def test_a_wait_in_vain_shows_the_line_of_the_test_alone(tmp_path: Path, process: bool) -> None:
    if process:
        (tmp_path / "conftest.py").write_text(OPTIONS)
    (tmp_path / "test_project.py").write_text(
        "def test_a_record_comes(kafka):\n"
        "    kafka.wait_for(topic=kafka.topic('orders'), records=1, timeout_s=0.01)\n"
        "def test_a_fault_strikes(kafka):\n"
        "    kafka.fail('Produce').wait(timeout_s=0.01)\n"
    )
    done = run(tmp_path)
    assert "2 failed" in done.stdout, done.stdout + done.stderr
    assert re.search(r"^E +TimeoutError: topic t\d-orders was to", done.stdout, re.MULTILINE)
    assert re.search(r"^E +TimeoutError: the fault was to strike", done.stdout, re.MULTILINE)
    places = re.findall(r"^(\S+\.py):\d+: ", done.stdout, re.MULTILINE)
    assert places == ["test_project.py"] * 2, done.stdout


def test_a_session_that_uses_none_of_it_loads_none_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(
        "import sys\n\n"
        "def test_nothing_is_loaded():\n"
        "    assert 'pytest_ottla' in sys.modules\n"
        "    assert 'ottla' not in sys.modules\n"
    )
    done = run(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_project_gives_the_broker_its_settings(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OPTIONS)
    (tmp_path / "test_project.py").write_text(
        "def test_the_default_is_seven(kafka):\n"
        "    topic = kafka.topic('orders', partitions=-1)\n"
        "    assert kafka.broker.topics == {topic: 7}\n"
    )
    done = run(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_each_worker_of_a_session_has_a_broker_of_its_own_and_tells_its_requests(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_project.py").write_text(
        "import socket\n"
        "import pytest\n\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_the_broker_is_of_this_worker(kafka, worker_id, number, tmp_path_factory):\n"
        "    place = tmp_path_factory.getbasetemp().parent / 'brokers'\n"
        "    with place.open('a') as file:\n"
        "        file.write(f'{worker_id} {kafka.bootstrap_servers}\\n')\n"
        "    host, port = kafka.bootstrap_servers.split(':')\n"
        "    with socket.create_connection((host, int(port))) as connection:\n"
        "        connection.sendall(bytes.fromhex('0000000c 0012 0000 00000001 0002 6d65'))\n"
        "        assert connection.recv(4096)\n"
        "    assert number < 3\n"
    )
    done = run(tmp_path, "-n", "2", "--dist", "each", "--basetemp", str(tmp_path / "temp"))
    assert "2 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    brokers = {tuple(line.split()) for line in (tmp_path / "temp/brokers").read_text().splitlines()}
    assert sorted(worker for worker, _ in brokers) == ["gw0", "gw1"]
    assert len({address for _, address in brokers}) == 2
    assert len(re.findall(r"  me  ApiVersions 0$", done.stdout, re.MULTILINE)) == 2
