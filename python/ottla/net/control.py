"""The control endpoint: what a test asks of a broker in another process, in any language.

    POST /fail HTTP/1.1
    Host: 127.0.0.1:9093
    Authorization: Bearer 6d1f…
    Content-Length: 62

    {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}

A path is the name of an operation, the body an object of its arguments; without arguments GET does
as well where nothing changes. The answer is an object: its ``result``, or an ``error``.

Whoever has the token may do all of it, and nobody else anything. The endpoint answers to names of
this machine alone, so that a page in a browser cannot come in by a name of its own, and it sends no
headers that would let a page read an answer (CORS).
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, NoReturn

from ottla.errors import KafkaError, ServerBusyError, ServerStoppedError
from ottla.net.control_operations import OPERATIONS, Operation
from ottla.net.http import NOT_OF_THIS_MACHINE, http_answer
from ottla.net.operations import Operations
from ottla.net.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.broker import Broker
    from ottla.net.http import HttpRequest
    from ottla.net.outcome import Outcome
    from ottla.net.served import Send
    from ottla.net.server import Server
    from ottla.net.wanted import Wanted

__all__ = ["ControlSite", "new_token"]

MAX_BODY_BYTES = 1 << 20
"""Of a request: the longest are settings of a topic."""

MAX_LOG_BYTES = 4 << 20
"""Of batches in one answer: more is read part by part, and clients have a turn between."""

MAX_WAIT_S = 600.0
"""Of one request; who waits longer asks again."""

TOKEN_BYTES = 16


def new_token() -> str:
    """Returns a token that nobody guesses."""
    import os

    return os.urandom(TOKEN_BYTES).hex()


class ControlSite(Site):
    """Operations on a broker, by HTTP.

    Args:
        server: of the broker.
        token: what a request has to bear.
        is_local: whether it is to answer to names of this machine alone.
        stop: ends the server; called on its thread once that has been answered.
    """

    max_body_bytes = MAX_BODY_BYTES

    def __init__(
        self,
        server: Server[Broker],
        token: str,
        *,
        stop: Callable[[], None],
        is_local: bool = True,
    ) -> None:
        self._server = server
        self._operations = Operations(server, max_bytes=MAX_LOG_BYTES)
        self._credential = f"Bearer {token}".encode()
        self._is_local = is_local
        self._stop = stop

    def answer(self, _connection: Any, request: HttpRequest, _now_ms: int, send: Send) -> bool:
        """Answers a request, later where it waits for something."""
        try:
            self._admit(request)
            operation, arguments = _read(request)
            if operation.waits:
                self._wait(request, send, operation, arguments)
                return True
            result = self._do(operation, arguments)
        except _RefusedError as refusal:
            _send(send, request, refusal.status, {"error": refusal.error})
        except (KafkaError, ServerBusyError, ServerStoppedError, ValueError) as error:
            _send(send, request, _status_of(error), {"error": error_object(error)})
        else:
            _send(send, request, 200, {"result": plain(result)})
            if operation.name == "stop":
                self._stop()
        return False

    def _admit(self, request: HttpRequest) -> None:
        # At the first request: it costs a tenth of the start of a process.
        from hmac import compare_digest

        if self._is_local and not request.is_of_this_machine:
            _refuse(421, NOT_OF_THIS_MACHINE)
        if not compare_digest(request.headers.get("authorization", "").encode(), self._credential):
            _refuse(401, "a request needs the header `Authorization: Bearer TOKEN`")

    def _do(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        if operation.name == "operations":
            return {name: each.described() for name, each in OPERATIONS.items()}
        if operation.name == "bootstrap_servers":
            from ottla.net.serving import endpoints_of

            return next(iter(endpoints_of(self._server).values()))
        if operation.name == "stop":
            return None
        return getattr(self._operations, operation.name)(**arguments)

    def _wait(
        self, request: HttpRequest, send: Send, operation: Operation, arguments: dict[str, Any]
    ) -> None:
        timeout_s = arguments.pop("timeout_s", 10.0)
        if not 0 <= timeout_s <= MAX_WAIT_S:
            raise ValueError(f"timeout_s is {timeout_s}, expected 0 to {MAX_WAIT_S:g}")
        wanted: Wanted = self._do(operation, arguments)

        def tell(outcome: Outcome[str]) -> None:
            error = outcome.error
            if error is None and outcome.get():
                error = TimeoutError(wanted.lateness(outcome.get(), timeout_s))
            if error is None:
                _send(send, request, 200, {"result": None})
            else:
                _send(send, request, _status_of(error), {"error": error_object(error)})

        self._server.watch(lambda _: wanted.look(), tell, timeout_s)


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"kind": "RequestError", "message": message}


def _refuse(status: int, message: str) -> NoReturn:
    raise _RefusedError(status, message)


def _read(request: HttpRequest) -> tuple[Operation, dict[str, Any]]:
    """Returns the operation that is asked for, and its arguments."""
    operation = OPERATIONS.get(request.path[1:])
    if operation is None:
        _refuse(404, "there is no such operation; GET /operations lists them")
    if request.query:
        _refuse(400, "arguments are an object of JSON in the body of a POST, not a query")
    if request.method == "GET":
        if operation.changes or operation.waits:
            _refuse(405, f"{operation.name} is asked for by POST")
    elif request.method != "POST":
        _refuse(405, "the methods here are GET and POST")
    try:
        given = json.loads(request.body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(400, "the body is no JSON")
    if not isinstance(given, dict):
        _refuse(400, "the body is no object of JSON")
    try:
        return operation, operation.checked(given)
    except ValueError as error:
        _refuse(400, str(error))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _send(send: Send, request: HttpRequest, status: int, told: Mapping[str, Any]) -> None:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004
    body = json.dumps(told, separators=(",", ":")).encode() + b"\n"
    send(http_answer(status, body, "application/json", is_last=request.is_last, headers=headers))


def plain(value: Any) -> Any:
    """Returns a value of which JSON is made: bytes become base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def error_object(error: BaseException) -> dict[str, Any]:
    """Returns what is told of an error."""
    told: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, KafkaError):
        told |= {"error": error.error, "error_code": error.error_code}
    return told


def _status_of(error: BaseException) -> int:
    if isinstance(error, TimeoutError):
        # Not 408 or 504, by which some clients would ask again by themselves.
        return 409
    return 503 if isinstance(error, ServerBusyError | ServerStoppedError) else 400
