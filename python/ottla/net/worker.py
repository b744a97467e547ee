"""A thread beside the server's, for what takes long and needs nothing of the broker.

A flush or a compaction is sealed: what it needs is in it, and what it returns is posted back.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import ServerBusyError, ServerStoppedError
from ottla.net.limits import MAX_WORK
from ottla.net.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.net.outcome import Outcome

__all__ = ["Worker"]

Result = TypeVar("Result")


class Worker:
    """A thread that begins with the first job, and does one after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._is_stopped = False

    def submit(self, job: Callable[[], Result], then: Callable[[Outcome[Result]], None]) -> None:
        """Has a job done, and its outcome told by the worker's thread.

        Raises:
            ServerBusyError: too many wait already.
            ServerStoppedError: the worker has stopped.
        """
        with self._changed:
            if self._is_stopped:
                raise ServerStoppedError("the server has stopped")
            if len(self._jobs) >= MAX_WORK:
                raise ServerBusyError(f"{MAX_WORK:,} jobs wait for the worker already")
            self._jobs.append(lambda: then(outcome_of(job)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """Returns when what was submitted is done; nothing more is taken."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    if self._is_stopped:
                        return
                    self._changed.wait()
                job = self._jobs.popleft()
            job()
