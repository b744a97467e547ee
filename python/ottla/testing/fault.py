"""A fault in a test's hand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.faults import Fault
    from ottla.net.server import Server

__all__ = ["FaultHandle"]


class FaultHandle:
    """A fault that was set by `ottla.testing.Broker.fail`; as a context it is gone at the end."""

    def __init__(self, server: Server[Broker], fault: Fault) -> None:
        self._server = server
        self._fault = fault

    @property
    def hits(self) -> int:
        """How often it has struck."""
        return self._server.run(lambda _: self._fault.hits)

    def wait(self, hits: int = 1, *, timeout_s: float = 10.0) -> None:
        """Returns once it has struck so often.

        Raises:
            TimeoutError: it has not, with how often it has.
        """
        reached = threading.Event()

        self._server.run(lambda _: self._fault.on_hits(hits, reached.set))
        if not reached.wait(timeout_s):
            raise TimeoutError(
                f"the fault was to strike {hits} times within {timeout_s:g} s, "
                f"and has struck {self.hits} times"
            )

    def pause(self) -> None:
        """Has requests that match wait, unanswered, until `release` or `remove`."""

        def pause(_: Broker) -> None:
            self._fault.is_paused = True

        self._server.run(pause)

    def release(self) -> None:
        """Lets requests go on that wait, and those to come."""

        def release(broker: Broker) -> None:
            self._fault.is_paused = False
            broker.waiting.wake(("fault", self._fault))

        self._server.run(release)

    def remove(self) -> None:
        """Takes it away; nothing if it is gone."""

        def remove(broker: Broker) -> None:
            broker.faults.remove(self._fault)
            broker.waiting.wake(("fault", self._fault))

        self._server.run(remove)

    def __enter__(self) -> FaultHandle:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<FaultHandle {self._fault.hits} hits>"
