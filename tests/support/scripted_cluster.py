"""A cluster that answers by script, for a client's core on a virtual clock, without a socket.

    cluster = ScriptedCluster(nodes=2, topics={"orders": 3})
    cluster.on("Produce", lambda request, version: ProduceResponse(...))
    part = SomePart(cluster.network, ...)
    cluster.machine = part
    cluster.run(lambda: part.is_done)

A handler takes the request, decoded, and its version, and returns the response. It can return
`SILENCE`, so that no answer comes, `CUT`, so that the connection is closed, bytes, which are sent
as they are, or `Later`, so that the answer takes its time, and those behind it too. Which node it
answers for is in `cluster.node_id`. ApiVersions and Metadata are answered by the cluster itself,
unless there is a handler for them.
"""

from __future__ import annotations

import heapq
import random
import re
import struct
from functools import partial
from importlib import import_module
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.network.metadata import Node
from ottla.client.network.network import ClientNetwork
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.framing import Frames, framed
from ottla.protocol.header import read_request_header, response_header
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.wire import Message, schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.connection import Connection

SILENCE = object()
CUT = object()


class Later(NamedTuple):
    """An answer that comes after a while."""

    delay_ms: int
    response: Any


_MAX_STEPS = 200_000


class Machine(Protocol):
    """What a shell drives: the core of a client."""

    network: ClientNetwork

    def tick(self, now_ms: int) -> None:
        """Does what is due."""

    def next_deadline_ms(self) -> int | None:
        """When it has something to do by itself."""


def settings(**changed: Any) -> Any:
    """Settings of a client, as an object with attributes."""
    return SimpleNamespace(
        **{
            "bootstrap_servers": ("boot:9092",),
            "client_id": "tests",
            "client_software_name": "ottla",
            "client_software_version": "1.0",
            "security_protocol": "PLAINTEXT",
            "ssl_context": None,
            "ssl_endpoint_identification_algorithm": "https",
            **dict.fromkeys(
                f"ssl_{what}_{source}"
                for what in ("ca", "certificate", "key")
                for source in ("location", "pem")
            ),
            "ssl_key_password": None,
            "sasl_mechanism": None,
            "sasl_username": None,
            "sasl_password": None,
            "sasl_oauth_token": None,
            "request_timeout_ms": 30_000,
            "max_in_flight_requests_per_connection": 5,
            "receive_message_max_bytes": 100_000_000,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 1000,
            "socket_connection_setup_timeout_ms": 10_000,
            "socket_connection_setup_timeout_max_ms": 30_000,
            "connections_max_idle_ms": 540_000,
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1000,
            "metadata_max_age_ms": 300_000,
            "allow_auto_create_topics": True,
            **changed,
        }
    )


def messages_of(api: str) -> tuple[type[Message], type[Message]]:
    """Classes of the request and the response of an API."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", api).lower()
    module = import_module(f"ottla.protocol.messages.{snake}")
    return getattr(module, f"{api}Request"), getattr(module, f"{api}Response")


def name_of(api_key: int) -> str:
    """Kafka's name of an API."""
    return ApiKey(api_key).name.title().replace("_", "")


class _Socket:
    """The cluster's end of a connection."""

    def __init__(self, connection: Connection, node_id: int) -> None:
        self.connection = connection
        self.node_id = node_id
        self.frames = Frames(1 << 30)
        self.takes_bare_frame = False
        self.busy_until_ms = 0


