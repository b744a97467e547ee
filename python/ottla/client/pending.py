"""A call that waits for answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pending"]


class Pending:
    """A call of the user's that is under way.

    Attributes:
        name: of the call.
        is_done: whether it has ended.
        value: what it returns, once it has ended well.
        error: why it failed, once it has ended; ``None`` if it did what it should.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._when_done: list[Callable[[], None]] = []

    def when_done(self, callback: Callable[[], None]) -> None:
        """Has a callback called once it has ended; at once if it has."""
        if self.is_done:
            callback()
        else:
            self._when_done.append(callback)

    def end(self, error: BaseException | None = None, value: Any = None) -> None:
        """Ends it; a second end changes nothing."""
        if self.is_done:
            return
        self.is_done = True
        self.error = error
        self.value = value
        callbacks, self._when_done = self._when_done, []
        for callback in callbacks:
            callback()
