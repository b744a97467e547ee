"""Members of groups, a broker and a clock, without sockets: who owns what, whatever happens."""

from __future__ import annotations

import heapq
from collections import deque
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from ottla.broker.connection import CloseConnectionError
from ottla.client.errors import KafkaError
from ottla.client.groups.group import Group
from ottla.client.network.network import ClientNetwork
from ottla.client.options.settings import ConsumerSettings
from ottla.protocol.framing import Frames, framed
from support.wire_client import NOW_MS, Peer, new_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.broker import Broker
    from ottla.client.groups.membership import Event, EventKind
    from ottla.client.network.connection import Connection

SMALL = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
_NETWORK = {
    "receive_message_max_bytes": 100_000_000,
    "max_in_flight_requests_per_connection": 100,
}
_MOST_FRAME = 1 << 30
_POLL_MS = 200
_MOST_STEPS = 50_000


class _Socket:
    """The broker's end of a connection, which answers one request after the other."""

    def __init__(self, world: GroupMembers, member: Member, connection: Connection) -> None:
        self.world = world
        self.member = member
        self.connection = connection
        self.broker = world.broker
        self.at_broker = self.broker.connect(Peer())
        self._frames = Frames(_MOST_FRAME)
        self._queue: deque[bytes] = deque()
        self._is_busy = False
        self._requests_ms = self._answers_ms = 0
        self.is_open = True

    def send(self, data: bytes) -> None:
        """Sends bytes of the client's, which arrive in order."""
        self._requests_ms = self.world.later(self._requests_ms, partial(self.feed, data))

    def feed(self, data: bytes) -> None:
        """Takes bytes of the client's."""
        if not self.is_open:
            return
        self._frames.feed(data)
        while (frame := self._frames.take()) is not None:
            self._queue.append(bytes(frame))
        self._next()

    def _next(self) -> None:
        while self._queue and not self._is_busy and self.is_open:
            self._is_busy = True
            frame = self._queue.popleft()
            try:
                self.broker.handle(self.at_broker, frame, self.world.now_ms, self._answer)
            except CloseConnectionError:
                self.drop()

    def _answer(self, parts: list[bytes] | None) -> None:
        self._is_busy = False
        if self.is_open and parts is not None:
            data = b"".join(framed(parts))
            self._answers_ms = self.world.later(self._answers_ms, partial(self._deliver, data))
        self.world.after(0, self._next)

    def _deliver(self, data: bytes) -> None:
        if self.is_open:
            self.connection.received(data, self.world.now_ms)

    def drop(self) -> None:
        """The connection is gone."""
        if self.is_open:
            self.is_open = False
            self.broker.disconnect(self.at_broker)
            self.connection.lost(None, self.world.now_ms)


class Member:
    """A consumer of which only the group matters: it polls, and does what events ask.

    Attributes:
        events: that appeared, as they were.
        errors: that `poll` raised.
        is_alive: whether it does anything at all.
        is_polling: whether its application does.
    """

    def __init__(self, world: GroupMembers, name: str, **settings: Any) -> None:
        self.world = world
        self.name = name
        self.settings = ConsumerSettings(
            bootstrap_servers="broker:9092", client_id=name, **{"group_id": "g", **settings}
        )
        for missing, value in _NETWORK.items():
            if not hasattr(self.settings, missing):
                self.settings.adjust(missing, value)
        self.network = ClientNetwork(self.settings, random=world.random.random)
        self.group = Group(self.settings, self.network, random=world.random.random)
        self.events: list[Event] = []
        self.errors: list[KafkaError] = []
        self.is_alive = self.is_polling = True
        self.on_event: Callable[[Event], None] = lambda _event: None
        self._shown: Event | None = None
        self._poll()

    @property
    def membership(self) -> Any:
        """Its membership, of either protocol."""
        return self.group.membership

    @property
    def owned(self) -> list[tuple[str, int]]:
        """What it owns, in order."""
        return sorted(self.membership.assignment)

    def subscribe(self, *topics: str, pattern: str | None = None) -> Member:
        """Subscribes."""
        self.membership.subscribe(frozenset(topics), self.world.now_ms, pattern=pattern)
        return self

    def die(self) -> None:
        """Does nothing any more, and does not say so."""
        self.is_alive = False
        self.world.cut(self)

    def told(self, kind: EventKind) -> list[list[tuple[str, int]]]:
        """The partitions of the events of a kind."""
        return [sorted(each.partitions) for each in self.events if each.kind is kind]

    def _poll(self) -> None:
        if self.is_alive:
            self.world.after(_POLL_MS, self._poll)
        if self.is_alive and self.is_polling:
            try:
                self.membership.poll(self.world.now_ms)
            except KafkaError as error:
                self.errors.append(error)

    def tick(self, now_ms: int) -> None:
        """Drives it as a shell does, and notices events."""
        self.group.tick(now_ms)
        self.network.tick(now_ms)
        self.group.tick(now_ms)
        event = self.membership.event
        if event is not self._shown:
            self._shown = event
            if event is not None:
                self.events.append(event)
                self.world.after(self.world.work_ms(), partial(self._do, event))

    def _do(self, event: Event) -> None:
        if self.is_alive and not self.is_polling:
            self.world.after(_POLL_MS, partial(self._do, event))
        elif self.is_alive:
            self.on_event(event)
            assert self.membership.event is event
            self.membership.event_done(self.world.now_ms)

    def next_deadline_ms(self) -> int | None:
        """When it has something to do by itself."""
        deadlines = (self.group.next_deadline_ms(), self.network.next_deadline_ms())
        return min((each for each in deadlines if each is not None), default=None)


