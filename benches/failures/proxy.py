"""A proxy before the broker that damages answers, as a scenario tells it."""

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator

Damage = Callable[[bytes], "bytes | None"]
"""Takes an answer without its size, and returns what goes out instead; `None` leaves it alone."""

PRODUCE, FETCH = 0, 1


class Proxy:
    """Hands frames on between clients and the broker, each connection on threads of its own."""

    def __init__(self, port: int) -> None:
        self._broker_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._damages: dict[int, Damage] = {}
        self._cuts: dict[int, int] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self._start(self._accept)

    @property
    def port(self) -> int:
        """Return where clients connect."""
        return int(self._listener.getsockname()[1])

    def damage(self, api: int, damage: Damage) -> None:
        """Have the answers of an API damaged; what returns `None` leaves them alone."""
        self._damages[api] = damage

    def cut(self, api: int, times: int = 1) -> None:
        """Have answers of an API end in their midst, and their connections with them."""
        self._cuts[api] = times

    def close(self) -> None:
        """End every connection."""
        for each in tuple(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in tuple(self._threads):
            thread.join()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
                self._sockets += [client, broker]
                asked: deque[int] = deque()
                self._start(self._requests, client, broker, asked)
                self._start(self._answers, client, broker, asked)

    def _requests(self, client: socket.socket, broker: socket.socket, asked: deque[int]) -> None:
        with _both_ended(client, broker):
            while (frame := _frame(client)) is not None:
                asked.append(struct.unpack_from(">h", frame)[0])
                broker.sendall(struct.pack(">i", len(frame)) + frame)

    def _answers(self, client: socket.socket, broker: socket.socket, asked: deque[int]) -> None:
        with _both_ended(client, broker):
            while (frame := _frame(broker)) is not None:
                api = asked.popleft()
                if self._is_cut(api):
                    half = frame[: len(frame) // 2]
                    client.sendall(struct.pack(">i", len(frame)) + half)
                    return
                found = self._damages[api](frame) if api in self._damages else None
                self.hits += found is not None
                out = frame if found is None else found
                client.sendall(struct.pack(">i", len(out)) + out)

    def _is_cut(self, api: int) -> bool:
        with self._lock:
            left = self._cuts.get(api, 0)
            if left:
                self._cuts[api] = left - 1
                self.hits += 1
            return left > 0


@contextlib.contextmanager
def _both_ended(*sockets: socket.socket) -> Iterator[None]:
    """End both sides where one ends."""
    with contextlib.suppress(OSError):
        yield
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _frame(source: socket.socket) -> bytes | None:
    head = _exactly(source, 4)
    return None if head is None else _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        received = source.recv(size - len(data))
        if not received:
            return None
        data += received
    return bytes(data)
