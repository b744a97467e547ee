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
        """Milliseconds since 1970."""
        now_ms: int = self._desk.call("now_ms")
        return now_ms

    def advance(self, *, seconds: float) -> None:
        """Moves it forward; what is due until then has happened when this returns.

        That includes what a broker does from time to time only: retention, and forgetting
        producers.

        Raises:
            ValueError: the time is negative, or longer than a broker lives.
        """
        self._desk.call("advance", seconds=seconds)

    def freeze(self) -> None:
        """Stops it where it is; `advance` moves it."""
        self._desk.call("freeze")

    def resume(self) -> None:
        """Lets it go on from where it is."""
        self._desk.call("resume")
