"""Drives the core of a client on an event loop: sockets, one timer, and calls that wait.

Whatever happens, bytes or a timer or a call of the user's, the machine is ticked, the connections
that it wants are opened, what it has to say is written, and the timer is set to its next deadline.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.client.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from ottla.net.client.sockets import connected
from ottla.net.client.tls import explained, tls_context
from ottla.net.client.tokens import token_of
from ottla.net.forks import look_after

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from ottla.client.network.connection import Connection
    from ottla.client.network.network import ClientNetwork
    from ottla.client.pending import Pending

__all__ = ["Driver", "Machine", "running_loop"]

_LOG: Final = logging.getLogger("ottla.client")

_MOST_ROUNDS: Final = 100
"""Of a machine that has more to do at once, before others on the loop have their turn."""

_LINGER_S: Final = 1.0
"""For what is written already to leave, once the client is closed."""

_FORSAKEN: Final = (
    "the client was not closed, and nobody refers to it any more: what was under way may not be "
    "done"
)


def running_loop() -> asyncio.AbstractEventLoop:
    """Returns the event loop that a client is made in.

    Raises:
        IllegalStateError: there is none.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise IllegalStateError(
            "no event loop runs here: make the client in a coroutine, such as main() of "
            "asyncio.run(main()), or take the client for threads"
        ) from None


