"""`ottla serve` as a process of its own."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

from ottla.protocol.codec import decode, encode
from ottla.protocol.header import request_header, response_header
from ottla.protocol.wire import Message, schema

COMMAND = [sys.executable, "-c", "from ottla_command import main; main()", "serve"]
WITHIN_S = 30


class Served:
    """A broker that is ready.

    Attributes:
        process: it.
        ready: what its first line says, by name.
    """

    def __init__(self, process: "subprocess.Popen[str]", line: str) -> None:
        found = re.fullmatch(r"ready: ((?:\S+=\S+ ?)+)\n", line)
        assert found is not None, line
        self.process = process
        self.ready = dict(each.split("=", 1) for each in found[1].split())
        self.address = address_of(self.ready["bootstrap.servers"])

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to end; returns its status, and what it has complained of."""
        self.process.send_signal(how)
        _, complaints = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, complaints

    def page(self, path: str) -> tuple[int, str]:
        """A page of its metrics endpoint."""
        _, _, authority, _ = self.ready["metrics"].split("/")
        client = HTTPConnection(*address_of(authority), timeout=WITHIN_S)
        try:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        finally:
            client.close()


def address_of(authority: str) -> tuple[str, int]:
    host, _, port = authority.rpartition(":")
    return host, int(port)


@contextmanager
def served(
    *options: object, stderr: int | IO[Any] = subprocess.PIPE, port: bool = True
) -> Iterator[Served]:
    """A broker with options, on a free port unless its settings say where."""
    place = ["--port", "0"] if port else []
    with subprocess.Popen(
        [*COMMAND, *place, *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate(timeout=WITHIN_S)
            yield Served(process, line)
        finally:
            process.kill()


class SocketClient:
    """A client of a socket, which may speak TLS."""

    def __init__(self, sock: socket.socket, client_id: str = "test") -> None:
        self.socket = sock
        self.client_id = client_id

    def ask(self, request: Message, version: int) -> Any:
        """The answer to a request."""
        key = schema(type(request)).api_key
        assert key is not None
        frame = request_header(key, version, 1, self.client_id)
        frame += b"".join(encode(type(request), version)(request))
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        answered = self.receive()
        module = sys.modules[type(request).__module__]
        response = getattr(module, type(request).__name__.removesuffix("Request") + "Response")
        return decode(response, version)(answered, len(response_header(key, version, 1)))[0]

    def receive(self) -> bytes:
        """The next frame."""
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data


@contextmanager
def client_of(address: tuple[str, int], client_id: str = "test") -> Iterator[SocketClient]:
    """A client of a listener without TLS."""
    with socket.create_connection(address, timeout=WITHIN_S) as sock:
        yield SocketClient(sock, client_id)


def json_lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]
