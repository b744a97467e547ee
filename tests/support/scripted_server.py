"""A server on a port that does with each connection what a function does."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WITHIN_S = 30


class ScriptedServer:
    """Listens on 127.0.0.1 while it is entered.

    Args:
        script: is called with each connection, in a thread of its own; it is closed afterwards.

    Attributes:
        address: as ``host:port``.
        accepted: how many connections there were.
        begun: is set once there was one.
        all_closed: is set while no connection is open.
    """

    def __init__(self, script: Callable[[socket.socket], None]) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        self.begun = threading.Event()
        self.all_closed = threading.Event()
        self.all_closed.set()

    def __enter__(self) -> ScriptedServer:  # noqa: PYI034 - no Self in 3.10
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()

    def _begin(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
                self.accepted += 1
                self.all_closed.clear()
                self.begun.set()
            self._begin(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._script(connection)
        except (OSError, EOFError):
            pass
        finally:
            connection.close()
            with self._lock:
                self._open.discard(connection)
                if not self._open:
                    self.all_closed.set()


def exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes; an EOFError where they do not come."""
    data = bytearray()
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise EOFError
        data += received
    return bytes(data)


def next_frame(connection: socket.socket) -> bytes:
    """The next request, without its size."""
    (size,) = struct.unpack(">i", exactly(connection, 4))
    return exactly(connection, size)


def until_closed(connection: socket.socket) -> None:
    """Reads until the client closes."""
    while connection.recv(1 << 16):
        pass