class Machine(Protocol):
    """The core of a client.

    Attributes:
        network: its connections.
    """

    network: ClientNetwork

    def tick(self, now_ms: int) -> None:
        """Does what is due, and has the network do so."""

    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do by itself."""


class _Link(asyncio.Protocol):
    """A connection and its socket."""

    __slots__ = ("connection", "driver", "gone", "is_paused", "socket", "task", "transport")

    def __init__(self, driver: Driver, connection: Connection, gone: asyncio.Future[None]) -> None:
        self.driver = driver
        self.connection = connection
        self.gone = gone
        self.is_paused = False
        self.socket: socket.socket | None = None
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None

    def hold(self, sock: socket.socket) -> None:
        """Notes the socket, which is closed where this process is forked off."""
        self.socket = sock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.driver.enter(self.connection.opened)

    def data_received(self, data: bytes) -> None:
        self.driver.enter(self.connection.received, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.driver.lost(self, exc)

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        self.driver.flush(self)


class Driver:
    """One client on one event loop.

    Args:
        machine: its core.
        loop: runs it all; the running one unless another is given.
        tls: speaks TLS; as the settings of the network say unless another is given.
        lock: is held in each call into the machine, where other threads call it as well.
        on_end: is told why nobody is going to tick the machine again, where nobody has closed it.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        tls: ssl.SSLContext | None = None,
        lock: AbstractContextManager[Any] | None = None,
        on_end: Callable[[IllegalStateError], None] | None = None,
    ) -> None:
        self._machine = machine
        self._loop = loop or running_loop()
        self._tls = tls or tls_context(machine.network.settings)
        self._lock = lock or nullcontext()
        self._on_end = on_end
        self._process = os.getpid()
        self._links: dict[Connection, _Link] = {}
        self._waiting: set[Callable[[], None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_woken = False
        self._is_closed = False
        self._fault: BaseException | None = None
        look_after(self)

    # Time and calls.

    def now_ms(self) -> int:
        """Returns the time that the machine is told."""
        return int(self._loop.time() * 1000)

    def check(self) -> None:
        """Raises an `IllegalStateError` where the client cannot be used, and says why."""
        self.require_process()
        if self._fault is not None:
            raise self._faulty(self._fault)
        if self._is_closed:
            raise IllegalStateError("the client is closed")
        if self._loop.is_closed():
            raise IllegalStateError(
                "the event loop that the client was made in is closed: close the client before"
            )

    def require_process(self) -> None:
        """Raises an `IllegalStateError` in a process that was forked off."""
        if os.getpid() != self._process:
            raise IllegalStateError(
                f"the client was made in process {self._process}, and this is its child "
                f"{os.getpid()}: a process that was forked off has to make a client of its own"
            )

    @staticmethod
    def _faulty(fault: BaseException) -> IllegalStateError:
        error = IllegalStateError("the client has met a fault of its own, please report it")
        error.__cause__ = fault
        return error

    def wake(self) -> None:
        """Has the machine ticked soon; from the loop's own thread."""
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self.advance)

    async def call(
        self,
        pending: Pending,
        timeout_ms: int | None = None,
        time_out: Callable[[Pending], BaseException] | None = None,
    ) -> Any:
        """Waits for a call, and returns its value.

        Args:
            pending: the call.
            timeout_ms: how long to wait; ``None`` for however long it takes.
            time_out: is told when the time is over, and returns what to raise.

        Raises:
            KafkaTimeoutError: the time is over.
        """
        self.check()
        if asyncio.get_running_loop() is not self._loop:
            raise IllegalStateError("the client was made in another event loop")
        self.wake()
        if not pending.is_done:
            await self._wait(pending, timeout_ms)
        return self.outcome(pending, timeout_ms, time_out)

    async def _wait(self, pending: Pending, timeout_ms: int | None) -> None:
        future = self._loop.create_future()

        def end() -> None:
            if not future.done():
                future.set_result(None)

        pending.when_done(end)
        self._waiting.add(end)
        try:
            await asyncio.wait({future}, timeout=None if timeout_ms is None else timeout_ms / 1000)
        finally:
            self._waiting.discard(end)

    def outcome(
        self,
        pending: Pending,
        timeout_ms: int | None,
        time_out: Callable[[Pending], BaseException] | None,
    ) -> Any:
        """Returns or raises what a call came to that has been waited for."""
        if not pending.is_done:
            self.check()
            if time_out is not None:
                raise time_out(pending)
            raise KafkaTimeoutError(f"{pending.name} took longer than {timeout_ms} ms")
        if pending.error is not None:
            raise pending.error
        return pending.value

    def add_waiting(self, callback: Callable[[], None]) -> None:
        """Has a callback called where the client ends, by a fault or by `close`."""
        self._waiting.add(callback)

    def remove_waiting(self, callback: Callable[[], None]) -> None:
        """Has it called no more."""
        self._waiting.discard(callback)

    # What happens on the loop.

    def enter(self, event: Callable[..., None], *arguments: Any) -> None:
        """Tells the machine of an event, and does what follows."""
        with self._lock:
            try:
                event(*arguments, self.now_ms())
            except Exception as error:  # noqa: BLE001 - the outermost loop of the client
                self._fail(error)
                return
        self.advance()

    def advance(self) -> None:
        """Ticks the machine, and does what it wants."""
        self._is_woken = False
        if self._fault is not None or self._is_closed:
            return
        with self._lock:
            try:
                self._advance()
            except Exception as error:  # noqa: BLE001 - the outermost loop of the client
                self._fail(error)

    def _advance(self) -> None:
        machine = self._machine
        for _ in range(_MOST_ROUNDS):
            now_ms = self.now_ms()
            machine.tick(now_ms)
            self._move()
            deadline_ms = machine.next_deadline_ms()
            if deadline_ms is None or deadline_ms > now_ms:
                self._set_timer(deadline_ms)
                return
        self.wake()

    def _move(self) -> None:
        """Opens what is to be opened, writes what is to be written, closes what has ended."""
        network = self._machine.network
        for connection in network.take_connections():
            link = _Link(self, connection, self._loop.create_future())
            self._links[connection] = link
            self._begin(link, self._open(link))
        for connection in network.take_changed():
            found = self._links.get(connection)
            if found is not None:
                self._flush(found)
                if connection.wants_token and found.task is None:
                    self._begin(found, self._ask_token(found))
        said = network.warned.texts
        while said:
            _LOG.warning("%s", said.popleft())

    def _set_timer(self, deadline_ms: int | None) -> None:
        if deadline_ms is None:
            return
        when = (deadline_ms + 0.5) / 1000
        timer = self._timer
        if timer is not None:
            # One that is too early only ticks once more.
            if timer.when() <= when:
                return
            timer.cancel()
        self._timer = self._loop.call_at(when, self._time_has_come)

    def _time_has_come(self) -> None:
        self._timer = None
        self.advance()

    def _fail(self, error: BaseException) -> None:
        """The machine raised what it never should: nothing can go on."""
        self._fault = error
        for link in self._links.values():
            self._cut(link)
        self._release()
        self._tell_end(self._faulty(error))

    def _tell_end(self, error: IllegalStateError) -> None:
        if self._on_end is not None:
            self._on_end(error)

    def _release(self) -> None:
        for callback in list(self._waiting):
            callback()

    # Links.

    async def _open(self, link: _Link) -> None:
        connection = link.connection
        host = connection.host
        try:
            sock = await connected(self._loop, host, connection.port, link.hold)
        except OSError as error:
            self.enter(connection.lost, error)
            return
        name = host if self._tls is not None else None
        try:
            await self._loop.create_connection(
                lambda: link, sock=sock, ssl=self._tls, server_hostname=name
            )
        except OSError as error:
            self.enter(connection.lost, self._explained(link, error))

    def _explained(self, link: _Link, error: Exception) -> Exception:
        protocol = self._machine.network.settings.security_protocol
        return explained(error, link.connection.host, link.connection.port, protocol)

    async def _ask_token(self, link: _Link) -> None:
        connection = link.connection
        try:
            token = await token_of(self._machine.network.settings.sasl_oauth_token)
        except KafkaError as error:
            self.enter(connection.lost, error)
        else:
            self.enter(connection.log_in, token)

    def _begin(self, link: _Link, work: Coroutine[Any, Any, None]) -> None:
        link.task = self._loop.create_task(work)
        link.task.add_done_callback(lambda _: self._end(link))

    def _end(self, link: _Link) -> None:
        """A task of a link has ended, if only because nobody wants it any more."""
        link.task = None
        if link.transport is None:
            if link.socket is not None:
                link.socket.close()
            self._forget(link)
        elif link.connection.wants_token:
            self._begin(link, self._ask_token(link))

    def _forget(self, link: _Link) -> None:
        self._links.pop(link.connection, None)
        if not link.gone.done():
            link.gone.set_result(None)

    def lost(self, link: _Link, error: Exception | None) -> None:
        """A socket is closed."""
        self._forget(link)
        if isinstance(error, ssl.SSLError):
            error = self._explained(link, error)
        self.enter(link.connection.lost, error)

    def flush(self, link: _Link) -> None:
        """A socket takes bytes again."""
        with self._lock:
            self._flush(link)

    def _flush(self, link: _Link) -> None:
        connection, transport = link.connection, link.transport
        if connection.is_ended:
            self._cut(link)
        elif transport is not None and not link.is_paused and not transport.is_closing():
            output = connection.take_output()
            if output:
                transport.writelines(output)

    @staticmethod
    def _cut(link: _Link) -> None:
        if link.task is not None:
            link.task.cancel()
        if link.transport is not None:
            link.transport.abort()

    # The end.

    async def close(self) -> None:
        """Lets what is written leave, and closes every socket; calls that wait fail."""
        if self._is_closed or os.getpid() != self._process:
            return
        links = self._shut()
        leaving = [link.gone for link in links]
        if leaving:
            _, stuck = await asyncio.wait(leaving, timeout=_LINGER_S)
            if stuck:
                for link in links:
                    self._cut(link)
                await asyncio.wait(stuck, timeout=_LINGER_S)

    def abandon(self) -> None:
        """Closes the sockets in a process that was forked off, which has copies of them."""
        for link in self._links.values():
            if link.socket is not None:
                link.socket.close()

    def discard(self, name: str, lost_count: int = 0) -> None:
        """Nobody refers to the client any more, and nobody has closed it.

        Args:
            name: of its class.
            lost_count: how many records it has that nobody knows to be written.
        """
        if self._is_closed or os.getpid() != self._process:
            return
        said = f"{name} was not closed: use it in a `with` block, or call close()"
        if lost_count:
            # Python shows no `ResourceWarning` unless it is told to.
            records = "1 record" if lost_count == 1 else f"{lost_count} records"
            _LOG.warning("%s; %s sent with it may not be written", said, records)
        warnings.warn(said, ResourceWarning, stacklevel=3)
        if self._loop.is_closed():
            self._is_closed = True
            for link in self._links.values():
                if link.socket is not None:
                    link.socket.close()
        else:
            self._loop.call_soon_threadsafe(self._discard)

    def _discard(self) -> None:
        if not self._is_closed:
            for link in self._shut():
                self._cut(link)
            with self._lock:
                self._tell_end(IllegalStateError(_FORSAKEN))

    def _shut(self) -> list[_Link]:
        with self._lock:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            for link in self._links.values():
                self._flush(link)
            if self._fault is None:
                self._machine.network.close(self.now_ms())
            self._release()
        links = list(self._links.values())
        for link in links:
            if link.transport is not None:
                link.transport.close()
            else:
                self._cut(link)
        return links
