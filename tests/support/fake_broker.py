"""A broker that knows no Kafka: what a server is tried with, and a client that speaks in frames."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.broker.connection import CloseConnectionError
from ottla.net.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ottla.net.clock import Clock
    from ottla.net.limits import Limits
    from ottla.net.served import Peer, Send
    from ottla.net.settings import ListenerSettings

# Only what hangs takes as long, on any machine.
WITHIN_S = 30


class FakeConnection:
    """What the fake broker knows of a connection."""

    def __init__(self, peer: Peer, *, needs_authentication: bool) -> None:
        self.peer = peer
        self.needs_authentication = needs_authentication
        self.frames: list[bytes] = []


class FakeBroker:
    """Does what the first word of a request says.

    `echo` answers with the request, `big N` with N bytes, `wait` when `answer_all` is called, `due
    N` at that time of the clock, `quiet` never, `shut` closes, `late-shut` waits and then closes,
    `refuse` and `fail` raise, `enter` authenticates. Anything else is echoed.
    """

    def __init__(self, *, needs_authentication: bool = False) -> None:
        self.needs_authentication = needs_authentication
        self.connections: list[FakeConnection] = []
        self.gone: list[FakeConnection] = []
        self.waiting: list[tuple[Send, bytes]] = []
        self.due: list[tuple[int, Send, bytes]] = []
        self.ticks: list[int] = []
        self.handled = 0
        self.expected_errors: list[type[BaseException]] = []
        self.depth = 0

    def connect(self, peer: Peer) -> FakeConnection:
        connection = FakeConnection(peer, needs_authentication=self.needs_authentication)
        self.connections.append(connection)
        return connection

    def disconnect(self, connection: FakeConnection) -> None:
        assert self.depth == 0
        self.connections.remove(connection)
        self.gone.append(connection)

    def handle(self, connection: FakeConnection, frame: bytes, now_ms: int, send: Send) -> bool:
        assert self.depth == 0
        assert now_ms >= 0
        self.depth += 1
        try:
            return self._handle(connection, frame, send)
        finally:
            self.depth -= 1

    def _handle(self, connection: FakeConnection, frame: bytes, send: Send) -> bool:
        self.handled += 1
        word, _, rest = frame.partition(b" ")
        if word == b"big":
            send((bytes(int(rest)),))
        elif word == b"wait":
            self.waiting.append((send, frame))
            return True
        elif word == b"due":
            self.due.append((int(rest), send, frame))
            return True
        elif word == b"shut":
            send(None)
        elif word == b"late-shut":
            self.due.append((0, lambda _: send(None), frame))
            return True
        elif word == b"refuse":
            raise CloseConnectionError("a request of the unknown API key 999")
        elif word == b"fail":
            self.expected_errors.append(KeyError)
            raise KeyError("of the broker")
        elif word != b"quiet":
            if word == b"enter":
                connection.needs_authentication = False
            send((frame[:3], memoryview(frame)[3:]))
        return False

    def answer_all(self) -> int:
        """Answer whoever waits; returns how many did."""
        self.depth += 1
        waiting, self.waiting = self.waiting, []
        for send, frame in waiting:
            send((frame,))
            send((b"a second answer",))
        self.depth -= 1
        return len(waiting)

    def tick(self, now_ms: int) -> None:
        assert self.depth == 0
        self.depth += 1
        self.ticks.append(now_ms)
        del self.ticks[:-1000]
        for item in sorted(self.due, key=lambda item: item[0]):
            if item[0] <= now_ms:
                self.due.remove(item)
                item[1]((item[2],))
        self.depth -= 1

    def next_deadline_ms(self) -> int | None:
        return min((item[0] for item in self.due), default=None)


class Client:
    """A connection that sends and receives frames, or whatever else."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def send(self, *frames: bytes) -> None:
        """Send frames at once."""
        self.socket.sendall(b"".join(map(framed, frames)))

    def receive(self) -> bytes:
        """Return the next frame; an EOFError where there is none."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def ask(self, frame: bytes) -> bytes:
        """Send a frame and return its answer."""
        self.send(frame)
        return self.receive()

    def is_closed(self) -> bool:
        """Whether the server closes the connection, without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            received = self.socket.recv(min(1 << 20, size - len(data)))
            if not received:
                raise EOFError
            data += received
        return bytes(data)

    def __enter__(self) -> Client:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def framed(frame: bytes) -> bytes:
    """A frame behind its size."""
    return struct.pack(">i", len(frame)) + frame


def connect(server: Server[FakeBroker], listener: int = 0) -> Client:
    """Return a client of a listener of a server."""
    _, host, port = server.addresses[listener]
    sock = socket.create_connection((host, port), timeout=WITHIN_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Client(sock)


@contextmanager
def serving(
    *listeners: ListenerSettings,
    broker: FakeBroker | None = None,
    limits: Limits | None = None,
    clock: Clock | None = None,
    log: list[str] | None = None,
) -> Iterator[Server[FakeBroker]]:
    """A running server of a fake broker."""
    made = broker or FakeBroker()
    server = Server(
        lambda _: made,
        *([listeners] if listeners else []),
        limits=limits,
        clock=clock,
        log=None if log is None else log.append,
    )
    with server:
        yield server
    assert server.failure is None
    assert [type(error) for error in server.errors] == made.expected_errors


def lines_with(lines: Sequence[str], text: str) -> list[str]:
    """Lines of a log that contain a text."""
    return [line for line in lines if text in line]


def wait_for(server: Server[FakeBroker], condition: Callable[[FakeBroker], bool]) -> None:
    """Return once something is so."""
    end = time.monotonic() + WITHIN_S
    while not server.run(condition):
        assert time.monotonic() < end
