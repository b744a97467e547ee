"""What other threads ask of the server's: jobs, in the order of their arrival."""

from __future__ import annotations

import socket
import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import ServerBusyError, ServerStoppedError
from ottla.net.limits import MAX_JOBS
from ottla.net.outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Jobs"]

Result = TypeVar("Result")


class Jobs:
    """A queue that wakes a selector.

    Attributes:
        waker: readable while jobs wait.
    """

    def __init__(self) -> None:
        self.waker, self._alarm = socket.socketpair()
        self.waker.settimeout(0)
        self._alarm.settimeout(0)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[], None], Callable[[BaseException], None]]] = deque()
        self._end = ""

    def post(
        self,
        job: Callable[[], Result],
        then: Callable[[Outcome[Result]], None],
        *,
        is_own: bool = False,
    ) -> None:
        """Has a job done; `then` is called with its outcome by the thread that does it.

        Args:
            job: what is done.
            then: takes its outcome.
            is_own: whether it is the server's own, of which there are few: it is never refused for
                those of others.

        Raises:
            ServerStoppedError: nobody does jobs any more.
            ServerBusyError: too many wait already.
        """
        with self._lock:
            if self._end:
                raise ServerStoppedError(self._end)
            if len(self._waiting) >= MAX_JOBS and not is_own:
                raise ServerBusyError(f"{MAX_JOBS:,} jobs wait for the broker already")
            self._waiting.append(
                (lambda: then(outcome_of(job)), lambda error: then(Outcome(error=error)))
            )
            if len(self._waiting) == 1:
                self._alarm.send(b"!")

    def call(self, job: Callable[[], Result], *, is_own: bool = False) -> Result:
        """Has a job done by the other thread, and returns its result or raises its error.

        See `post`.
        """
        outcomes: list[Outcome[Result]] = []
        # A lock that is released once costs a third of an Event.
        done = threading.Lock()
        done.acquire()

        def tell(outcome: Outcome[Result]) -> None:
            outcomes.append(outcome)
            done.release()

        self.post(job, tell, is_own=is_own)
        done.acquire()
        return outcomes[0].get()

    def do_all(self) -> None:
        """Does what waits now; what is posted meanwhile comes next time."""
        with self._lock:
            jobs, self._waiting = self._waiting, deque()
            if jobs:
                self.waker.recv(1)
        for job, _ in jobs:
            job()

    def end(self, reason: str) -> None:
        """Does no more: jobs that wait and those to come are told why."""
        with self._lock:
            self._end = reason
            jobs, self._waiting = self._waiting, deque()
        for _, refuse in jobs:
            refuse(ServerStoppedError(reason))

    def close(self) -> None:
        """Closes what wakes the selector."""
        self.waker.close()
        self._alarm.close()
