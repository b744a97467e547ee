"""A broker in a process of its own, which ends with the one that has started it.

The child's standard input is a pipe that only the parent holds the other end of: when the parent
is gone, however that has happened, the pipe ends, and so does the child. What is asked of the
broker goes by its control endpoint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.errors import (
    KafkaError,
    ListenError,
    ServerBusyError,
    ServerError,
    ServerStoppedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.testing.options import Options

__all__ = ["OwnProcess"]

STOP_TIMEOUT_S = 10.0
CALL_TIMEOUT_S = 60.0
"""Of what is answered at once."""

# Without `site`, by the parent's own path: half the start, and the same packages.
_CHILD = """
import sys
sys.path[:] = {path!r}
from ottla.testing.child import main
main()
"""


class OwnProcess:
    """A broker in a process of its own."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._bootstrap_servers = ""
        self._control: tuple[str, int] = ("", 0)
        self._token = ""

    def start(self) -> None:
        """Begins to serve.

        Raises:
            OttlaError: what a broker in this process would raise.
        """
        home = str(Path(__file__).parents[2])
        program = _CHILD.format(path=[home, *(place for place in sys.path if place != home)])
        self._process = subprocess.Popen(  # noqa: S603 - this very Python
            [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            line = _told(self._process, self._options)
        except BaseException:
            self.stop()
            raise
        told = json.loads(line) if line else {}
        if "bootstrap_servers" not in told:
            self.stop()
            raise _error_of(told.get("error", {}), "the broker's process ended at its start")
        self._bootstrap_servers = told["bootstrap_servers"]
        self._control = (told["host"], told["port"])
        self._token = told["token"]

    def stop(self) -> None:
        """Ends the process, and returns when it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens."""
        if not self._bootstrap_servers:
            raise ServerStoppedError("the server is not started yet")
        return self._bootstrap_servers

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """Returns what an operation returns."""
        result = self._ask(operation, arguments, CALL_TIMEOUT_S)
        restore = _RESTORE.get(operation)
        return result if restore is None else restore(result)

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Returns once there is what an operation waits for."""
        # pytest shows the line of the test, and not how it is waited here.
        __tracebackhide__ = True
        arguments["timeout_s"] = timeout_s
        self._ask(operation, arguments, timeout_s + CALL_TIMEOUT_S)

    async def wait_async(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Waits as `wait` does."""
        import asyncio  # noqa: PLC0415 - whoever awaits has it

        await asyncio.to_thread(self.wait, operation, timeout_s, **arguments)

    @property
    def server(self) -> Any:
        """Nothing that this process has.

        Raises:
            ValueError: always.
        """
        raise ValueError("a broker in a process of its own runs no function of this one")

    def _ask(self, operation: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - not at the start

        __tracebackhide__ = True
        if self._process is None:
            raise ServerStoppedError("the server has stopped, or is not started yet")
        if arguments.get("when") is not None:
            raise ValueError("a broker in a process of its own cannot call `when` of this one")
        given = {name: value for name, value in arguments.items() if value is not None}
        client = HTTPConnection(*self._control, timeout=timeout_s)
        try:
            client.request(
                "POST",
                f"/{operation}",
                json.dumps(given, default=_base64),
                {"Authorization": f"Bearer {self._token}"},
            )
            body = client.getresponse().read()
        except (OSError, HTTPException) as error:
            raise ServerStoppedError(f"the broker's process does not answer: {error}") from error
        finally:
            client.close()
        told = json.loads(body)
        if "error" in told:
            raise _error_of(told["error"], "")
        return told["result"]


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{value!r:.100} cannot be sent to the broker's process")


def _told(process: subprocess.Popen[bytes], options: Options) -> bytes:
    """Tells a process what to serve, and returns the line that it answers with."""
    if process.stdin is None or process.stdout is None:
        raise ServerError("the broker's process has no pipes")
    try:
        process.stdin.write(json.dumps(options._asdict()).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        # It has ended already; why, it has written to standard error.
        return b""
    return process.stdout.readline()


def _error_of(told: Mapping[str, Any], otherwise: str) -> Exception:
    """Returns an error that the other process has told of."""
    kind, message = told.get("kind", ""), told.get("message", otherwise)
    if kind == "KafkaError":
        return KafkaError(message, told["error_code"], told["error"])
    for known in (ValueError, TimeoutError):
        if kind == known.__name__:
            return known(message)
    from ottla.broker.configs.setting import InvalidConfigError  # noqa: PLC0415 - for an error

    for raised in (InvalidConfigError, ListenError, ServerBusyError, ServerStoppedError):
        if kind == raised.__name__:
            return raised(message)
    return ServerError(message)


def _log(parts: list[dict[str, Any]]) -> Any:
    from ottla.net.log_parts import LogPart  # noqa: PLC0415 - as the server loads it

    return [LogPart(**{**part, "data": b64decode(part["data"])}) for part in parts]


def _logs(names: list[list[Any]]) -> Any:
    return [(topic, partition) for topic, partition in names]


def _requests(entries: list[dict[str, Any]]) -> Any:
    from ottla.broker.journal import RequestEntry  # noqa: PLC0415

    return tuple(RequestEntry(**{**each, "errors": tuple(each["errors"])}) for each in entries)


def _producers(producers: list[dict[str, Any]]) -> Any:
    from ottla.broker.inspection import Producer  # noqa: PLC0415

    return tuple(Producer(**each) for each in producers)


def _transactions(transactions: dict[str, dict[str, Any]]) -> Any:
    from ottla.broker.inspection import Transaction  # noqa: PLC0415

    return {
        name: Transaction(**{**each, "partitions": tuple(map(tuple, each["partitions"]))})
        for name, each in transactions.items()
    }


def _groups(groups: dict[str, dict[str, Any]]) -> Any:
    from ottla.broker.inspection import Group, GroupMember, GroupOffset  # noqa: PLC0415

    def member(each: dict[str, Any]) -> GroupMember:
        return GroupMember(**{**each, "assignment": tuple(map(tuple, each["assignment"]))})

    return {
        name: Group(
            **{
                **each,
                "members": tuple(map(member, each["members"])),
                "offsets": tuple(GroupOffset(**offset) for offset in each["offsets"]),
            }
        )
        for name, each in groups.items()
    }


_RESTORE: Mapping[str, Callable[[Any], Any]] = {
    "groups": _groups,
    "log": _log,
    "logs": _logs,
    "producers": _producers,
    "requests": _requests,
    "transactions": _transactions,
}
"""What makes of JSON what a broker in this process returns, by operation."""