class ScriptedCluster:
    """Brokers that do what they are told.

    Args:
        nodes: how many there are, numbered from 1; node N is at ``node-N:9092``, and each is also
            behind the addresses of `bootstrap_servers`.
        topics: partitions by name; partition P of each is led by node 1 + P mod nodes.
        versions: of an API by its name, where not all that are known are served.
        features: levels of finalized features.
        latency_ms: until a request arrives, and until its answer does.
        seed: of the client's chance.
        changed: settings of the client.

    Attributes:
        network: of the client.
        machine: what is driven; the network alone unless something else is set.
        now_ms: the time.
        down: nodes that no connection can be made to.
        node_id: of the node that a handler answers for.
        requests: what came, as (node, API, version, request).
        leaders: nodes by (topic, partition), with epochs, to be changed at will.
        errors: of topics, by name.
        token: what a shell would say where a connection wants a token.
        on_bare_frame: answers the next frame of a connection that has shaken hands in version 0.
    """

    def __init__(
        self,
        *,
        nodes: int = 1,
        topics: dict[str, int] | None = None,
        versions: dict[str, range] | None = None,
        features: dict[str, int] | None = None,
        latency_ms: int = 1,
        seed: int = 0,
        **changed: Any,
    ) -> None:
        self.settings = settings(**changed)
        self.nodes = {one: Node(one, f"node-{one}", 9092) for one in range(1, nodes + 1)}
        self.topics = dict(topics or {})
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.errors: dict[str, int] = {}
        self.features = dict(features or {})
        self.versions = dict(versions or {})
        self.token: str | None = None
        self.on_bare_frame: Callable[[bytes], list[bytes]] | None = None
        self.latency_ms = latency_ms
        self.now_ms = 1_000_000
        self.down: set[int] = set()
        self.node_id = -1
        self.requests: list[tuple[int, str, int, Any]] = []
        self.network = ClientNetwork(self.settings, random=random.Random(seed).random)
        self.machine: Machine | None = None
        self._handlers: dict[str, Callable[[Any, int], Any]] = {
            "ApiVersions": self.api_versions,
            "Metadata": self.metadata,
        }
        self._sockets: dict[Connection, _Socket] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    # The script.

    def on(self, api: str, handler: Callable[[Any, int], Any]) -> None:
        """Has requests of an API answered by a handler."""
        self._handlers[api] = handler

    def add_topic(self, name: str, partitions: int = 1) -> None:
        """Creates a topic."""
        self.topics[name] = partitions

    def cut(self, node_id: int) -> None:
        """Closes all connections to a node."""
        for connection, end in list(self._sockets.items()):
            if end.node_id == node_id:
                self._drop(connection)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Has something done at a later time."""
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def asked(self, api: str) -> list[Any]:
        """The requests of an API that came."""
        return [request for _, name, _, request in self.requests if name == api]

    # Time.

    def run(self, until: Callable[[], object] | None = None, max_ms: int = 600_000) -> None:
        """Lets time pass until something is so, or else until `max_ms` are over."""
        end_ms = self.now_ms + max_ms
        for _ in range(_MAX_STEPS):
            if until is not None and until():
                return
            due_ms = self._step()
            if until is not None and until():
                return
            if due_ms is None or due_ms > end_ms:
                self.now_ms = end_ms
                assert until is None, f"nothing happens any more within {max_ms} ms"
                return
            self.now_ms = max(self.now_ms, due_ms)
        raise AssertionError("the client does not come to rest")

    def _step(self) -> int | None:
        """Does what is due now; returns when something is next."""
        while self._events and self._events[0][0] <= self.now_ms:
            heapq.heappop(self._events)[2]()
        driven = self.machine or self.network
        driven.tick(self.now_ms)
        for connection in self.network.take_connections():
            self.after(self.latency_ms, partial(self._open, connection))
        for connection in self.network.take_changed():
            self._flush(connection)
        due = [self._events[0][0]] if self._events else []
        deadline_ms = driven.next_deadline_ms()
        if deadline_ms is not None:
            due.append(deadline_ms)
        return min(due, default=None)

    # Connections.

    def _node_at(self, host: str) -> int | None:
        for node_id, node in self.nodes.items():
            if node.host == host:
                return None if node_id in self.down else node_id
        return next((one for one in self.nodes if one not in self.down), None)

    def _open(self, connection: Connection) -> None:
        node_id = self._node_at(connection.host)
        if node_id is None:
            connection.lost(ConnectionRefusedError("refused"), self.now_ms)
        elif not connection.is_ended:
            self._sockets[connection] = _Socket(connection, node_id)
            connection.opened(self.now_ms)

    def _flush(self, connection: Connection) -> None:
        data = b"".join(connection.take_output())
        end = self._sockets.get(connection)
        if end is not None and data:
            self.after(self.latency_ms, lambda: self._receive(end, data))
        if connection.is_ended:
            self._sockets.pop(connection, None)
        elif connection.wants_token and self.token is not None:
            self.after(0, lambda: connection.log_in(self.token, self.now_ms))

    def _drop(self, connection: Connection) -> None:
        if self._sockets.pop(connection, None) is not None:
            connection.lost(None, self.now_ms)

    def _receive(self, end: _Socket, data: bytes) -> None:
        end.frames.feed(data)
        while (frame := end.frames.take()) is not None:
            self._handle(end, frame)

    def _handle(self, end: _Socket, frame: bytes) -> None:
        if end.takes_bare_frame and self.on_bare_frame is not None:
            end.takes_bare_frame = False
            bare = b"".join(self.on_bare_frame(frame))
            self.after(self.latency_ms, lambda: self._answer(end, bare))
            return
        header, position = read_request_header(frame)
        api = name_of(header.api_key)
        request_type, response_type = messages_of(api)
        version = header.api_version
        request, _ = decode(request_type, version)(frame, position)
        self.requests.append((end.node_id, api, version, request))
        self.node_id = end.node_id
        end.takes_bare_frame = api == "SaslHandshake" and version == 0
        answer = self._handlers[api](request, version)
        if answer is SILENCE or getattr(request, "acks", None) == 0:
            return
        if answer is CUT:
            self.after(self.latency_ms, lambda: self._drop(end.connection))
            return
        delay_ms = 0
        if isinstance(answer, Later):
            delay_ms, answer = answer
        end.busy_until_ms = max(end.busy_until_ms, self.now_ms + delay_ms)
        if isinstance(answer, bytes):
            sent = answer
        else:
            body = b"".join(encode(response_type, version)(answer))
            before = response_header(header.api_key, version, header.correlation_id)
            sent = b"".join(framed([before, body]))
        wait_ms = end.busy_until_ms - self.now_ms + self.latency_ms
        self.after(wait_ms, lambda: self._answer(end, sent))

    def _answer(self, end: _Socket, data: bytes) -> None:
        if end.connection in self._sockets:
            end.connection.received(data, self.now_ms)

    # What it answers itself.

    def api_versions(self, _request: Any, _version: int) -> ApiVersionsResponse:
        """All APIs that there are handlers for."""
        keys = []
        for api in self._handlers:
            request, _ = messages_of(api)
            served = self.versions.get(api, schema(request).versions)
            key = schema(request).api_key or 0
            keys.append(
                ApiVersion(api_key=key, min_version=served.start, max_version=served.stop - 1)
            )
        return ApiVersionsResponse(
            api_keys=keys,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in self.features.items()
            ],
        )

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        """The nodes and topics."""
        if request.topics is None:
            names = list(self.topics)
        else:
            names = [one.name or "" for one in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port)
                for one in self.nodes.values()
            ],
            cluster_id="scripted",
            controller_id=min(self.nodes, default=-1),
            topics=[self._topic(name, version) for name in names],
        )

    def leader_of(self, topic: str, partition: int) -> tuple[int, int]:
        """Node and epoch of a leader."""
        chosen = 1 + partition % max(1, len(self.nodes))
        return self.leaders.get((topic, partition), (chosen, 0))

    def id_of(self, topic: str) -> bytes:
        """The id of a topic, drawn from its name."""
        return self.topic_ids.setdefault(topic, struct.pack(">16s", topic.encode()[:16]))

    def _topic(self, name: str, version: int) -> MetadataResponseTopic:
        error_code = self.errors.get(name, 0 if name in self.topics else 3)
        if error_code:
            return MetadataResponseTopic(name=name, error_code=error_code)
        partitions = []
        for index in range(self.topics[name]):
            leader_id, epoch = self.leader_of(name, index)
            partitions.append(
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader_id,
                    leader_epoch=epoch,
                    error_code=0 if leader_id >= 0 else 5,
                    replica_nodes=[leader_id],
                    isr_nodes=[leader_id],
                )
            )
        topic_id = self.id_of(name) if version >= 10 else bytes(16)
        return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)
