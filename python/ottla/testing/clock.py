"""The broker's clock in a test's hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.net.server import Server

__all__ = ["BrokerClock"]


class BrokerClock:
    """The time by which a broker expires sessions, transactions, records and producer ids.

    Clients have timers of their own, which do not move with it.
    """

    def __init__(self, server: Server[Broker]) -> None:
        self._server = server

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._server.clock.now_ms()

    def advance(self, *, seconds: float) -> None:
        """Moves it forward; what is due until then has happened when this returns.

        That includes what a broker does from time to time only: retention, and forgetting
        producers.

        Raises:
            ValueError: the time is negative.
        """
        self._server.advance(seconds)
        self._server.run(lambda broker: broker.expire(self._server.clock.now_ms()))

    def freeze(self) -> None:
        """Stops it where it is; `advance` moves it."""
        self._server.run(lambda _: self._server.clock.freeze())

    def resume(self) -> None:
        """Lets it go on from where it is."""
        self._server.run(lambda _: self._server.clock.resume())
