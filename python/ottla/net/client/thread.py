"""Drives the core of a client in a thread of its own, for callers without an event loop.

The thread runs an asyncio loop with a `Driver`. Callers touch the core themselves, each under one
lock, and wake the thread where it has something to do. So several threads can use one client, and a
record is appended without another thread running.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.client.errors import IllegalStateError
from ottla.net.client.driver import Driver
from ottla.net.client.tls import tls_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ottla.client.pending import Pending
    from ottla.net.client.driver import Machine

    Result = TypeVar("Result")

__all__ = ["DriverThread"]

_END_S: Final = 10.0
"""For the thread to end: it closes its sockets within two seconds."""


class DriverThread:
    """One client in one thread.

    Args:
        machine: its core.
        name: of the thread.
        tls: speaks TLS, for those protocols that do.
        on_end: is told why nobody is going to tick the core again, where nobody has closed it.

    Attributes:
        lock: to be held by whoever touches the core; `run` does.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        name: str,
        tls: ssl.SSLContext | None = None,
        on_end: Callable[[IllegalStateError], None] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        # Before the loop, which nobody would close where a certificate cannot be read.
        tls = tls or tls_context(machine.network.settings)
        self._loop = asyncio.new_event_loop()
        self._driver = Driver(machine, loop=self._loop, tls=tls, lock=self.lock, on_end=on_end)
        self._is_woken = False
        self._is_closed = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name=name, daemon=True)
        self._thread.start()

    def now_ms(self) -> int:
        """Returns the time that the core is told."""
        return self._driver.now_ms()

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Calls something that touches the core, and has the core do what follows."""
        self.check()
        with self.lock:
            result = function(*arguments)
            self.wake()
        return result

    def check(self) -> None:
        """Raises an `IllegalStateError` where the client cannot be used, and says why."""
        self._driver.check()

    def require_process(self) -> None:
        """Raises an `IllegalStateError` in a process that was forked off."""
        self._driver.require_process()

    def require_callers(self, name: str) -> None:
        """Raises an `IllegalStateError` in the client's own thread, for a call that waits for it.

        Args:
            name: of the call.
        """
        if threading.get_ident() == self._thread.ident:
            raise IllegalStateError(
                f"{name} was called from a callback of the client itself, which would wait for "
                "ever: call it from a thread of yours"
            )

    def wake(self) -> None:
        """Has the core do what there is to do; under the lock."""
        if not self._is_woken and not self._is_closed:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._advance)

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Has something of the user's called in the thread, outside of the core."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def wait(
        self,
        pending: Pending,
        timeout_ms: int | None = None,
        time_out: Callable[[Pending], BaseException] | None = None,
    ) -> Any:
        """Waits for a call, and returns its value; Ctrl-C leaves it at once.

        Args:
            pending: the call.
            timeout_ms: how long to wait; ``None`` for however long it takes.
            time_out: is told when the time is over, and returns what to raise.

        Raises:
            KafkaTimeoutError: the time is over.
        """
        self.check()
        self.require_callers(pending.name)
        event = threading.Event()
        with self.lock:
            self._driver.add_waiting(event.set)
            pending.when_done(event.set)
            self.wake()
        try:
            event.wait(None if timeout_ms is None else timeout_ms / 1000)
        finally:
            with self.lock:
                self._driver.remove_waiting(event.set)
        with self.lock:
            return self._driver.outcome(pending, timeout_ms, time_out)

    def close(self) -> None:
        """Lets what is written leave, closes every socket, and ends the thread."""
        if self._is_closed or os.getpid() != self._process:
            return
        with self.lock:
            self._is_closed = True
        ending = asyncio.run_coroutine_threadsafe(self._driver.close(), self._loop)
        ending.add_done_callback(lambda _: self._stop())
        if threading.get_ident() != self._thread.ident:
            self._thread.join(_END_S)

    def discard(self, name: str, lost_count: int = 0) -> None:
        """Nobody refers to the client any more, and nobody has closed it.

        Args:
            name: of its class.
            lost_count: how many records it has that nobody knows to be written.
        """
        if not self._is_closed and os.getpid() == self._process:
            self._is_closed = True
            self._driver.discard(name, lost_count)
            self._stop()

    def _advance(self) -> None:
        with self.lock:
            self._is_woken = False
        self._driver.advance()

    def _stop(self) -> None:
        # Perhaps in the caller's thread, where the client has ended already.
        self._loop.call_soon_threadsafe(self._loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
