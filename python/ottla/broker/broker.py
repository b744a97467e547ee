"""A broker: a frame in, an answer out; and time.

    frame ─▸ header ─▸ API and version ─▸ faults ─▸ handler ─▸ answer ─▸ send
                                                      └─▸ LATER ─▸ waiting ─▸ answer ─▸ send

Whoever owns it calls `handle` for each frame of a connection, one after the other; `tick` after
frames and at `next_deadline_ms`; and nothing else from another thread.
"""

from __future__ import annotations

from functools import cached_property, partial
from importlib import import_module
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.api import APIS, Api
from ottla.broker.authorizer import Authorizer
from ottla.broker.compaction import Cleaner
from ottla.broker.connection import ANONYMOUS, CloseConnectionError, Connection
from ottla.broker.context import Context, Later
from ottla.broker.features import FEATURES
from ottla.broker.journal import Journal
from ottla.broker.meters import Meters
from ottla.broker.state import State
from ottla.broker.topics import Topics
from ottla.broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from ottla.broker.waiting import NEVER_MS, Waiting
from ottla.errors import KafkaError, MalformedFrameError
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.header import read_client_id, response_header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.faults import Fault
    from ottla.broker.features import Feature
    from ottla.broker.groups.serving import BrokerGroups
    from ottla.broker.image import BrokerNode
    from ottla.broker.keeper import Keeper
    from ottla.broker.plane import DataPlane
    from ottla.broker.principals import PrincipalRules
    from ottla.broker.quotas import ClientQuotas
    from ottla.broker.request_log import RequestLog
    from ottla.broker.sasl.credentials import Credentials
    from ottla.broker.state import Random
    from ottla.broker.storage import Storage
    from ottla.broker.transactions.service import BrokerTransactions
    from ottla.protocol.wire import Message

    Send: TypeAlias = Callable[[list[bytes] | None], None]

__all__ = ["Broker", "Peer"]

_FIXED = Struct(">hhi")


class Peer(Protocol):
    """Who is at the other end of a connection."""

    @property
    def host(self) -> str:
        """Its address."""

    @property
    def listener(self) -> str:
        """The name of the listener that accepted it."""

    @property
    def security_protocol(self) -> str:
        """Of that listener."""


