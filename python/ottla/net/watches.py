"""Conditions that somebody waits for, looked at on the server's thread.

What they are about changes by what that thread does, so a look at the end of each of its turns
misses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import ServerBusyError, ServerStoppedError
from ottla.net.limits import MAX_WATCHES, WATCH_EVERY_MS
from ottla.net.outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Watch", "Watches"]


class Watch(NamedTuple):
    """One condition.

    Attributes:
        look: returns what is found instead; nothing once the condition holds.
        then: is told what `look` returned last, or what it raised.
        deadline_ms: when to wait no longer, in real time.
    """

    look: Callable[[], str]
    then: Callable[[Outcome[str]], None]
    deadline_ms: int


class Watches:
    """Everything that somebody waits for."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []

    def add(self, watch: Watch, elapsed_ms: int) -> None:
        """Waits for a condition; if it holds, that is told at once.

        Raises:
            ServerBusyError: too many are waited for already.
        """
        if len(self._watches) >= MAX_WATCHES:
            raise ServerBusyError(f"{MAX_WATCHES:,} conditions are waited for already")
        if not _is_over(watch, elapsed_ms):
            self._watches.append(watch)

    def look(self, elapsed_ms: int) -> None:
        """Looks at every condition."""
        if not self._watches:
            return
        # What is told may add another.
        watches, self._watches = self._watches, []
        self._watches += [watch for watch in watches if not _is_over(watch, elapsed_ms)]

    def next_ms(self, elapsed_ms: int) -> int | None:
        """Returns when to look again, whatever happens; ``None`` where nobody waits.

        A condition may depend on something outside of the broker, so that is not too late.
        """
        if not self._watches:
            return None
        first_ms = min(watch.deadline_ms for watch in self._watches)
        return min(first_ms, elapsed_ms + WATCH_EVERY_MS)

    def end(self, reason: str) -> None:
        """Tells whoever waits that it is over."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.then(Outcome(error=ServerStoppedError(reason)))


def _is_over(watch: Watch, elapsed_ms: int) -> bool:
    found = outcome_of(watch.look)
    if found.error is None and found.get() and elapsed_ms < watch.deadline_ms:
        return False
    watch.then(found)
    return True
