"""`ottla serve`: one line when it is ready, a clean end, and one line for what is wrong."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import request_header
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from support.commands import Run

COMMAND = [sys.executable, "-c", "from ottla_command import main; main()", "serve"]


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"ready: bootstrap\.servers=(\S+):(\d+)( .*)?\n", line)
            assert found is not None, line
            yield process, (found[1], int(found[2]))
        finally:
            process.kill()


def topics_at(address: tuple[str, int]) -> dict[str | None, int]:
    with socket.create_connection(address, timeout=10) as connection:
        request = b"".join(encode(MetadataRequest, 9)(MetadataRequest(topics=None)))
        frame = request_header(3, 9, 1, "test") + request
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        answered = connection.makefile("rb")
        size = int.from_bytes(answered.read(4), "big")
        answer = decode(MetadataResponse, 9)(answered.read(size), 5)[0]
    return {topic.name: len(topic.partitions) for topic in answer.topics}


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_from_its_ready_line_until_it_is_told_to_end(end: signal.Signals) -> None:
    with served("--topic", "orders:3", "--topic", "payments", "--set", "num.partitions=2") as (
        process,
        address,
    ):
        assert topics_at(address) == {"orders": 3, "payments": 2}
        process.send_signal(end)
        _, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints) == (0, "")


def test_settings_of_a_file_are_those_of_a_broker_and_of_the_command_line_win(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "# ours\nnum.partitions=5\nauto.create.topics.enable : false\nbackground.threads=4\n"
    )
    with served("--config", str(file), "--set", "num.partitions=4", "--topic", "a") as (
        process,
        address,
    ):
        assert topics_at(address) == {"a": 4}
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)
        assert complaints == "ottla: background.threads has no effect here\n"


def test_settings_are_read_from_standard_input_too() -> None:
    done = subprocess.run(
        [*COMMAND, "--port", "0", "--config", "-"],
        input="# ours\nnum.partitions=many\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "Invalid value many for configuration num.partitions" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "num.partition=3"], "did you mean num.partitions?"),
        (["--set", "num.partitions=many"], "Invalid value many for configuration num.partitions"),
        (["--set", "num.partitions"], "'num.partitions' is not KEY=VALUE"),
        (["--topic", "a b"], "Topic name 'a b' is invalid"),
        (["--topic", "a:b"], "'b' is no number of partitions"),
        (["--topic", "a:0"], "non-positive"),
        (["--topic", ""], "it is empty"),
        (["--port", "70000"], "70000 is not in the range"),
        (["--kafka-version", "1.0"], "the oldest is 2.4"),
        (["--kafka-version", "new"], "no release of Kafka"),
        (["--kafka-version", "3.95"], "Kafka 3.95 is not known; releases are 2.4, 2.5, 2.6"),
        (["--kafka-version", "9.9"], "Kafka 9.9 is not known"),
        (["--data", "a", "--set", "log.dirs=b"], "--data says where logs are: leave out --set"),
    ],
)
def test_a_wrong_command_line_is_one_message_and_status_64(
    run: Run, options: list[str], said: str
) -> None:
    ran = run("serve", "--port", "0", *options)
    assert (ran.status, ran.out) == (64, "")
    assert said in " ".join(ran.err.split())


def test_a_port_that_is_taken_and_a_file_that_is_not_there_are_told_with_status_3(
    run: Run,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = run("serve", "--port", port)
    assert (ran.status, ran.out) == (3, "")
    assert port in ran.err
    assert ran.err.count("\n") == 1
    ran = run("serve", "--config", "/no/such/file")
    assert (ran.status, ran.err) == (3, "ottla: /no/such/file: No such file or directory\n")
