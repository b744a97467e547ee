"""A round trip through a server, beside a loop that does nothing but receive and send."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ottla.net.served import Peer, Send
from ottla.net.server import Server

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="net")]

REQUEST = b"\0\0\0\x64" + bytes(100)
COUNT = 1000


class Echo:
    """Answers with the request."""

    def connect(self, peer: Peer) -> Peer:
        """Knows no more of a connection."""
        return peer

    def disconnect(self, connection: Peer) -> None:
        """Forgets nothing."""

    def handle(self, connection: Peer, frame: bytes, now_ms: int, send: Send) -> bool:
        """Answers at once, whoever asks and whenever."""
        assert connection
        assert now_ms
        send((frame,))
        return False

    def tick(self, now_ms: int) -> None:
        """Has nothing due."""

    def next_deadline_ms(self) -> int | None:
        """Never."""
        return None


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    with Server(lambda _: Echo()) as server:
        yield server.addresses[0][1:]


@contextmanager
def bare() -> Iterator[tuple[str, int]]:
    """One connection, the same calls of the system, and nothing else."""

    def loop() -> None:
        accepted, _ = listener.accept()
        accepted.settimeout(0)
        with accepted, selectors.DefaultSelector() as selector:
            selector.register(accepted, selectors.EVENT_READ)
            while selector.select():
                data = accepted.recv(1 << 16)
                if not data:
                    return
                accepted.sendmsg((data[:4], data[4:]))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=loop)
        thread.start()
        yield listener.getsockname()
        thread.join()


@pytest.mark.parametrize("serving", [bare, served])
def test_requests_are_answered_one_after_the_other(benchmark: Any, serving: Any) -> None:
    with serving() as address, socket.create_connection(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def ask() -> int:
            for _ in range(COUNT):
                client.sendall(REQUEST)
                answer = client.recv(1000)
            return len(answer)

        assert benchmark(ask) == len(REQUEST)
        client.shutdown(socket.SHUT_WR)
