"""Many connections to a broker at once, each sending a step once the one before is answered.

One thread serves them all, so that the broker is the slower of the two.
"""

import selectors
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

AT_ONCE = 100
SILENCE_S = 0.5
"""Of a broker that waits for more, or whose answer takes its time; its turn is over then."""
GRACE_S = 1.0
"""In which a broker may still answer who has ended."""

_RESET = struct.pack("ii", 1, 0)

Steps = Iterator[bytes]


class _Visitor:
    def __init__(self, address: tuple[str, int], steps: Steps) -> None:
        self.steps = steps
        self.socket = socket.create_connection(address, timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(0)
        self.received = b""
        self.has_ended = False
        self.deadline_s = 0.0

    def step(self) -> bool:
        """Sends the next; whether there was one."""
        data = next(self.steps, None)
        if data is None:
            return False
        self.deadline_s = time.monotonic() + SILENCE_S
        # Where it takes no more, or has closed, that is seen next.
        with suppress(BlockingIOError, ConnectionError):
            self.socket.send(data)
        return True

    def is_answered(self) -> bool | None:
        """Whether a whole answer has come; `None` at the end of the connection."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return False
        except ConnectionError:
            return None
        if not data:
            return None
        self.received += data
        is_whole = False
        while len(self.received) >= 4:
            (size,) = struct.unpack_from(">i", self.received)
            if len(self.received) < 4 + size:
                break
            self.received, is_whole = self.received[4 + size :], True
        return is_whole

    def end(self) -> None:
        """Says that nothing more comes, and waits a little."""
        self.has_ended = True
        self.deadline_s = time.monotonic() + GRACE_S
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        # By a reset, which leaves no port behind that waits.
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.socket.close()


def flood(visits: Callable[[], tuple[tuple[str, int], Steps]], count: int) -> Counter[str]:
    """Sends until so many steps are answered, or have had their connection closed.

    Args:
        visits: returns where the next connection goes, and its steps.

    Returns:
        How many steps were ``answered`` and ``closed``, and, beside those, left ``silent``.
    """
    told: Counter[str] = Counter()
    here: set[_Visitor] = set()
    with selectors.DefaultSelector() as selector:

        def come() -> None:
            visitor = _Visitor(*visits())
            if visitor.step():
                here.add(visitor)
                selector.register(visitor.socket, selectors.EVENT_READ, visitor)
            else:
                visitor.close()

        def leave(visitor: _Visitor) -> None:
            selector.unregister(visitor.socket)
            here.discard(visitor)
            visitor.close()

        try:
            while told["answered"] + told["closed"] < count:
                while len(here) < AT_ONCE:
                    come()
                for key, _ in selector.select(0.05):
                    visitor: _Visitor = key.data
                    answered = visitor.is_answered()
                    if answered is None:
                        told["silent" if visitor.has_ended else "closed"] += 1
                        leave(visitor)
                    elif answered:
                        told["answered"] += 1
                        if visitor.has_ended or not visitor.step():
                            leave(visitor)
                now_s = time.monotonic()
                for visitor in [each for each in here if each.deadline_s <= now_s]:
                    if visitor.has_ended:
                        told["silent"] += 1
                        leave(visitor)
                    else:
                        visitor.end()
        finally:
            for visitor in tuple(here):
                leave(visitor)
    return told
