"""What a client says of connections that fail, though it goes on by itself, and how often."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["Warned"]

_EACH_MS: Final = 10_000
_MOST: Final = 100
"""Of warnings that nobody takes, and of causes that are told apart."""


class Warned:
    """Warnings, one of a node and a kind of error in ten seconds.

    Attributes:
        texts: those that the shell has not logged yet, oldest first.
    """

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=_MOST)
        self._said_ms: dict[tuple[str, int, type[Exception]], int] = {}

    def add(self, host: str, port: int, error: Exception, now_ms: int) -> None:
        """Warns of a failure, unless that was done just now."""
        cause = (host, port, type(error))
        said_ms = self._said_ms.pop(cause, None)
        if said_ms is not None and now_ms - said_ms < _EACH_MS:
            self._said_ms[cause] = said_ms
            return
        if len(self._said_ms) >= _MOST:
            self._said_ms.pop(next(iter(self._said_ms)))
        self._said_ms[cause] = now_ms
        self.texts.append(str(error))
