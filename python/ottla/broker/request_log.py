"""A line for each request that is answered, as Kafka's ``kafka.request.logger`` has it (KIP-511).

In the text form a line ends with what the client says it is; the JSON form is Kafka's later one
(KIP-673), an object a line. Both have every request; of its contents, what `loggable` shows. A line
is there before its answer is sent: who has the answer finds the line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.loggable import loggable
from ottla.broker.trace import Trace
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode
from ottla.text import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.context import Context
    from ottla.protocol.wire import Message

__all__ = ["JSON", "TEXT", "RequestLog"]

TEXT: Final = "text"
JSON: Final = "json"


class RequestLog:
    """Writes a line when a request is answered.

    Args:
        form: `TEXT` or `JSON`.
        elapsed_us: real time, which a test does not advance.
        write: takes a line, without its end.
        is_on: whether requests that come now are to have their line.
    """

    def __init__(
        self,
        form: str,
        *,
        elapsed_us: Callable[[], int],
        write: Callable[[str], None],
        is_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._line = _json_line if form == JSON else _text_line
        self._elapsed_us = elapsed_us
        self._write = write
        self._is_on = is_on

    def begin(self, context: Context, frame: bytes, position: int) -> None:
        """A request has come, whose body begins at a position."""
        if self._is_on():
            context.trace = Trace(frame, position, self._elapsed_us())

    def wait(self, context: Context) -> None:
        """A request waits for its answer."""
        if context.trace is not None:
            context.trace.left_us = self._elapsed_us()

    def end(self, context: Context, parts: list[bytes] | None) -> None:
        """A request is answered, or has no answer; its line is written when the answer leaves."""
        trace, context.trace = context.trace, None
        if trace is None:
            return
        answered_us = self._elapsed_us()
        if parts is None:
            self._tell(context, trace, answered_us, None)
            return
        send = context.send

        def send_with_a_line(answer: list[bytes] | None) -> None:
            self._tell(context, trace, answered_us, None if answer is None else parts)
            send(answer)

        context.send = send_with_a_line

    def _tell(
        self, context: Context, trace: Trace, answered_us: int, parts: list[bytes] | None
    ) -> None:
        now_us = self._elapsed_us()
        left_us = answered_us if trace.left_us is None else trace.left_us
        module = import_module(f"ottla.protocol.messages.{context.api.name}")
        response = None
        if parts is not None:
            kind = getattr(module, f"{context.api.title}Response")
            response = _shown(kind, context.version, b"".join(parts), 0)
        kind = getattr(module, f"{context.api.title}Request")
        request = _shown(kind, context.version, trace.frame, trace.position)
        times = _Times(
            (now_us - trace.begun_us) / 1000,
            (left_us - trace.begun_us) / 1000,
            (answered_us - left_us) / 1000,
            (now_us - answered_us) / 1000,
        )
        self._write(self._line(context, request, response, times))


class _Times(NamedTuple):
    """What a request took, in Kafka's words. It is handled as soon as it is read.

    Attributes:
        total_ms: until its answer leaves.
        local_ms: until it is answered, or waits for others.
        remote_ms: for what it waited.
        queued_ms: for what its answer waited: the disk.
    """

    total_ms: float
    local_ms: float
    remote_ms: float
    queued_ms: float


def _shown(message: type[Message], version: int, frame: bytes, position: int) -> Any:
    """Returns what is shown of a message."""
    try:
        return loggable(decode(message, version)(frame, position)[0], version)
    except MalformedFrameError as error:
        # A request that is refused unread; an answer is decoded in the version it was made in.
        return str(error)


def _json_line(context: Context, request: Any, response: Any, times: _Times) -> str:
    connection = context.connection
    return json_text(
        {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": context.api.key,
                "requestApiVersion": context.version,
                "correlationId": context.correlation_id,
                "clientId": context.client_id,
                "requestApiKeyName": context.api.name.upper(),
            },
            "request": request,
            "response": response,
            "connection": connection.connection_id,
            "totalTimeMs": times.total_ms,
            "requestQueueTimeMs": 0.0,
            "localTimeMs": times.local_ms,
            "remoteTimeMs": times.remote_ms,
            "throttleTimeMs": 0,
            "responseQueueTimeMs": times.queued_ms,
            "sendTimeMs": 0.0,
            "securityProtocol": connection.security_protocol,
            "principal": connection.principal,
            "listener": connection.listener,
            "clientInformation": {
                "softwareName": connection.software_name,
                "softwareVersion": connection.software_version,
            },
        }
    )


def _text_line(context: Context, request: Any, response: Any, times: _Times) -> str:
    connection = context.connection
    return visible(
        f"Completed request:RequestHeader(apiKey={context.api.name.upper()}, "
        f"apiVersion={context.version}, clientId={context.client_id}, "
        f"correlationId={context.correlation_id}) -- {_braced(request)},"
        f"response:{_braced(response)} from connection {connection.connection_id};"
        f"totalTime:{times.total_ms},requestQueueTime:0.0,localTime:{times.local_ms},"
        f"remoteTime:{times.remote_ms},throttleTime:0,responseQueueTime:{times.queued_ms},"
        f"sendTime:0.0,"
        f"securityProtocol:{connection.security_protocol},principal:{connection.principal},"
        f"listener:{connection.listener},clientInformation:ClientInformation("
        f"softwareName={connection.software_name}, softwareVersion={connection.software_version})"
    )


def _braced(value: Any) -> str:
    """Returns a value as Kafka's structs write themselves."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}={_braced(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_braced, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
