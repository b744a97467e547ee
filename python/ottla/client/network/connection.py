"""A connection to a broker, from the moment that a socket is wanted to its end, without the socket.

| state | what ends it | next |
|---|---|---|
| connecting | `opened` | negotiating: ApiVersions is asked, nothing else |
| negotiating | an answer that asks for a lower version | negotiating |
| negotiating | what the broker serves | authenticating where there is SASL, else ready |
| authenticating | the last token of the mechanism is accepted | ready |
| ready | the session's time is nearly over (KIP-368) | authenticating |
| any | `lost`, no answer in time, a faulty answer, a refusal, no use | ended |

- Answers come in the order of the requests; whatever does not fit ends the connection.
- Each request gets exactly one outcome; once ended, none is open.
- An ended connection is never used again.
"""

from __future__ import annotations

import struct
from collections import deque
from enum import Enum
from functools import cache, partial
from sys import modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.client.errors import (
    ApiError,
    AuthenticationError,
    CorrelationIdMismatchError,
    IllegalStateError,
    KafkaError,
    MalformedResponseError,
    NetworkError,
)
from ottla.client.network.api_versions import ApiVersions, Negotiation
from ottla.client.network.sasl.login import Login
from ottla.client.network.throttle import holds_still
from ottla.errors import MalformedFrameError
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.framing import Frames, framed
from ottla.protocol.header import request_header, response_header
from ottla.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from ottla.protocol.varint import skip_tags
from ottla.protocol.wire import Message, schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.exchange import Exchange
    from ottla.client.network.settings import NetworkSettings

__all__ = ["Connection", "ConnectionOwner", "State"]

_CORRELATION_ID: Final = struct.Struct(">i")
_MAX_CORRELATION_ID: Final = (1 << 31) - 1
_TLS_BEGINNINGS: Final = (b"\x15\x03", b"\x16\x03")
_AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)

_EARLIEST_LOGIN: Final = 0.85
_LOGIN_JITTER: Final = 0.1
"""Parts of the time that a session has, as Kafka's own client has them (KIP-368)."""


