"""The broker's clock in a test's hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.desk import Desk

__all__ = ["BrokerClock"]


class BrokerClock:
    """The time by which a broker expires sessions, transactions, records and producer ids.

    Clients have timers of their own, which do not move with it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970.

        >>> from ottla.testing import Broker
        >>> with Broker(frozen_at_ms=1_700_000_000_000) as broker:
        ...     broker.clock.now_ms
        1700000000000
        """
        now_ms: int = self._desk.call("now_ms")
        return now_ms

    def advance(self, *, seconds: float) -> None:
        """Moves it forward; what is due until then has happened when this returns.

            >>> from ottla.testing import Broker
            >>> with Broker(frozen_at_ms=1_700_000_000_000) as broker:
            ...     broker.clock.advance(seconds=45)
            ...     broker.clock.now_ms
            1700000045000

        That includes what a broker does from time to time only: retention, and forgetting
        producers.

        Raises:
            ValueError: the time is negative, or longer than a broker lives.
        """
        self._desk.call("advance", seconds=seconds)

    def freeze(self) -> None:
        """Stops it where it is; `advance` moves it.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker:
        ...     broker.clock.freeze()
        ...     broker.clock.now_ms == broker.clock.now_ms
        True
        """
        self._desk.call("freeze")

    def resume(self) -> None:
        """Lets it go on from where it is.

        >>> from ottla.testing import Broker
        >>> with Broker(frozen_at_ms=1_700_000_000_000) as broker:
        ...     broker.clock.resume()
        """
        self._desk.call("resume")