class GroupMembers:
    """All there is.

    Args:
        seed: of all chance.
        make: makes a broker that begins at a time.
        topics: partitions by name.
        config: of the broker, unless `make` is given.
        most_latency_ms: how long a frame is on its way at most.
        most_work_ms: how long a consumer takes to do what an event asks at most.
        is_exclusive: whether no partition may ever have two owners.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        make: Callable[[int], Broker] | None = None,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, str] | None = None,
        most_latency_ms: int = 3,
        most_work_ms: int = 1,
        is_exclusive: bool = True,
    ) -> None:
        self.random = Random(seed)
        self.now_ms = NOW_MS
        self.members: list[Member] = []
        self.is_exclusive = is_exclusive
        self._most_latency_ms = most_latency_ms
        self._most_work_ms = most_work_ms
        self._make = make or (lambda _now_ms: new_broker({**SMALL, **(config or {})}))
        self._sockets: dict[Connection, _Socket] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.broker = self._make(self.now_ms)
        self.topics: dict[str, int] = {}
        for topic, partitions in (topics or {"t": 4}).items():
            self.create(topic, partitions)

    def create(self, topic: str, partitions: int) -> None:
        """Creates a topic."""
        self.topics[topic] = partitions
        self.broker.topics.create(topic, partitions, {}, self.now_ms)

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Has a topic have so many."""
        self.topics[topic] = partitions
        self.broker.topics.grow(self.broker.image.topics[topic], partitions, self.now_ms)

    def member(self, name: str, **settings: Any) -> Member:
        """Adds a member, which has not subscribed."""
        made = Member(self, name, **settings)
        self.members.append(made)
        return made

    def later(self, not_before_ms: int, action: Callable[[], None]) -> int:
        """Has a frame arrive, behind the one before it; returns when."""
        at_ms = max(self.now_ms + self.latency_ms(), not_before_ms)
        self.after(at_ms - self.now_ms, action)
        return at_ms

    def latency_ms(self) -> int:
        """How long a frame is on its way."""
        return self.random.randint(1, self._most_latency_ms)

    def work_ms(self) -> int:
        """How long a consumer takes."""
        return self.random.randint(0, self._most_work_ms)

    # What happens to it.

    def crash(self) -> None:
        """Ends the broker, and starts another on what it has left."""
        self.broker = self._make(self.now_ms)
        for socket in list(self._sockets.values()):
            socket.drop()
        self._sockets.clear()

    def cut(self, member: Member) -> None:
        """Breaks the connections of a member."""
        for connection, socket in list(self._sockets.items()):
            if socket.member is member:
                del self._sockets[connection]
                socket.drop()

    # Time.

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Has something happen."""
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def run(self, duration_ms: int, until: Callable[[], object] | None = None) -> None:
        """Lets time pass, or until something is so, which then has to become so."""
        end_ms = self.now_ms + duration_ms
        for _ in range(_MOST_STEPS):
            self._settle()
            if until is not None and until():
                return
            due_ms = self._due_ms()
            if due_ms > end_ms:
                assert until is None, f"it is not so after {duration_ms} ms"
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, due_ms)
        raise AssertionError("it does not come to rest")

    def settle(self, duration_ms: int = 60_000) -> None:
        """Lets time pass until every partition has one owner, and nobody is about to move."""
        self.run(duration_ms, self.is_settled)

    def is_settled(self) -> bool:
        """Whether everything that somebody reads is owned, and stays where it is."""
        alive = [each for each in self.members if each.is_alive]
        return self.are_all_owned() and not any(
            each.membership.is_rebalancing or each.membership.event is not None for each in alive
        )

    def are_all_owned(self) -> bool:
        """Whether each partition of the topics has an owner."""
        owned = {one for each in self.members if each.is_alive for one in each.owned}
        return owned >= {
            (name, index) for name, count in self.topics.items() for index in range(count)
        }

    def _due_ms(self) -> int:
        due = [self.broker.next_deadline_ms(), self._events[0][0] if self._events else None]
        due += [each.next_deadline_ms() for each in self.members if each.is_alive]
        return min((each for each in due if each is not None), default=_MOST_FRAME << 20)

    def _settle(self) -> None:
        while self._events and self._events[0][0] <= self.now_ms:
            heapq.heappop(self._events)[2]()
        self.broker.tick(self.now_ms)
        for member in self.members:
            if member.is_alive:
                member.tick(self.now_ms)
                self._carry(member)
        if self.is_exclusive:
            self._require_one_owner()

    def _carry(self, member: Member) -> None:
        for connection in member.network.take_connections():
            self.after(self.latency_ms(), partial(self._open, member, connection))
        for connection in member.network.take_changed():
            data = b"".join(connection.take_output())
            socket = self._sockets.get(connection)
            if socket is not None and data:
                socket.send(data)
            if connection.is_ended and socket is not None:
                del self._sockets[connection]
                socket.drop()

    def _open(self, member: Member, connection: Connection) -> None:
        if not connection.is_ended:
            self._sockets[connection] = _Socket(self, member, connection)
            connection.opened(self.now_ms)

    def _require_one_owner(self) -> None:
        owners: dict[tuple[str, int], str] = {}
        for member in self.members:
            for one in member.owned if member.is_alive else ():
                other = owners.setdefault(one, member.name)
                assert other == member.name, f"{one} belongs to {other} and to {member.name}"