class State(Enum):
    """What a connection does."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    ENDED = "ended"


class ConnectionOwner(Protocol):
    """Who is told of what a connection does, from within its methods."""

    def changed(self, connection: Connection) -> None:
        """There is output, or the end."""

    def ready(self, connection: Connection, now_ms: int) -> None:
        """It takes requests, or more requests than before."""

    def ended(self, connection: Connection, error: Exception | None, now_ms: int) -> None:
        """It has ended; without an error where nobody needed it any more."""


class _Call(NamedTuple):
    """How a request is written and its answer read, on this connection."""

    api_key: int
    version: int
    encode: Callable[[Any], list[bytes]]
    decode: Callable[[bytes, int], tuple[Any, int]]
    has_tags: bool
    may_throttle: bool


class _Open:
    """A request that has no answer yet: an exchange, or one of the connection's own (`take`)."""

    __slots__ = ("call", "correlation_id", "deadline_ms", "exchange", "take", "timeout_ms")

    def __init__(
        self,
        correlation_id: int | None,
        deadline_ms: int,
        timeout_ms: int,
        *,
        exchange: Exchange | None = None,
        call: _Call | None = None,
        take: Callable[[bytes, int], None] | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.deadline_ms = deadline_ms
        self.timeout_ms = timeout_ms
        self.exchange = exchange
        self.call = call
        self.take = take


@cache
def _response_of(request: type[Message]) -> type[Message]:
    name = request.__name__.removesuffix("Request") + "Response"
    found: type[Message] = getattr(modules[request.__module__], name)
    return found


class Connection:
    """One connection.

    Attributes:
        host, port: where it leads to.
        state: what it does.
        is_ended: whether the shell is to close it, once its output is written.
        was_ready: whether it ever took requests.
        versions: what the broker serves, once that is known.
        throttled_until_ms: before which no request is to be sent (KIP-219).
        wants_token: whether the shell is to call `log_in` with a token of OAUTHBEARER.
    """

    def __init__(
        self,
        host: str,
        port: int,
        settings: NetworkSettings,
        owner: ConnectionOwner,
        *,
        random: Callable[[], float],
        connect_by_ms: int,
        now_ms: int,
    ) -> None:
        self.host = host
        self.port = port
        self.state = State.CONNECTING
        self.was_ready = False
        self.versions: ApiVersions | None = None
        self.throttled_until_ms = 0
        self.wants_token = False
        self._settings = settings
        self._owner = owner
        self._frames = Frames(settings.receive_message_max_bytes)
        self._output: list[bytes] = []
        self._open: deque[_Open] = deque()
        self._next_id = 0
        self._calls: dict[tuple[type[Message], range | None], _Call] = {}
        self._negotiation = Negotiation(
            settings.client_software_name, settings.client_software_version
        )
        self._has_received = False
        self._is_retired = False
        self._has_answered = False
        self._random = random
        self._login: Login | None = None
        self._log_in_ms: int | None = None
        self._token_by_ms = 0
        self._began_ms = self._last_used_ms = now_ms
        # No open request is due before; looked at again once it is reached.
        self._check_ms = connect_by_ms

    def __repr__(self) -> str:
        return f"<Connection to {self.host}:{self.port}, {self.state.value}>"

    # What the shell calls.

    def opened(self, now_ms: int) -> None:
        """The socket is there, and its TLS."""
        if self.state is State.CONNECTING:
            self.state = State.NEGOTIATING
            self._ask_versions(now_ms)

    def received(self, data: bytes, now_ms: int) -> None:
        """Bytes have come."""
        if self.is_ended:
            return
        if not self._has_received and data:
            self._has_received = True
            if data[:2] in _TLS_BEGINNINGS:
                self._end(AuthenticationError(self._speaks_tls()), now_ms)
                return
        self._last_used_ms = now_ms
        frames = self._frames
        try:
            frames.feed(data)
            while (frame := frames.take()) is not None:
                self._take(frame, now_ms)
                if self.state is State.ENDED:
                    return
        except MalformedFrameError as error:
            self._end_by_fault(f"{self._where()} sent no answer of Kafka's: {error}", now_ms)

    def lost(self, error: Exception | None, now_ms: int) -> None:
        """The socket is closed, or could not be opened.

        Args:
            error: why, where that is known; a `KafkaError` is taken as it is.
            now_ms: the time.
        """
        if self.is_ended:
            return
        if isinstance(error, KafkaError):
            self._end(error, now_ms)
            return
        why = "" if error is None else f": {str(error) or type(error).__name__}"
        self._end(NetworkError(f"{self._what_was_lost()}{why}{self._hint()}"), now_ms)

    def log_in(self, token: str | None, now_ms: int) -> None:
        """Begins a login, once the token is there that it needs."""
        if self.state is State.AUTHENTICATING and self._login is None:
            self.wants_token = False
            self._login = Login(self._settings, token, self._random)
            self._try(self._shake_hands, now_ms)

    def take_output(self) -> list[bytes]:
        """Returns what is to be written, in this order."""
        output, self._output = self._output, []
        return output

    @property
    def is_ended(self) -> bool:
        """Whether it is over."""
        return self.state is State.ENDED

    # What the owner calls.

    @property
    def open_count(self) -> int:
        """How many requests have no answer yet."""
        return len(self._open)

    def may_send(self, now_ms: int) -> bool:
        """Whether a request would leave at once."""
        return (
            self.state is State.READY
            and len(self._open) < self._settings.max_in_flight_requests_per_connection
            and now_ms >= self.throttled_until_ms
            and not self._is_retired
        )

    def pick(self, request: type[Message], wanted: range | None = None) -> int:
        """Returns the version to send a request in; the connection is ready, or was.

        Raises:
            UnsupportedVersionError: the broker serves none.
        """
        return self._call(request, wanted).version

    def send(self, exchange: Exchange, deadline_ms: int, now_ms: int) -> int:
        """Sends a request, and returns in which version.

        Raises:
            UnsupportedVersionError: the broker serves none of its versions.
            UnwritableMessageError: the message has values that its version cannot hold.
        """
        call = self._call(exchange.request, exchange.versions)
        body = call.encode(exchange.message(call.version))
        correlation_id = self._write(call.api_key, call.version, body)
        if exchange.has_answer:
            timeout_ms = deadline_ms - now_ms
            self._await(
                _Open(correlation_id, deadline_ms, timeout_ms, exchange=exchange, call=call), now_ms
            )
        else:
            self._last_used_ms = now_ms
        return call.version

    def retire(self) -> None:
        """Has it take no more requests, and end at a tick at which none is open."""
        self._is_retired = True

    def close(self, now_ms: int) -> None:
        """Ends it, whatever is open."""
        self._end(NetworkError("the client was closed"), now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when `tick` has something to do by itself."""
        if self.is_ended:
            return None
        if self._is_retired and not self._open:
            return 0
        if self._open or self.state is not State.READY:
            due_ms: int | None = self._check_ms
        else:
            idle_ms = self._settings.connections_max_idle_ms
            due_ms = None if idle_ms < 0 else self._last_used_ms + idle_ms
        if self._log_in_ms is not None and self.state is State.READY:
            return self._log_in_ms if due_ms is None else min(due_ms, self._log_in_ms)
        return due_ms

    def tick(self, now_ms: int) -> None:
        """Ends it where its time, or that of a request, is over."""
        due_ms = self.next_deadline_ms()
        if due_ms is None or now_ms < due_ms:
            return
        if self._is_retired and not self._open:
            self._end(None, now_ms)
        elif self.state is State.CONNECTING:
            self._end_in_vain(f"cannot connect to {self._where()}", now_ms)
        elif self._open:
            self._check_requests(now_ms)
        elif self.state is State.AUTHENTICATING and now_ms < self._token_by_ms:
            self._check_ms = self._token_by_ms
        elif self.state is State.AUTHENTICATING:
            self._end_in_vain("sasl_oauth_token returned no token", now_ms)
        elif self._log_in_ms is None or now_ms < self._log_in_ms:
            self._end(None, now_ms)
        if self.state is State.READY and self._log_in_ms is not None and now_ms >= self._log_in_ms:
            self._authenticate(now_ms)

    # Requests out.

    def _call(self, request: type[Message], wanted: range | None) -> _Call:
        call = self._calls.get((request, wanted))
        if call is None:
            if self.versions is None:
                raise IllegalStateError(f"{self!r} takes no requests yet")
            key = schema(request).api_key or 0
            version = self.versions.pick(request, wanted)
            response = _response_of(request)
            fields = {field.name: field for field in schema(response).fields}
            throttle = fields.get("throttle_time_ms")
            call = self._calls[request, wanted] = _Call(
                key,
                version,
                encode(request, version),
                decode(response, version),
                _has_tags(key, version),
                throttle is not None and version in throttle.versions and holds_still(key, version),
            )
        return call

    def _write(self, api_key: int, version: int, body: list[bytes]) -> int:
        correlation_id = self._next_id
        self._next_id = 0 if correlation_id == _MAX_CORRELATION_ID else correlation_id + 1
        header = request_header(api_key, version, correlation_id, self._settings.client_id)
        self._output += framed([header, *body])
        self._owner.changed(self)
        return correlation_id

    def _await(self, request: _Open, now_ms: int) -> None:
        if not self._open or request.deadline_ms < self._check_ms:
            self._check_ms = request.deadline_ms
        self._open.append(request)
        self._last_used_ms = now_ms

    def _ask(
        self, message: Message, version: int, take: Callable[[bytes, int], None], now_ms: int
    ) -> None:
        """Sends a request of the connection's own."""
        key = schema(type(message)).api_key or 0
        correlation_id = self._write(key, version, encode(type(message), version)(message))
        self._await_own(correlation_id, take, now_ms)

    def _await_own(
        self, correlation_id: int | None, take: Callable[[bytes, int], None], now_ms: int
    ) -> None:
        timeout_ms = self._settings.request_timeout_ms
        self._await(_Open(correlation_id, now_ms + timeout_ms, timeout_ms, take=take), now_ms)

    # Answers in.

    def _take(self, frame: bytes, now_ms: int) -> None:
        if not self._open:
            raise MalformedFrameError(0, "an answer where no request is open")
        request = self._open[0]
        if request.correlation_id is not None:
            if len(frame) < _CORRELATION_ID.size:
                what = f"an answer of {len(frame)} bytes, less than its header"
                raise MalformedFrameError(0, what)
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            if correlation_id != request.correlation_id:
                error = CorrelationIdMismatchError(request.correlation_id, correlation_id)
                self._end(error, now_ms)
                return
        exchange, call = request.exchange, request.call
        if exchange is None or call is None:
            self._open.popleft()
            if request.take is not None:
                self._try(partial(request.take, frame), now_ms)
            return
        response = _decoded(call, frame)
        self._open.popleft()
        if call.may_throttle and response.throttle_time_ms > 0:
            self.throttled_until_ms = now_ms + response.throttle_time_ms
        self._has_answered = True
        exchange.answered(response, call.version, now_ms)
        if self.state is State.READY:
            self._owner.ready(self, now_ms)

    def _try(self, step: Callable[[int], None], now_ms: int) -> None:
        """Takes a step towards being ready; an error of it is the end."""
        try:
            step(now_ms)
        except ApiError as error:
            self._end(type(error)(f"{self._where()}: {error}", error.error_code), now_ms)

    def _ask_versions(self, now_ms: int) -> None:
        asked = self._negotiation
        self._ask(asked.request(), asked.version, self._take_versions, now_ms)

    def _take_versions(self, frame: bytes, now_ms: int) -> None:
        self.versions = self._negotiation.answered(frame, _CORRELATION_ID.size)
        if self.versions is None:
            self._ask_versions(now_ms)
        elif self._settings.security_protocol.startswith("SASL_"):
            self._authenticate(now_ms)
        else:
            self._become_ready(now_ms)

    def _authenticate(self, now_ms: int) -> None:
        self.state = State.AUTHENTICATING
        self._login = self._log_in_ms = None
        if self._settings.sasl_mechanism == "OAUTHBEARER":
            self.wants_token = True
            self._token_by_ms = now_ms + self._settings.request_timeout_ms
            if not self._open:
                self._check_ms = self._token_by_ms
            self._owner.changed(self)
        else:
            self.log_in(None, now_ms)

    def _shake_hands(self, now_ms: int) -> None:
        if self._login is not None:
            request = self._login.handshake()
            version = self.pick(type(request))
            self._ask(request, version, partial(self._take_handshake, version), now_ms)

    def _take_handshake(self, version: int, frame: bytes, now_ms: int) -> None:
        if self._login is not None:
            response, _ = decode(SaslHandshakeResponse, version)(frame, _CORRELATION_ID.size)
            self._send_token(self._login.first_token(response), version > 0, now_ms)

    def _send_token(self, token: bytes, is_wrapped: bool, now_ms: int) -> None:
        if is_wrapped:
            version = self.pick(SaslAuthenticateRequest)
            take = partial(self._take_token, version)
            self._ask(Login.request(token), version, take, now_ms)
        else:
            self._output += framed([token])
            self._owner.changed(self)
            self._await_own(None, partial(self._take_token, None), now_ms)

    def _take_token(self, version: int | None, frame: bytes, now_ms: int) -> None:
        login = self._login
        if login is None:
            return
        if version is None:
            token = login.next_bare_token(frame)
        else:
            position = _body_position(frame, _has_tags(_AUTHENTICATE, version))
            response, _ = decode(SaslAuthenticateResponse, version)(frame, position)
            token = login.next_token(response)
        if token is not None:
            self._send_token(token, version is not None, now_ms)
            return
        if login.session_ms > 0:
            # Before the broker ends the session, and not with all other clients at once.
            part = _EARLIEST_LOGIN + _LOGIN_JITTER * self._random()
            self._log_in_ms = now_ms + int(login.session_ms * part)
        self._become_ready(now_ms)

    def _become_ready(self, now_ms: int) -> None:
        self.state = State.READY
        self.was_ready = True
        self._owner.ready(self, now_ms)

    # The end.

    def _check_requests(self, now_ms: int) -> None:
        earliest = min(one.deadline_ms for one in self._open)
        self._check_ms = earliest
        if earliest <= now_ms:
            late = next(one for one in self._open if one.deadline_ms <= now_ms)
            what = self.state.value if late.exchange is None else _name_of(late.exchange)
            message = f"{self._where()} did not answer within {late.timeout_ms} ms ({what})"
            self._end(NetworkError(message), now_ms)

    def _end_in_vain(self, what: str, now_ms: int) -> None:
        self._end(NetworkError(f"{what} within {now_ms - self._began_ms} ms"), now_ms)

    def _end_by_fault(self, message: str, now_ms: int) -> None:
        self._end(MalformedResponseError(message), now_ms)

    def _end(self, error: Exception | None, now_ms: int) -> None:
        if self.is_ended:
            return
        self.state = State.ENDED
        requests, self._open = self._open, deque()
        self._output.clear()
        self._owner.changed(self)
        oldest = error
        for request in requests:
            if request.exchange is not None:
                request.exchange.failed(oldest or NetworkError("not needed any more"), now_ms)
            if not isinstance(oldest, NetworkError):
                # A faulty answer is a fault of the oldest request alone.
                oldest = NetworkError(f"{self._where()} was disconnected: {oldest}")
        self._owner.ended(self, error, now_ms)

    def _what_was_lost(self) -> str:
        if self.state is State.CONNECTING:
            return f"cannot connect to {self._where()}"
        if self.state is State.NEGOTIATING and not self._has_received:
            return f"{self._where()} closed the connection before its first answer"
        return f"{self._where()} closed the connection"

    def _hint(self) -> str:
        """Returns what the usual mistake is where a connection is lost so early."""
        protocol = self._settings.security_protocol
        if self.state is State.NEGOTIATING:
            return (
                f"; either security_protocol {protocol} is not what it speaks, or it is older than "
                "Kafka 0.10"
            )
        if self.state is State.AUTHENTICATING and not self.was_ready:
            return "; brokers before Kafka 1.0 refuse a login so"
        if self.state is State.READY and not self._has_answered and "SASL" not in protocol:
            return f"; perhaps it expects a login, where security_protocol is {protocol}"
        return ""

    def _where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def _speaks_tls(self) -> str:
        protocol = self._settings.security_protocol
        other = "SASL_SSL" if protocol.startswith("SASL") else "SSL"
        return (
            f"{self._where()} speaks TLS, where security_protocol is {protocol}: set it to {other}"
        )


def _name_of(exchange: Exchange) -> str:
    return exchange.request.__name__.removesuffix("Request")


def _has_tags(api_key: int, version: int) -> bool:
    """Returns whether the header of an answer has tags."""
    return len(response_header(api_key, version, 0)) > _CORRELATION_ID.size


def _body_position(frame: bytes, has_tags: bool) -> int:
    """Returns where the body of an answer begins."""
    position = _CORRELATION_ID.size
    if not has_tags:
        return position
    # Hardly any broker has tags here.
    if len(frame) > position and not frame[position]:
        return position + 1
    try:
        return skip_tags(frame, position)
    except IndexError:
        raise MalformedFrameError(position, "it ends inside its header") from None


def _decoded(call: _Call, frame: bytes) -> Any:
    response, _ = call.decode(frame, _body_position(frame, call.has_tags))
    return response
