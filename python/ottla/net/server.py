"""A server: one thread that owns what it serves, and the ways in for all others.

    server = Server(lambda addresses: Broker(addresses), [ListenerSettings(port=9092)])
    with server:
        server.run(lambda broker: broker.image)

`hub` is what the thread does.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.errors import ServerError, ServerStoppedError
from ottla.net.clock import Clock, elapsed_ms
from ottla.net.forks import look_after
from ottla.net.hub import Hub
from ottla.net.jobs import Jobs
from ottla.net.limits import AWAKE_US, MAX_STEPS_OF_TIME, Limits
from ottla.net.listener import Listener
from ottla.net.outcome import Outcome, outcome_of
from ottla.net.served import Served, Traffic
from ottla.net.settings import ListenerSettings
from ottla.net.watches import Watch
from ottla.net.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from ottla.net.served import Address
    from ottla.net.site import Site

__all__ = ["Server"]

Result = TypeVar("Result")
Broker = TypeVar("Broker", bound=Served)

STOPPED = "the server has stopped"


class Server(Generic[Broker]):
    """Listens from its creation, and serves from `start` to `stop`, or within a `with`.

    Args:
        make: makes what is served, from the addresses that were found.
        listeners: where to listen; by default a free port of 127.0.0.1.
        clock: the broker's time; by default real time.
        limits: bounds.
        log: takes a line, at most one a second, about peers and the system.
        resign: called with what is served when it is to stop, while connections are still open.
        finish: called at the end with what was served, once, on the thread that owned it.

    Raises:
        ListenError: a listener cannot have its address; the others are closed again.
    """

    def __init__(
        self,
        make: Callable[[Sequence[Address]], Broker],
        listeners: Sequence[ListenerSettings] = (ListenerSettings(),),
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        log: Callable[[str], None] | None = None,
        resign: Callable[[Broker], None] | None = None,
        finish: Callable[[Broker], None] | None = None,
    ) -> None:
        self._resign = resign
        self._finish = finish
        self.clock = clock or Clock()
        self._process = os.getpid()
        self._jobs = Jobs()
        self._worker = Worker("ottla-worker")
        self._slow_worker = Worker("ottla-slow-worker")
        self._thread: threading.Thread | None = None
        self._is_done = False
        self._failure: BaseException | None = None
        opened: list[Listener] = []
        try:
            opened.extend(map(Listener, listeners))
            self.addresses = tuple(listener.address for listener in opened)
            self._served = make(self.addresses)
            self._hub = Hub(
                self._served,
                opened,
                self._jobs,
                clock=self.clock,
                limits=limits or Limits(),
                log=log,
            )
        except BaseException:
            for listener in opened:
                listener.close()
            self._jobs.close()
            raise
        look_after(self)

    @property
    def served(self) -> Broker:
        """What is served; before `start` it is the caller's, and then the server's own thread's."""
        return self._served

    @property
    def failure(self) -> BaseException | None:
        """What has ended the server against everybody's will: a fault of what it serves."""
        return self._failure

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """What the broker has raised and should not have, the newest last: each is a fault in it.

        Each has ended the connection whose request it served, and no other.
        """
        return tuple(self._hub.errors)

    def wait_awake(self) -> None:
        """Says that the process is the server's own: it may take a moment of it to answer sooner.

        With other threads of Python it would stand in the way of what it waits for, and so it would
        on a single core.
        """
        if (os.cpu_count() or 1) > 1:
            self._hub.awake_ns = AWAKE_US * 1000

    def start(self) -> None:
        """Begins to serve; nothing if it has begun.

        Raises:
            ServerStoppedError: it has been stopped.
        """
        if self._is_done:
            raise ServerStoppedError(STOPPED)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="ottla-server", daemon=True)
            self._thread.start()

    def add_site(self, site: Site, settings: ListenerSettings) -> Address:
        """Listens for requests of HTTP, which a site answers on this server's thread.

        Returns:
            Where it listens.

        Raises:
            ListenError: it cannot have that address.
            ServerError: the server has begun to serve, or has stopped.
        """
        if self._thread is not None or self._is_done:
            raise ServerError("a site is added before the server starts")
        listener = Listener(settings, site)
        self._hub.add(listener)
        return listener.address

    def set_limits(self, limits: Limits) -> None:
        """Has other bounds, before it starts or on its own thread; who is connected stays."""
        self._hub.limits = limits

    def stop(self) -> None:
        """Closes listeners and connections, has the worker finish, and returns when that is done.

        Clients that are still there see refused connections, and try again: close them first.

        Raises:
            ServerError: it is called on the server's own thread, which it would wait for.
        """
        if os.getpid() != self._process:
            return
        if self._is_inside():
            raise ServerError("a server is stopped by another thread than its own")
        if self._thread is None:
            self._is_done = True
            self._close()
            return
        with suppress(ServerStoppedError):
            self._jobs.call(self._close_all, is_own=True)
            self._slow_worker.stop()
            self._worker.stop()
            self._jobs.call(self._end, is_own=True)
        self._thread.join()

    def run(self, job: Callable[[Broker], Result]) -> Result:
        """Runs ``job(broker)`` on the server's thread and returns its result.

        An error of the job is raised here. On the server's thread itself the job runs at once.

        Raises:
            ServerStoppedError: the server has stopped, or runs in another process.
            ServerBusyError: too many jobs wait already.
        """
        self._check_running()
        call = partial(job, self._served)
        if self._is_inside():
            return call()
        return self._jobs.call(call)

    async def run_async(self, job: Callable[[Broker], Result]) -> Result:
        """Awaits what `run` returns."""
        self._check_running()
        told, tell = _future_of_another_thread()
        self._jobs.post(partial(job, self._served), tell)
        outcome: Outcome[Result] = await told
        return outcome.get()

    def watch(
        self, look: Callable[[Broker], str], then: Callable[[Outcome[str]], None], timeout_s: float
    ) -> None:
        """Has a condition waited for, for so long; `then` is told once, by the server's thread.

        Args:
            look: returns what is found instead; nothing once the condition holds.
            then: is told what was found last: nothing if the condition holds.
            timeout_s: in real time.

        Raises:
            ServerStoppedError: the server has stopped.
            ServerBusyError: too many jobs wait already.
        """

        def add() -> None:
            now_ms = elapsed_ms()
            deadline_ms = now_ms + round(timeout_s * 1000)
            self._hub.watches.add(Watch(partial(look, self._served), then, deadline_ms), now_ms)

        def added(outcome: Outcome[None]) -> None:
            if outcome.error is not None:
                then(Outcome(error=outcome.error))

        self._check_running()
        if self._is_inside():
            added(outcome_of(add))
        else:
            self._jobs.post(add, added)

    def wait(self, look: Callable[[Broker], str], timeout_s: float) -> str:
        """Waits for a condition as `watch` does, and returns what was found last.

        Raises:
            ServerError: it is called on the server's own thread, which would wait for itself.
            ServerStoppedError: the server has stopped, or stops meanwhile.
        """
        if self._is_inside():
            raise ServerError("the server's own thread cannot wait for what it does")
        outcomes: list[Outcome[str]] = []
        done = threading.Lock()
        done.acquire()

        def tell(outcome: Outcome[str]) -> None:
            outcomes.append(outcome)
            done.release()

        self.watch(look, tell, timeout_s)
        done.acquire()
        return outcomes[0].get()

    async def wait_async(self, look: Callable[[Broker], str], timeout_s: float) -> str:
        """Awaits what `wait` returns."""
        told, tell = _future_of_another_thread()
        self.watch(look, tell, timeout_s)
        outcome: Outcome[str] = await told
        return outcome.get()

    def work(
        self,
        job: Callable[[], Result],
        then: Callable[[Broker, Outcome[Result]], None],
        *,
        is_slow: bool = False,
    ) -> None:
        """Has a sealed job done by the worker, and its outcome taken by the server's thread.

        Args:
            job: what is done.
            then: takes its outcome.
            is_slow: whether others may not wait for it: such jobs have a worker of their own.

        Raises:
            ServerStoppedError: the server has stopped.
            ServerBusyError: too many jobs wait already.
        """

        def post(outcome: Outcome[Result]) -> None:
            # Without a server nobody waits for it.
            with suppress(ServerStoppedError):
                take = partial(then, self._served, outcome)
                self._jobs.post(take, self._must_not_fail, is_own=True)

        worker = self._slow_worker if is_slow else self._worker
        worker.submit(job, post)

    def advance(self, seconds: float) -> None:
        """Moves the broker's clock; what is due until then has happened when this returns.

        Raises:
            ValueError: the time is negative.
        """
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: seconds is {seconds}")
        duration_ms = round(seconds * 1000)
        self.run(lambda _: self._hub.advance(duration_ms, MAX_STEPS_OF_TIME))

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._hub.connections)

    @property
    def traffic(self) -> Traffic:
        """What has passed through its sockets, and what waits."""
        hub = self._hub
        return Traffic(hub.received_bytes, hub.sent_bytes, hub.unsent_bytes, hub.held_bytes)

    def abandon(self) -> None:
        """Closes the descriptors that a forked process has of this server."""
        self._hub.abandon()
        self._jobs.close()

    def _check_running(self) -> None:
        if os.getpid() != self._process:
            raise ServerStoppedError("the server runs in the process that this one was forked from")
        if self._thread is None:
            raise ServerStoppedError(STOPPED if self._is_done else "the server is not started yet")

    def _is_inside(self) -> bool:
        return threading.current_thread() is self._thread

    def _serve(self) -> None:
        ended = outcome_of(self._turn_until_the_end)
        self._failure = self._failure or ended.error
        self._is_done = True
        self._close()

    def _turn_until_the_end(self) -> None:
        while not self._is_done:
            self._hub.turn()

    def _must_not_fail(self, outcome: Outcome[None]) -> None:
        if outcome.error is not None:
            self._failure, self._is_done = outcome.error, True

    def _close_all(self) -> None:
        """Has everybody told who waits, or disconnected."""
        resign, self._resign = self._resign, None
        if resign is not None:
            told = outcome_of(partial(resign, self._served))
            self._failure = self._failure or told.error
        self._hub.close_all()

    def _end(self) -> None:
        self._is_done = True

    def _close(self) -> None:
        reason = STOPPED if self._failure is None else f"{STOPPED}: {self._failure!r}"
        self._jobs.end(reason)
        self._hub.watches.end(reason)
        outcome_of(self._hub.close)
        if self._finish is not None:
            finished = outcome_of(partial(self._finish, self._served))
            self._finish = None
            self._failure = self._failure or finished.error
        self._jobs.close()

    def __enter__(self) -> Server[Broker]:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Server[Broker]:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.stop)


def _future_of_another_thread() -> tuple[Awaitable[Any], Callable[[Any], None]]:
    """Returns something to await in this thread, and what another one tells its result to."""
    import asyncio

    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def deliver(result: object) -> None:
        if not future.done():
            future.set_result(result)

    def tell(result: object) -> None:
        # A loop that is closed by now has nobody who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, result)

    return future, tell
