"""Those who watch a served broker: its numbers, its health, its log of requests."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from ottla.net.log_lines import LineFile
from ottla.protocol.messages.metadata import MetadataRequest
from support.commands import Run
from support.served import client_of, json_lines, served


def test_numbers_and_health_are_where_the_first_line_says() -> None:
    with served("--metrics", "0", "--topic", "orders:3") as broker:
        assert broker.page("/health") == (200, '{"status": "ready", "wrong": {}}\n')
        with client_of(broker.address) as client:
            client.ask(MetadataRequest(topics=None), 9)
            status, page = broker.page("/metrics")
        lines = page.splitlines()
        assert status == 200
        assert "kafka_controller_kafkacontroller_globalpartitioncount 3" in lines
        assert (
            'kafka_network_requestmetrics_requests_total{request="Metadata",version="9"} 1' in lines
        )
        connections = "kafka_server_socket_server_metrics_connections"
        software = 'clientSoftwareName="unknown",clientSoftwareVersion="unknown"'
        rest = 'listener="PLAINTEXT",networkProcessor="0"'
        assert f"{connections}{{{software},{rest}}} 1" in lines
        assert broker.page("/nothing")[0] == 404
        assert broker.end() == (0, "")


def test_every_request_is_a_line_of_json_of_its_file_to_which_it_is_appended(
    tmp_path: Path,
) -> None:
    file = tmp_path / "requests.log"
    for _ in range(2):
        options = ("--request-log", "json", "--request-log-file", file)
        with served(*options, "--topic", "orders") as broker:
            with client_of(broker.address, "client\n") as client:
                for _ in range(20):
                    client.ask(MetadataRequest(topics=None), 9)
            assert broker.end() == (0, "")
    lines = json_lines(file)
    assert len(lines) == 40
    assert {line["requestHeader"]["clientId"] for line in lines} == {"client\n"}
    assert lines[0]["connection"].startswith(f"{broker.address[0]}:")
    assert 0 <= lines[0]["totalTimeMs"] < 30_000
    assert file.stat().st_mode & 0o077 == 0


def test_the_log_of_requests_is_on_standard_error_without_a_file() -> None:
    with served("--request-log", "text") as broker:
        with client_of(broker.address) as client:
            client.ask(MetadataRequest(topics=None), 9)
        status, complaints = broker.end()
    (line,) = complaints.splitlines()
    assert (status, line[:50]) == (0, "Completed request:RequestHeader(apiKey=METADATA, a")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has such a device")
def test_a_log_that_cannot_be_written_is_told_and_clients_are_served_on() -> None:
    options = ("--request-log", "text", "--request-log-file", "/dev/full")
    with served(*options, "--topic", "orders") as broker:
        with client_of(broker.address) as client:
            for _ in range(50):
                assert len(client.ask(MetadataRequest(topics=None), 9).topics) == 1
        status, complaints = broker.end()
    assert status == 0
    first = "ottla: cannot write the log of requests: No space left on device (1 lines lost)"
    assert complaints.splitlines()[0] == first


def test_lines_that_are_lost_are_counted_and_told_once_a_second() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    complaints: list[str] = []
    try:
        file = LineFile(writer, complaints.append)
        for _ in range(100):
            file.write("x")
    finally:
        os.close(writer)
    assert file.lost == 100
    assert os.strerror(errno.EPIPE) in complaints[0]
    assert len(complaints) < 10


def test_a_reader_that_stops_for_a_while_gets_whole_lines_and_how_many_are_lost_is_known() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    received: list[bytes] = []

    def read() -> None:
        with suppress(BlockingIOError):
            while True:
                received.append(os.read(reader, 1 << 16))

    try:
        file = LineFile(writer, lambda _: None, patience_ms=1)
        lines = [f"{number} {'x' * (number * 7919 % 9000)}" for number in range(200)]
        for number, line in enumerate(lines):
            file.write(line)
            if number in {100, 150, 199}:
                read()
        # With it comes the rest of a line that was begun.
        file.write("the last one")
        read()
    finally:
        os.close(reader)
        os.close(writer)
    written = b"".join(received).decode().splitlines()
    assert written.pop() == "the last one"
    assert set(written) <= set(lines)
    assert len(written) + file.lost == len(lines)
    assert 0 < file.lost < 190


def test_a_client_is_served_where_the_reader_of_the_log_does_not_go_on() -> None:
    with served("--request-log", "json", "--topic", "orders:50") as broker:
        with client_of(broker.address) as client:
            for _ in range(60):
                assert len(client.ask(MetadataRequest(topics=None), 9).topics[0].partitions) == 50
        status, complaints = broker.end()
    assert status == 0
    assert complaints


def test_a_client_is_served_where_nobody_reads_the_log_on_standard_error() -> None:
    with served("--request-log", "json", stderr=subprocess.PIPE) as broker:
        assert broker.process.stderr is not None
        broker.process.stderr.close()
        with client_of(broker.address) as client:
            for _ in range(20):
                client.ask(MetadataRequest(topics=None), 9)
        broker.process.stderr = None
        assert broker.end()[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--metrics", "x"], 64, "'x' is no port from 0 to 65535"),
        (["--metrics", "70000"], 64, "'70000' is no port"),
        (["--request-log", "xml"], 64, "'xml' is not one of"),
        (["--request-log-file", "a"], 64, "is for --request-log text or json"),
        (
            ["--request-log", "json", "--request-log-file", "/no/dir/a"],
            3,
            "/no/dir/a: No such file",
        ),
    ],
)
def test_options_that_cannot_be_are_one_message(
    run: Run, options: list[str], status: int, said: str
) -> None:
    ran = run("serve", "--port", "0", *options)
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
