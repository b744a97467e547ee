"""The broker's clock: real time and what was advanced, or a frozen moment."""

from __future__ import annotations

import time

__all__ = ["Clock"]


def elapsed_ms() -> int:
    """Milliseconds of a clock that never goes back and is not the broker's."""
    return time.monotonic_ns() // 1_000_000


class Clock:
    """Milliseconds since 1970 that never go back.

        >>> clock = Clock(frozen_at_ms=1_500_000_000_000)
        >>> clock.advance(45_000)
        >>> clock.now_ms()
        1500000045000

    Clients have clocks of their own, which do not move with it.

    Args:
        frozen_at_ms: the moment at which it stands still; by default it goes as real time does.
    """

    def __init__(self, frozen_at_ms: int | None = None) -> None:
        # Real time may be set back while we run; what has passed since the start may not.
        self._ahead_ms = time.time_ns() // 1_000_000 - elapsed_ms()
        self._frozen_ms = frozen_at_ms

    @property
    def is_frozen(self) -> bool:
        """Whether it moves by `advance` alone."""
        return self._frozen_ms is not None

    def now_ms(self) -> int:
        """Returns the time."""
        return self.at_ms(time.monotonic_ns() // 1_000_000)

    def at_ms(self, elapsed_ms: int) -> int:
        """Returns the time at what the clock says that never goes back."""
        if self._frozen_ms is not None:
            return self._frozen_ms
        return elapsed_ms + self._ahead_ms

    def freeze(self) -> None:
        """Stops it where it is."""
        self._frozen_ms = self.now_ms()

    def resume(self) -> None:
        """Lets it go on from where it is."""
        if self._frozen_ms is not None:
            self._ahead_ms, self._frozen_ms = self._frozen_ms - elapsed_ms(), None

    def advance(self, duration_ms: int) -> None:
        """Moves it forward.

        Raises:
            ValueError: the duration is negative.
        """
        if duration_ms < 0:
            raise ValueError(f"a clock cannot go back: duration_ms is {duration_ms}")
        if self._frozen_ms is not None:
            self._frozen_ms += duration_ms
        else:
            self._ahead_ms += duration_ms

    def until_ms(self, deadline_ms: int | None) -> int | None:
        """Returns the real time to a deadline: 0 if it has passed, ``None`` if it never comes."""
        if deadline_ms is None:
            return None
        left_ms = deadline_ms - self.now_ms()
        if left_ms <= 0:
            return 0
        return None if self._frozen_ms is not None else left_ms
