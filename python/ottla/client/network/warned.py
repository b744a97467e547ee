"""What a client says of things that go wrong, though it goes on by itself, and how often."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Warned"]

_EACH_MS: Final = 10_000
_MOST: Final = 100
"""Of warnings that nobody takes, and of causes that are told apart."""


class Warned:
    """Warnings, one of a cause in ten seconds.

    Attributes:
        texts: those that the shell has not logged yet, oldest first.
    """

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=_MOST)
        # When a cause was said, and how often it came since then.
        self._said: dict[Hashable, tuple[int, int]] = {}

    def add(self, cause: Hashable, text: str, now_ms: int) -> None:
        """Warns of something, unless that was done just now.

        Args:
            cause: what is said once in a while.
            text: what is said.
            now_ms: the time.
        """
        said_ms, others = self._said.pop(cause, (None, 0))
        if said_ms is not None and now_ms - said_ms < _EACH_MS:
            self._said[cause] = said_ms, others + 1
            return
        if len(self._said) >= _MOST:
            self._said.pop(next(iter(self._said)))
        self._said[cause] = now_ms, 0
        self.texts.append(f"{text} (and {others} times since it was last said)" if others else text)
