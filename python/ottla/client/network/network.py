"""All connections of a client: which node a request goes to, and when a node is connected to.

- A node is connected to when a request is for it, and again after a back-off that grows.
- A request for one node waits for its connection. It fails if that cannot be made, when its time is
  over, and at once while the node refuses the client.
- A request for any node goes to the one with the least to do. It fails when its time is over, or
  once all nodes refuse the client.
- While no node that is known can be connected to, those of `bootstrap_servers` are tried as well
  (KIP-899).
- A connection that breaks has metadata looked up again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.client.errors import AuthenticationError, IllegalStateError, NetworkError
from ottla.client.network.addresses import MAX_PORT, parse_address
from ottla.client.network.backoff import Backoff
from ottla.client.network.cluster import ClusterMetadata
from ottla.client.network.connection import Connection, State
from ottla.client.network.exchange import ANY_NODE
from ottla.client.network.lookups import Lookups
from ottla.client.network.nodes import NodeState, Waiting
from ottla.client.network.warned import Warned
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.network.exchange import Exchange
    from ottla.client.network.settings import NetworkSettings
    from ottla.protocol.wire import Message

__all__ = ["ClientNetwork"]


class ClientNetwork:
    """The network of a client; for what parts ask of it see `Network`.

    Args:
        settings: of the client.
        random: draws from [0, 1).

    Attributes:
        settings: of the client.
        metadata: the cluster as it was last told.

    Raises:
        InvalidConfigurationError: an address is none.
    """

    def __init__(self, settings: NetworkSettings, *, random: Callable[[], float]) -> None:
        self.metadata = ClusterMetadata(settings.metadata_max_age_ms)
        self.settings = settings
        self.warned = Warned()
        self._random = random
        self._backoff = Backoff(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, random
        )
        self._patience = Backoff(
            settings.socket_connection_setup_timeout_ms,
            settings.socket_connection_setup_timeout_max_ms,
            random,
        )
        self._lookups = Lookups(self.metadata, settings, random, self._rebootstrap)
        self._bootstrap = [
            NodeState(*parse_address(each)) for each in dict.fromkeys(settings.bootstrap_servers)
        ]
        self._nodes: dict[int, NodeState] = {}
        self._of_connection: dict[Connection, NodeState] = {}
        self._anywhere: deque[Waiting] = deque()
        # Outcomes that are known within `send`, and told by the next tick.
        self._outcomes: deque[tuple[Exchange, int | None, Exception | None]] = deque()
        self._to_open: list[Connection] = []
        self._changed: dict[Connection, None] = {}
        self._is_closed = False
        self.metadata.on_change(self._follow_addresses)

    # What parts of the client call.

    def send(self, node_id: int | None, exchange: Exchange, now_ms: int) -> None:
        """Has a request sent; see `Network.send`."""
        timeout_ms = exchange.timeout_ms
        if timeout_ms is None:
            timeout_ms = self.settings.request_timeout_ms
        if self._is_closed:
            self._fail_later(exchange, IllegalStateError("the client is closed"))
            return
        waiting = Waiting(exchange, timeout_ms, now_ms)
        if node_id is ANY_NODE:
            self._anywhere.append(waiting)
            self._place(now_ms)
            return
        node = self._node(node_id)
        if node is None:
            self.metadata.request_update()
            error = NetworkError(f"the cluster has no node {node_id} any more", is_sent=False)
            self._fail_later(exchange, error)
        else:
            node.waiting.append(waiting)
            self._advance(node, now_ms)

    def may_send(self, node_id: int, now_ms: int) -> bool:
        """Whether a request would leave at once, or as soon as the node is connected."""
        node = self._node(node_id)
        if node is None or node.waiting:
            return False
        if node.connection is None:
            return now_ms >= node.not_before_ms
        return node.connection.state is not State.READY or node.connection.may_send(now_ms)

    def chance_ms(self, node_id: int) -> int | None:
        """Returns when a node may be sent to by the clock alone; see `Network.chance_ms`."""
        due: list[int] = []
        node = self._node(node_id)
        if node is not None:
            self._add_chance(node, due)
        return min(due, default=None)

    def version_of(self, node_id: int, request: type[Message]) -> int | None:
        """Returns the version that a node is asked in; see `Network.version_of`."""
        connection = self._ready_connection(node_id)
        return None if connection is None else connection.pick(request)

    def features_of(self, node_id: int) -> dict[str, int]:
        """Returns the levels of features that a node has told."""
        connection = self._ready_connection(node_id)
        if connection is None or connection.versions is None:
            return {}
        return connection.versions.features

    def last_failure(self) -> Exception | None:
        """Returns why a node could not be reached, for who waited in vain."""
        reasons = [node.reason for node in self._all_nodes() if node.reason is not None]
        return reasons[0] if reasons else None

    # What the shell calls.

    def tick(self, now_ms: int) -> None:
        """Does what is due: outcomes, time-outs, connections, metadata."""
        self._tell_outcomes(now_ms)
        for connection in list(self._of_connection):
            connection.tick(now_ms)
        self._expire(self._anywhere, self._bootstrap, now_ms)
        for node in self._all_nodes():
            if node.waiting:
                self._expire(node.waiting, (node,), now_ms)
                self._advance(node, now_ms)
        if not self._is_closed and (lookup := self._lookups.begin(now_ms)) is not None:
            self.send(ANY_NODE, lookup, now_ms)
        elif self._anywhere:
            self._place(now_ms)
        self._tell_outcomes(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when `tick` has something to do; ``None`` if only an event brings it."""
        if self._outcomes:
            return 0
        due = [
            at
            for connection in self._of_connection
            if (at := connection.next_deadline_ms()) is not None
        ]
        for node in self._all_nodes():
            if node.waiting:
                due.append(min(one.deadline_ms for one in node.waiting))
                self._add_chance(node, due)
        if self._anywhere:
            due.append(min(one.deadline_ms for one in self._anywhere))
            candidates = self._candidates()
            # As in `_place`: no other node is connected to while one of them may get ready.
            connected = [node for node in candidates if node.connection is not None]
            for node in connected or candidates:
                self._add_chance(node, due)
        if (lookup := self._lookups.next_deadline_ms()) is not None and not self._is_closed:
            due.append(lookup)
        return min(due, default=None)

    def take_connections(self) -> list[Connection]:
        """Returns the connections that the shell is to open now."""
        taken, self._to_open = self._to_open, []
        return [connection for connection in taken if not connection.is_ended]

    def take_changed(self) -> list[Connection]:
        """Returns the connections that have output, or are to be closed."""
        taken, self._changed = self._changed, {}
        return list(taken)

    def close(self, now_ms: int) -> None:
        """Ends all connections; each request that is open or waits fails."""
        self._is_closed = True
        for connection in list(self._of_connection):
            connection.close(now_ms)
        error = NetworkError("the client was closed", is_sent=False)
        queues = [self._anywhere, *(node.waiting for node in self._all_nodes())]
        for queue in queues:
            while queue:
                self._fail_later(queue.popleft().exchange, error)
        self._tell_outcomes(now_ms)

    # What connections tell.

    def changed(self, connection: Connection) -> None:
        """A connection has output, or has ended."""
        self._changed[connection] = None

    def ready(self, connection: Connection, now_ms: int) -> None:
        """A connection takes requests."""
        node = self._of_connection.get(connection)
        if node is None or node.connection is not connection:
            return
        node.failures = 0
        node.reason = node.refusal = None
        if node.waiting:
            self._advance(node, now_ms)
        if self._anywhere:
            self._place(now_ms)

    def ended(self, connection: Connection, error: Exception | None, now_ms: int) -> None:
        """A connection has ended."""
        node = self._of_connection.pop(connection)
        if node.connection is not connection:
            return
        node.connection = None
        if error is None or self._is_closed:
            return
        self._note_failure(node, error, was_ready=connection.was_ready, now_ms=now_ms)

    # Nodes.

    def _node(self, node_id: int) -> NodeState | None:
        node = self._nodes.get(node_id)
        if node is None and (told := self.metadata.node(node_id)) is not None:
            node = self._nodes[node_id] = NodeState(told.host, told.port)
        return node

    def _all_nodes(self) -> Iterable[NodeState]:
        return [*self._nodes.values(), *self._bootstrap]

    def _ready_connection(self, node_id: int) -> Connection | None:
        node = self._nodes.get(node_id)
        connection = None if node is None else node.connection
        return connection if connection is not None and connection.was_ready else None

    def _candidates(self) -> list[NodeState]:
        """Returns the nodes that a request for any of them can go to."""
        known = [node for one in self.metadata.nodes if (node := self._node(one)) is not None]
        if all(node.connection is None and node.failures for node in known):
            return known + self._bootstrap
        return known

    def _follow_addresses(self) -> None:
        """Lets go of connections that lead to where a node is no more, or that began it all."""
        for node_id, node in list(self._nodes.items()):
            told = self.metadata.node(node_id)
            if told is None and not node.waiting:
                self._let_go(node)
                del self._nodes[node_id]
            elif told is not None and (told.host, told.port) != (node.host, node.port):
                self._let_go(node)
                node.host, node.port = told.host, told.port
                node.failures = node.not_before_ms = 0
                node.reason = node.refusal = None
        if self.metadata.nodes:
            for node in self._bootstrap:
                self._let_go(node)

    def _let_go(self, node: NodeState) -> None:
        connection, node.connection = node.connection, None
        if connection is not None:
            connection.retire()

    def _rebootstrap(self) -> None:
        """The cluster asks to be looked for from the beginning (KIP-1102)."""
        self.metadata.nodes = {}
        for node in self._nodes.values():
            self._let_go(node)

    def _connect(self, node: NodeState, now_ms: int) -> None:
        if not (node.host and 0 < node.port <= MAX_PORT):
            error = NetworkError(f"the cluster tells {node.host}:{node.port} as an address")
            self._note_failure(node, error, was_ready=False, now_ms=now_ms)
            return
        connection = Connection(
            node.host,
            node.port,
            self.settings,
            self,
            random=self._random,
            connect_by_ms=now_ms + self._patience.delay_ms(node.failures + 1),
            now_ms=now_ms,
        )
        node.connection = connection
        self._of_connection[connection] = node
        self._to_open.append(connection)

    def _note_failure(
        self, node: NodeState, error: Exception, *, was_ready: bool, now_ms: int
    ) -> None:
        node.failures += 1
        node.reason = error
        self.warned.add((node.host, node.port, type(error)), str(error), now_ms)
        self.metadata.request_update()
        is_fault = was_ready and not isinstance(error, AuthenticationError)
        if is_fault or isinstance(error, NetworkError):
            node.not_before_ms = now_ms + self._backoff.delay_ms(node.failures)
        else:
            node.refusal = error
            node.not_before_ms = now_ms + self.settings.reconnect_backoff_max_ms
        if not was_ready or node.refusal is not None:
            self._fail_waiting(node, error)

    # Requests.

    def _advance(self, node: NodeState, now_ms: int) -> None:
        """Sends what waits for a node, or connects to it."""
        connection = node.connection
        if connection is not None:
            while node.waiting and connection.may_send(now_ms):
                self._hand(connection, node.waiting.popleft(), now_ms)
        elif now_ms >= node.not_before_ms:
            self._connect(node, now_ms)
        elif node.refusal is not None:
            self._fail_waiting(node, node.refusal)

    def _place(self, now_ms: int) -> None:
        """Sends what may go to any node, or connects to one."""
        while self._anywhere:
            candidates = self._candidates()
            loads = [
                (connection.open_count, connection)
                for node in candidates
                if (connection := node.connection) is not None and connection.may_send(now_ms)
            ]
            if loads:
                connection = min(loads, key=lambda load: load[0])[1]
                self._hand(connection, self._anywhere.popleft(), now_ms)
                continue
            if any(node.connection is not None for node in candidates):
                return
            due = [node for node in candidates if now_ms >= node.not_before_ms]
            if due:
                self._connect(due[int(self._random() * len(due))], now_ms)
            elif all(node.refusal is not None for node in candidates):
                refusal = candidates[0].refusal if candidates else None
                self._fail_all(self._anywhere, refusal)
            return

    def _hand(self, connection: Connection, waiting: Waiting, now_ms: int) -> None:
        exchange = waiting.exchange
        try:
            version = connection.send(exchange, waiting.deadline_ms, now_ms)
        except OttlaError as error:
            self._fail_later(exchange, error)
        else:
            if not exchange.has_answer:
                self._outcomes.append((exchange, version, None))

    def _expire(self, queue: deque[Waiting], nodes: Iterable[NodeState], now_ms: int) -> None:
        late = [one for one in queue if one.deadline_ms <= now_ms]
        if not late:
            return
        reason = next((node.reason for node in nodes if node.reason is not None), None)
        why = "" if reason is None else f": {reason}"
        for one in late:
            queue.remove(one)
            name = one.exchange.request.__name__.removesuffix("Request")
            error = NetworkError(
                f"{name} could not be sent within {one.timeout_ms} ms{why}", is_sent=False
            )
            self._fail_later(one.exchange, error)

    def _fail_waiting(self, node: NodeState, error: Exception) -> None:
        self._fail_all(node.waiting, error)

    def _fail_all(self, queue: deque[Waiting], error: Exception | None) -> None:
        if isinstance(error, NetworkError) and error.is_sent:
            error = NetworkError(str(error), is_sent=False)
        while queue:
            self._fail_later(
                queue.popleft().exchange, error or NetworkError("no node is known", is_sent=False)
            )

    def _fail_later(self, exchange: Exchange, error: Exception) -> None:
        self._outcomes.append((exchange, None, error))

    def _tell_outcomes(self, now_ms: int) -> None:
        # What is added meanwhile is told by the next tick, which is due at once.
        for _ in range(len(self._outcomes)):
            exchange, version, error = self._outcomes.popleft()
            if error is not None:
                exchange.failed(error, now_ms)
            elif version is not None:
                exchange.answered(None, version, now_ms)

    def _add_chance(self, node: NodeState, due: list[int]) -> None:
        """Adds when a node that somebody waits for may be connected to, or sent to."""
        connection = node.connection
        if connection is None:
            due.append(node.not_before_ms)
        elif connection.state is State.READY and connection.throttled_until_ms:
            due.append(connection.throttled_until_ms)
