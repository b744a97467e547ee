"""A client that asks a broker without sockets, in any version of any API."""

from collections.abc import Mapping
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.image import BrokerNode
from ottla.broker.plane import DataPlane
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import request_header, response_header
from ottla.protocol.wire import Message, schema

NOW_MS = 1_800_000_000_000
CLUSTER_ID = "abcdefghijklmnopqrstuv"


class Peer(NamedTuple):
    host: str = "127.0.0.1"
    listener: str = "PLAINTEXT"
    security_protocol: str = "PLAINTEXT"
    subject: str = ""


def new_broker(config: Mapping[str, str] | None = None, **options: Any) -> Broker:
    """A broker without a server."""
    return Broker(
        BrokerNode(1, {"PLAINTEXT": ("127.0.0.1", 9092)}),
        BrokerConfig(config),
        plane=DataPlane(),
        random=Random(7),
        cluster_id=CLUSTER_ID,
        now_ms=NOW_MS,
        **options,
    )


_ANYWHERE = {0, 10}
"""Produce goes to leaders, FindCoordinator to anybody."""


class WireClient:
    """One connection to a broker, with a clock of its own.

    As clients do, it looks for a coordinator before its first request to one, unless it is told
    not to.
    """

    def __init__(
        self,
        broker: Broker,
        client_id: str = "test",
        peer: Peer | None = None,
        *,
        looks_for_coordinators: bool = True,
    ) -> None:
        self.broker = broker
        self.client_id = client_id
        self.connection = broker.connect(peer or Peer())
        self.now_ms = NOW_MS
        self.correlation_id = 0
        self._to_look_for = {"group", "transactional_id"} if looks_for_coordinators else set()

    def send(self, request: Message, version: int) -> "Pending":
        """Sends a request, whose answer may come later."""
        self.correlation_id += 1
        declared = schema(type(request))
        key = declared.api_key
        assert key is not None
        self._look_for_coordinators(key)
        header = request_header(key, version, self.correlation_id, self.client_id)
        frame = header + b"".join(encode(type(request), version)(request))
        pending = Pending(type(request), version, self.correlation_id)
        pending.waits = self.broker.handle(self.connection, frame, self.now_ms, pending.take)
        self.broker.tick(self.now_ms)
        return pending

    def ask(self, request: Message, version: int) -> Any:
        """The answer to a request."""
        return self.send(request, version).answer()

    def _look_for_coordinators(self, key: int) -> None:
        """Has the coordinators lead that a request is for, whatever the client may ask."""
        api = self.broker.apis.get(key)
        needed = (
            self._to_look_for & api.selectors if api is not None and key not in _ANYWHERE else ()
        )
        for kind in sorted(needed):
            self._to_look_for.discard(kind)
            coordinator = self.broker.groups if kind == "group" else self.broker.transactions
            coordinator.ensure_log(self.now_ms)

    def advance(self, duration_ms: int) -> None:
        """Lets time pass, deadline by deadline."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.broker.tick(self.now_ms)
        self.now_ms = end_ms


class Pending:
    """A request that was sent."""

    def __init__(self, request: type[Message], version: int, correlation_id: int) -> None:
        module = import_module(request.__module__)
        self.response = getattr(module, request.__name__.removesuffix("Request") + "Response")
        self.version = version
        self.correlation_id = correlation_id
        self.frames: list[bytes | None] = []
        self.waits = False

    def take(self, parts: Any) -> None:
        self.frames.append(None if parts is None else b"".join(parts))

    @property
    def is_answered(self) -> bool:
        return bool(self.frames)

    def answer(self) -> Any:
        (frame,) = self.frames
        assert frame is not None
        key = schema(self.response).api_key
        assert key is not None
        header = response_header(key, self.version, self.correlation_id)
        assert frame.startswith(header)
        answer, position = decode(self.response, self.version)(frame, len(header))
        assert position == len(frame)
        return answer
