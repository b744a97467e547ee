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
from ottla.broker.data.storage import DirectoryStorage
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import request_header, response_header
from ottla.protocol.wire import Message, schema
from support.wire_client import NOW_MS, Peer

REQUEST_TIMEOUT_MS = 3000
"""After which a client gives its connection up, and asks again on another."""


_FOREVER_MS = 1 << 40
_MOST_WORK_MS = 30


class Ask(NamedTuple):
    """A client asks, and is sent the answer, or nothing where that got lost."""

    request: Message
    version: int
    may_be_late: bool = False
    """Whether the request may arrive long after its client has given it up."""
    timeout_ms: int = REQUEST_TIMEOUT_MS
    may_wait: Callable[[Broker], bool] = lambda _broker: False
    """Whether the broker may let it wait, as it is now; what it need not is answered at once."""
    most_wait_ms: int = _FOREVER_MS
    """How long it may let it wait at most."""


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
        make: makes a broker that begins at a time.
        broker: who serves; replaced where it crashes.
        crashes: how often it did.
        loses_answers: whether what a broker has sent is lost with it.
    """

    seed: int
    make: Callable[[int], Broker]
    network: Network = field(default_factory=Network)
    loses_answers: bool = False

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.now_ms = NOW_MS
        self.crashes = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._correlation_ids = count(1)
        self._waiting: dict[Exchange, None] = {}
        self._works = 0
        self._at_work: list[Callable[[], None]] = []
        self.running = 0
        self.broker = self._started()

    # Time.

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Has something happen."""
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def run(self, most_ms: int) -> None:
        """Lets time pass until every client has ended."""
        end_ms = self.now_ms + most_ms
        while self.running and self._step(end_ms):
            pass
        assert not self.running, f"{self.running} clients have not ended"

    def pass_time(self, duration_ms: int) -> None:
        """Lets time pass when the clients have ended."""
        end_ms = self.now_ms + duration_ms
        while self._step(end_ms):
            pass
        self.now_ms = end_ms

    def jump(self, duration_ms: int) -> None:
        """Moves the broker's clock forward; what is due until then happens on the way."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.broker.tick(self.now_ms)
        self.now_ms = end_ms
        self.broker.expire(end_ms)

    def _step(self, end_ms: int) -> bool:
        """Does what is next, and returns whether there was anything until then."""
        deadline_ms = self.broker.next_deadline_ms()
        next_ms = self._events[0][0] if self._events else end_ms + 1
        if deadline_ms is not None and deadline_ms <= min(next_ms, end_ms):
            self.now_ms = max(self.now_ms, deadline_ms)
        elif next_ms <= end_ms:
            moment_ms, _, action = heapq.heappop(self._events)
            self.now_ms = max(self.now_ms, moment_ms)
            action()
        else:
            return False
        self.broker.tick(self.now_ms)
        self._look_for_forgotten()
        return True

    def _look_for_forgotten(self) -> None:
        """Nobody waits for what is there already; what is to be on the disk is waited for."""
        for exchange in self._waiting if not self._works else ():
            may_wait = (
                exchange.ask.may_wait(self.broker)
                and self.now_ms < exchange.arrived_ms + exchange.ask.most_wait_ms
            )
            assert may_wait, f"nobody has answered {exchange.ask}"

    def crash(self) -> None:
        """Ends the broker in the midst of everything, and starts another on what it has left."""
        self.crashes += 1
        self._works = 0
        for exchange in self._waiting:
            self.after(self.delay_ms(), exchange.break_off)
        self._waiting.clear()
        self.broker = self._started()

    def _started(self) -> Broker:
        broker = self.make(self.now_ms)
        storage = broker.storage
        if isinstance(storage, DirectoryStorage):
            storage.flusher.submit = lambda job, then: self._work(broker, job, then)
            broker.cleaner.submit = storage.flusher.submit
        return broker

    def _work(
        self,
        broker: Broker,
        job: Callable[[], None],
        then: Callable[[BaseException | None], None],
    ) -> None:
        """Has a job done beside the broker: some time passes before it, and behind it."""

        def work() -> None:
            if self.broker is broker:
                job()
                self.after(self.random.randrange(_MOST_WORK_MS), take_back)

        def take_back() -> None:
            if self.broker is broker:
                self._works -= 1
                then(None)

        self._works += 1
        self.after(self.random.randrange(_MOST_WORK_MS), work)
        if self._at_work:
            self.after(self.random.randrange(2 * _MOST_WORK_MS), self._at_work.pop())

    def at_work(self, action: Callable[[], None]) -> None:
        """Has something happen while the broker next syncs, or shortly before or behind."""
        self._at_work.append(action)

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

    def waits(self, exchange: "Exchange") -> None:
        """The broker has a request."""
        self._waiting[exchange] = None

    def is_answered(self, exchange: "Exchange") -> None:
        """The broker has answered a request."""
        self._waiting.pop(exchange, None)

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
        self.is_over = self.is_answered = False
        self.arrived_ms = -1
        random, network = world.random, world.network
        is_cut = random.random() < network.cut
        self.is_lost = is_cut and random.random() < 1 / 2
        self.is_unheard = is_cut and not self.is_lost
        self.is_late = ask.may_be_late and random.random() < network.late

    def begin(self) -> None:
        """Sends the request, and waits for an answer only so long."""
        world = self.world
        world.after(self.ask.timeout_ms, lambda: self._end(None))
        if self.is_lost:
            return
        delay_ms = world.delay_ms()
        if self.is_late:
            delay_ms += world.random.randrange(2 * REQUEST_TIMEOUT_MS)
        world.after(delay_ms, self._arrive)

    def break_off(self) -> None:
        """The connection is gone."""
        self._end(None)

    def _arrive(self) -> None:
        self.arrived_ms = self.world.now_ms
        ask, broker = self.ask, self.world.broker
        key = schema(type(ask.request)).api_key
        assert key is not None
        self.key, self.correlation_id = key, self.world.next_correlation_id()
        header = request_header(key, ask.version, self.correlation_id, "simulated")
        frame = header + b"".join(encode(type(ask.request), ask.version)(ask.request))
        self.connection = broker.connect(Peer())
        self.at = broker
        if not broker.faults:
            # A fault may have it wait for nothing.
            self.world.waits(self)
        try:
            broker.handle(self.connection, frame, self.world.now_ms, self._send)
        except CloseConnectionError:
            self.world.is_answered(self)
            self._end(None)

    def _send(self, parts: list[bytes] | None) -> None:
        assert not self.is_answered, f"{self.ask} was answered twice"
        self.is_answered = True
        self.world.is_answered(self)
        if parts is None or self.is_unheard or self.world.broker is not self.at:
            return
        frame = b"".join(parts)
        self.world.after(self.world.delay_ms(), lambda: self._deliver(frame))

    def _deliver(self, frame: bytes) -> None:
        is_lost = self.world.loses_answers and self.world.broker is not self.at
        self._end(None if is_lost else frame)

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
