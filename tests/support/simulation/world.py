"""A broker, its clients and what is between them, under one seed and with a clock of their own.

Nothing runs beside anything else: events lie in a heap, and the random numbers of the seed decide
how long a request or an answer is on its way, and where a connection is cut. So a history that
breaks a rule is played again from its seed alone.
"""

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from random import Random
from typing import Any, NamedTuple, TypeAlias

from ottla.broker.broker import Broker
from ottla.broker.connection import CloseConnectionError
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import request_header, response_header
from ottla.protocol.wire import Message, schema
from support.wire_client import NOW_MS, Peer

REQUEST_TIMEOUT_MS = 3000
"""After which a client gives its connection up, and asks again on another."""


class Ask(NamedTuple):
    """A client asks, and is sent the answer, or nothing where that got lost."""

    request: Message
    version: int
    may_be_late: bool = False
    """Whether the request may arrive long after its client has given it up."""


class Sleep(NamedTuple):
    """A client waits."""

    duration_ms: int


Client: TypeAlias = Generator[Ask | Sleep, Any, None]
"""A client: yields what it does next."""


@dataclass(frozen=True)
class Network:
    """How bad the network is."""

    most_delay_ms: int = 20
    cut: float = 0.05
    """Of the requests, the share that loses its connection before or behind the broker."""
    late: float = 0.05
    """Of the requests that may be, the share that arrives when nobody waits any more."""


@dataclass
class World:
    """All there is.

    Attributes:
        broker: who serves; replaced where it crashes.
        crashes: how often it did.
    """

    seed: int
    make: Callable[[], Broker]
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.now_ms = NOW_MS
        self.broker = self.make()
        self.crashes = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._correlation_ids = count(1)
        self.running = 0

    # Time.

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Has something happen."""
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def run(self, most_ms: int) -> None:
        """Lets time pass until every client has ended."""
        end_ms = self.now_ms + most_ms
        while self.running:
            deadline_ms = self.broker.next_deadline_ms()
            next_ms = self._events[0][0] if self._events else end_ms + 1
            if deadline_ms is not None and deadline_ms <= next_ms:
                self.now_ms = max(self.now_ms, deadline_ms)
                self.broker.tick(self.now_ms)
            elif next_ms <= end_ms:
                moment_ms, _, action = heapq.heappop(self._events)
                self.now_ms = max(self.now_ms, moment_ms)
                action()
                self.broker.tick(self.now_ms)
            else:
                break
            assert self.now_ms <= end_ms, f"{self.running} clients have not ended"
        assert not self.running, f"{self.running} clients have not ended"

    def pass_time(self, duration_ms: int) -> None:
        """Lets time pass for the broker alone."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.broker.tick(self.now_ms)
        self.now_ms = end_ms

    def crash(self) -> None:
        """Ends the broker in the midst of everything, and starts another on what it has left."""
        self.crashes += 1
        self.broker = self.make()

    def crash_after(self, delay_ms: int) -> None:
        """Has the broker crash then, if clients are still there."""
        self.after(delay_ms, lambda: self.crash() if self.running else None)

    # Clients.

    def start(self, client: Client) -> None:
        """Has a client begin."""
        self.running += 1
        self.after(self.random.randrange(100), lambda: self._go_on(client, None))

    def _go_on(self, client: Client, answer: Any) -> None:
        try:
            step = client.send(answer)
        except StopIteration:
            self.running -= 1
            return
        if isinstance(step, Sleep):
            self.after(step.duration_ms, lambda: self._go_on(client, None))
        else:
            Exchange(self, client, step).begin()

    def exchanged(self, client: Client, answer: Any) -> None:
        """Has a client go on with an answer, or with none."""
        self._go_on(client, answer)

    def delay_ms(self) -> int:
        """How long a frame is on its way."""
        return self.random.randrange(1, self.network.most_delay_ms)

    def next_correlation_id(self) -> int:
        """Tells requests apart."""
        return next(self._correlation_ids)


class Exchange:
    """A request on a connection of its own, and what becomes of it."""

    def __init__(self, world: World, client: Client, ask: Ask) -> None:
        self.world = world
        self.client = client
        self.ask = ask
        self.is_over = False
        random, network = world.random, world.network
        is_cut = random.random() < network.cut
        self.is_lost = is_cut and random.random() < 1 / 2
        self.is_unheard = is_cut and not self.is_lost
        self.is_late = ask.may_be_late and random.random() < network.late

    def begin(self) -> None:
        """Sends the request, and waits for an answer only so long."""
        world = self.world
        world.after(REQUEST_TIMEOUT_MS, lambda: self._end(None))
        if self.is_lost:
            return
        delay_ms = world.delay_ms()
        if self.is_late:
            delay_ms += world.random.randrange(2 * REQUEST_TIMEOUT_MS)
        world.after(delay_ms, self._arrive)

    def _arrive(self) -> None:
        ask, broker = self.ask, self.world.broker
        key = schema(type(ask.request)).api_key
        assert key is not None
        self.key, self.correlation_id = key, self.world.next_correlation_id()
        header = request_header(key, ask.version, self.correlation_id, "simulated")
        frame = header + b"".join(encode(type(ask.request), ask.version)(ask.request))
        self.connection = broker.connect(Peer())
        self.at = broker
        try:
            broker.handle(self.connection, frame, self.world.now_ms, self._send)
        except CloseConnectionError:
            self._end(None)

    def _send(self, parts: list[bytes] | None) -> None:
        if parts is None or self.is_unheard or self.world.broker is not self.at:
            return
        frame = b"".join(parts)
        self.world.after(self.world.delay_ms(), lambda: self._end(frame))

    def _end(self, frame: bytes | None) -> None:
        if self.is_over:
            return
        self.is_over = True
        if hasattr(self, "connection"):
            self.at.disconnect(self.connection)
        self.world.exchanged(self.client, None if frame is None else self._decoded(frame))

    def _decoded(self, frame: bytes) -> Message:
        request = type(self.ask.request)
        module = import_module(request.__module__)
        response = getattr(module, request.__name__.removesuffix("Request") + "Response")
        header = response_header(self.key, self.ask.version, self.correlation_id)
        assert frame.startswith(header)
        answer: Message = decode(response, self.ask.version)(frame, len(header))[0]
        return answer