class Broker(State):
    """One broker.

    Args:
        node: its id and where clients reach it.
        config: its settings.
        plane: its partitions.
        now_ms: the time at which it begins.
        random: where ids come from.
        cluster_id: as in ``meta.properties``.
        apis: what it serves; everything by default.
        storage: where logs of partitions are; in memory by default.
        keeper: where everything else is kept; nowhere by default.
        features: those of the cluster; all that are known by default.

    Attributes:
        journal: the last requests.
        meters: what is counted of requests.
        request_log: has a line of every request, where it is set.
        wrong: why it cannot be used, in words, by subject; whoever finds out says so here.
        topics: creates, changes and deletes them.
        cleaner: compacts their logs.
        connections: those that are open.
        began_ms: when it began.
    """

    def __init__(
        self,
        node: BrokerNode,
        config: BrokerConfig,
        *,
        plane: DataPlane,
        random: Random,
        cluster_id: str,
        now_ms: int,
        apis: Mapping[int, Api] | None = None,
        storage: Storage | None = None,
        keeper: Keeper | None = None,
        features: tuple[Feature, ...] = FEATURES,
    ) -> None:
        super().__init__(
            node,
            config,
            plane=plane,
            random=random,
            cluster_id=cluster_id,
            storage=storage,
            keeper=keeper,
            features=features,
        )
        self.apis = APIS if apis is None else apis
        self.journal = Journal()
        self.meters = Meters()
        self.request_log: RequestLog | None = None
        self.wrong: dict[str, str] = {}
        self.topics = Topics(self)
        self.cleaner = Cleaner(self, self.topics)
        self.authorizer = Authorizer(
            is_enabled=bool(config.text("authorizer.class.name")),
            super_users=config.text("super.users").split(";"),
            allow_everyone=config.flag("allow.everyone.if.no.acl.found"),
            rules=self.keeper.rules(),
            keeper=self.keeper,
        )
        allocate = self.keeper.producer_id_allocator() or count(0, BLOCK_SIZE).__next__
        self.producer_ids = ProducerIds(allocate)
        self.connections: dict[Connection, None] = {}
        self._handlers: dict[int, Any] = {}
        self._requests: dict[int, type[Message]] = {}
        self.began_ms = now_ms
        self._repeat("log.retention.check.interval.ms", now_ms, self._apply_retention)
        self._repeat("log.cleaner.backoff.ms", now_ms, self._look_for_compaction)
        check = "producer.id.expiration.check.interval.ms"
        self._repeat(check, now_ms, plane.expire_producers)

    @cached_property
    def groups(self) -> BrokerGroups:
        """Groups and committed offsets, loaded when they are first asked for."""
        from ottla.broker.groups.serving import BrokerGroups  # noqa: PLC0415

        return BrokerGroups(self, self.topics, self.began_ms)

    @cached_property
    def transactions(self) -> BrokerTransactions:
        """Transactional ids; loaded at the first request about one."""
        from ottla.broker.transactions.service import BrokerTransactions  # noqa: PLC0415

        return BrokerTransactions(
            self, self.topics, self.producer_ids, self._decide_offsets, self.began_ms
        )

    def _decide_offsets(self, producer_id: int, partition: int, *, is_commit: bool) -> None:
        self.groups.end_transaction(producer_id, partition, is_commit=is_commit)

    @cached_property
    def credentials(self) -> Credentials:
        """Who can authenticate; loaded where somebody has to."""
        from ottla.broker.sasl.logins import credentials_of  # noqa: PLC0415

        return credentials_of(self.config.logins(), self.random, self.keeper)

    @cached_property
    def principals(self) -> PrincipalRules:
        """How certificates name users; loaded where somebody shows one."""
        from ottla.broker.principals import NAME, PrincipalRules  # noqa: PLC0415

        return PrincipalRules(lambda listener: self.config.of_listener(listener).text(NAME))

    @cached_property
    def quotas(self) -> ClientQuotas:
        """Client quotas, which are kept and described."""
        from ottla.broker.quotas import ClientQuotas  # noqa: PLC0415

        return ClientQuotas(self.keeper)

    # What a shell calls.

    def connect(self, peer: Peer) -> Connection:
        """Returns what is known of a client that has connected.

        Raises:
            CloseConnectionError: no rule names a user for its certificate.
        """
        subject = getattr(peer, "subject", "")
        if subject:
            subject = self.principals.name_of(peer.listener, subject)
        connection = Connection(
            peer.host,
            listener=peer.listener,
            security_protocol=peer.security_protocol,
            principal=f"User:{subject}" if subject else ANONYMOUS,
        )
        connection.connection_id = getattr(peer, "connection_id", "")
        self.connections[connection] = None
        return connection

    def disconnect(self, connection: Connection) -> None:
        """A client is gone."""
        self.connections.pop(connection, None)

    def handle(self, connection: Connection, frame: bytes, now_ms: int, send: Send) -> bool:
        """Serves one frame, without its size.

        Args:
            connection: where it came from.
            frame: a request with its header.
            now_ms: the broker's clock.
            send: called once with the parts of the answer, without its size, or never; perhaps
                after the return. With `None` it closes the connection.

        Returns:
            Whether the connection's next frame has to wait until `send` is called.

        Raises:
            CloseConnectionError: the peer gets no answer, and its connection is closed.
        """
        if connection.uses_sasl:
            # A broker without SASL loads none of it.
            from ottla.broker.sasl.gate import admit  # noqa: PLC0415

            if not admit(self, connection, frame, now_ms, send):
                return False
        if len(frame) < _FIXED.size:
            raise CloseConnectionError(f"a request of {len(frame)} bytes, less than its header")
        key, version, correlation_id = _FIXED.unpack_from(frame)
        api = self.apis.get(key)
        if api is None:
            raise CloseConnectionError(f"a request of the unknown API key {key}")
        try:
            client_id, position = read_client_id(frame, key, version)
            context = Context(
                self, api, version, correlation_id, client_id, connection, now_ms, send
            )
            if self.request_log is not None:
                self.request_log.begin(context, frame, position)
            if not api.min_version <= version <= api.max_version:
                if key != ApiKey.API_VERSIONS:
                    raise CloseConnectionError(
                        f"version {version} of {api.title}, which is served in the versions "
                        f"{api.min_version} to {api.max_version}"
                    )
                self._refuse_version(context)
                return False
            self.storage.begin()
            work = self._run_unless_struck if self.faults.are_set else self._run
            waits = work(context, frame, position)
        except MalformedFrameError as error:
            raise CloseConnectionError(f"a malformed request of {api.title}: {error}") from None
        finally:
            self.storage.end()
        if waits and self.request_log is not None:
            self.request_log.wait(context)
        return waits or context.is_held

    def tick(self, now_ms: int) -> None:
        """Does what is due: after frames, and at `next_deadline_ms`."""
        if not self.waiting.is_idle(now_ms):
            self.storage.begin()
            self.waiting.tick(now_ms)
        # What is due may come from outside a request: a setting, a topic that a test made.
        self.storage.end()

    def next_deadline_ms(self) -> int | None:
        """Returns when `tick` has something to do; `None` for never."""
        return self.waiting.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Does at once what is done from time to time.

        That is retention, compaction, and forgetting producers.
        """
        self._apply_retention(now_ms)
        self._look_for_compaction(now_ms)
        self.plane.expire_producers(now_ms)
        self.waiting.settle(now_ms)

    def resign(self, now_ms: int) -> None:
        """Leads and compacts nothing any more, and tells that to all who wait for it."""
        self.topics.resign()
        self.cleaner.stop()
        self.tick(now_ms)

    # What handlers call.

    def handler(self, api: Api) -> Any:
        """Returns the module of an API's handler, loaded at its first request."""
        module = self._handlers.get(api.key)
        if module is None:
            module = import_module(f"ottla.broker.handlers.{api.name}")
            self._handlers[api.key] = module
        return module

    def answer(self, context: Context, response: Message) -> None:
        """Answers a request."""
        parts = encode(type(response), context.version)(response)
        self.send(context, parts, error_codes(response))

    def send(self, context: Context, parts: list[bytes], errors: tuple[int, ...]) -> None:
        """Sends the body of an answer behind its header, and remembers the request."""
        context.is_answered = True
        key = context.api.key
        answer = [response_header(key, context.version, context.correlation_id), *parts]
        if self.request_log is not None:
            self.request_log.end(context, parts)
        if self.storage.must_hold(key):
            self._hold(context, answer)
        else:
            context.send(answer)
        # The client does not wait for it: nobody looks before this thread is done.
        self._count(context, errors)

    def _hold(self, context: Context, answer: list[bytes]) -> None:
        """Sends an answer once what it rests on is on the disk."""

        def release(may_leave: bool) -> None:
            context.is_held = False
            context.send(answer if may_leave else None)

        context.is_held = True
        self.storage.hold(release)

    def remember(self, context: Context, errors: tuple[int, ...]) -> None:
        """Remembers a request that has no answer, with its errors."""
        if self.request_log is not None:
            self.request_log.end(context, None)
        self._count(context, errors)

    def _count(self, context: Context, errors: tuple[int, ...]) -> None:
        """Counts a request that is done with, and enters it into the journal."""
        connection = context.connection
        self.meters.count_request(context.api, context.version, errors)
        self.journal.add(
            (
                context.now_ms,
                context.api.title,
                context.version,
                context.client_id,
                connection.host,
                connection.software_name,
                connection.software_version,
                errors,
            )
        )

    def decoded(self, context: Context, frame: bytes, position: int) -> Message:
        """Returns the request in a frame.

        Raises:
            MalformedFrameError: it is none, or bytes are left behind it.
        """
        message = self._requests.get(context.api.key)
        if message is None:
            module = import_module(f"ottla.protocol.messages.{context.api.name}")
            message = getattr(module, f"{context.api.title}Request")
            self._requests[context.api.key] = message
        request: Message = decode(message, context.version)(frame, position)[0]
        return request

    # From time to time.

    def _apply_retention(self, now_ms: int) -> None:
        self.moved(self.plane.apply_retention(now_ms))

    def _look_for_compaction(self, now_ms: int) -> None:
        if self.config.flag("log.cleaner.enable"):
            self.cleaner.look(now_ms)

    def _repeat(self, setting: str, now_ms: int, action: Callable[[int], None]) -> None:
        """Has something done as often as a setting says."""

        def attempt(is_due: bool, now_ms: int) -> bool:
            if is_due:
                action(now_ms)
                waiting.deadline_ms = now_ms + max(1, self.config.number(setting))
            return False

        waiting = Waiting(now_ms + self.config.number(setting), attempt)
        self.waiting.add(waiting)

    # One request.

    def _run_unless_struck(self, context: Context, frame: bytes, position: int) -> bool:
        request = self.decoded(context, frame, position)
        # In a session, a request names what has changed of it.
        session = partial(self.plane.fetch_session, getattr(request, "session_id", 0))
        fault = self.faults.of_request(context, request, session)
        if fault is not None:
            return self._struck(fault, context, (frame, position, request))
        return self._run(context, frame, position)

    def _run(self, context: Context, frame: bytes, position: int) -> bool:
        api = context.api
        if api.takes_frame:
            handle = (self._handlers.get(api.key) or self.handler(api)).handle
            return self._finish(context, handle(self, frame, position, context))
        request = self.decoded(context, frame, position)
        handles = self._logs_before(api.key, request) if self.storage.is_kept else ()
        if not handles:
            return self._handle(context, request)

        def go_on(is_synced: bool) -> None:
            if not is_synced:
                context.send(None)
                return
            context.image = self.image
            try:
                self._handle(context, request)
            except CloseConnectionError:
                context.send(None)

        self.storage.when_synced(handles, go_on)
        return not context.is_answered

    def _logs_before(self, api_key: int, request: Message) -> tuple[int, ...]:
        """Returns the logs that have to be on the disk before a request is served, and are not."""
        from ottla.broker.data.order import logs_before  # noqa: PLC0415 - not in memory

        def partitions_of(transactional_id: str) -> frozenset[tuple[str, int]]:
            return self.transactions.partitions_of(transactional_id)

        return self.storage.unsynced(logs_before(api_key, request, self.image, partitions_of))

    def _handle(self, context: Context, request: Message) -> bool:
        handler = self.handler(context.api)
        try:
            outcome = handler.handle(self, request, context)
        except KafkaError as error:
            # What it changes cannot be kept.
            outcome = handler.refuse(request, context, error.error_code, str(error))
        return self._finish(context, outcome)

    def _finish(self, context: Context, outcome: Message | Later | None) -> bool:
        if isinstance(outcome, Later):
            return not context.is_answered
        if outcome is not None:
            self.answer(context, outcome)
        return False

    def _refuse_version(self, context: Context) -> None:
        """Answers in version 0 which versions of ApiVersions there are (KIP-511)."""
        context.version = 0
        error = ErrorCode.UNSUPPORTED_VERSION
        refusal = self.handler(context.api).refuse(None, context, error, None)
        self.answer(context, refusal)

    # Faults.

    def _struck(self, fault: Fault, context: Context, request: tuple[bytes, int, Message]) -> bool:
        frame, position, message = request
        if fault.is_paused:
            self._pause(fault, context, request)
            return True
        if fault.corrupt:
            context.send = _corrupting(context.send)
        if fault.delay_ms:
            context.send = self._delaying(fault.delay_ms, context)
        if fault.after:
            send, context.send = context.send, _nowhere
            if self._run(context, frame, position) or context.is_held:
                context.send = self._answering_instead(fault, context, message, send)
                return bool(fault.error or fault.disconnect)
            context.send, context.is_answered = send, False
        if fault.disconnect or fault.error:
            self._fail(fault, context, message)
            return bool(fault.delay_ms)
        waits = False if fault.after else self._run(context, frame, position)
        return waits or bool(fault.delay_ms)

    def _fail(self, fault: Fault, context: Context, message: Message) -> None:
        if fault.disconnect:
            raise CloseConnectionError("a fault that was set")
        refusal = self.handler(context.api).refuse(message, context, fault.error, None)
        if refusal is None:
            raise CloseConnectionError("a fault of a request that is not answered")
        self.answer(context, refusal)

    def _answering_instead(
        self, fault: Fault, context: Context, message: Message, send: Send
    ) -> Send:
        """Has a fault strike once a request that waits is answered: then its work is done."""

        def instead(parts: list[bytes] | None) -> None:
            context.send, context.is_answered = send, False
            if parts is None:
                send(None)
            elif fault.disconnect or fault.error:
                try:
                    self._fail(fault, context, message)
                except CloseConnectionError:
                    context.send(None)

        return instead

    def _pause(self, fault: Fault, context: Context, request: tuple[bytes, int, Message]) -> None:
        """Holds a request until the fault is released or taken away."""

        def attempt(is_due: bool, _now_ms: int) -> bool:
            if not is_due and fault.is_paused and fault in self.faults:
                return False
            context.image = self.image
            try:
                self._struck(fault, context, request)
            except CloseConnectionError:
                context.send(None)
            return True

        self.waiting.add(Waiting(NEVER_MS, attempt, [("fault", fault)]))

    def _delaying(self, delay_ms: int, context: Context) -> Send:
        send = context.send

        def later(parts: list[bytes] | None) -> None:
            self.waiting.do_at(context.now_ms + delay_ms, lambda: send(parts))

        return later


def _nowhere(_parts: list[bytes] | None) -> None:
    """Takes an answer that nobody gets."""


def _corrupting(send: Send) -> Send:
    def corrupted(parts: list[bytes] | None) -> None:
        if parts:
            *others, last = parts
            parts = [*others, bytes(last[:-1]) + bytes([last[-1] ^ 0xFF])]
        send(parts)

    return corrupted


def error_codes(message: object) -> tuple[int, ...]:
    """Returns the distinct error codes of an answer, ascending, without 0."""
    found: set[int] = set()
    _collect_errors(message, found)
    return tuple(sorted(found))


def _collect_errors(value: object, found: set[int]) -> None:
    if isinstance(value, list | tuple):
        for item in value:
            _collect_errors(item, found)
        return
    for name in getattr(type(value), "__slots__", ()):
        item = getattr(value, name, None)
        if name.endswith("error_code") and isinstance(item, int):
            if item:
                found.add(item)
        elif isinstance(item, list | tuple):
            _collect_errors(item, found)
