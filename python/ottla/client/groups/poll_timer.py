"""Whether the application makes progress, and what it is told when it calls."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from ottla.client.errors import PollIntervalExceededError

if TYPE_CHECKING:
    from ottla.client.options.settings import ConsumerSettings

__all__ = ["PollTimer"]


class PollTimer:
    """The time between two calls of `poll`.

    Attributes:
        is_running: whether the application has polled, and not too long ago.
        error: what the next `poll` raises, once.
        fatal: what each raises.
    """

    def __init__(self, settings: ConsumerSettings) -> None:
        self.is_running = False
        self.error: BaseException | None = None
        self.fatal: BaseException | None = None
        self._settings = settings
        self._last_ms = 0

    @property
    def may_join(self) -> bool:
        """Whether nothing is to be told before."""
        return self.is_running and self.error is None and self.fatal is None

    def poll(self, now_ms: int) -> None:
        """Begins anew; raises what there is to tell."""
        self.is_running = True
        self._last_ms = now_ms
        if self.fatal is not None:
            # One of its own for each call, so that the traceback of the kept one does not grow.
            raise copy(self.fatal) from self.fatal
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def deadline_ms(self) -> int | None:
        """Returns when the application has been away for too long."""
        return self._last_ms + self._settings.max_poll_interval_ms if self.is_running else None

    def expires(self, now_ms: int) -> bool:
        """Whether that is now; it is so once, until the next `poll`."""
        deadline_ms = self.deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return False
        self.is_running = False
        return True

    def tell(self) -> None:
        """Has the next poll say that the consumer left its group."""
        self.error = PollIntervalExceededError(
            f"the consumer left its group, as poll() was not called for max_poll_interval_ms = "
            f"{self._settings.max_poll_interval_ms}: call it sooner, by a smaller max_poll_records "
            "or work done elsewhere, or set the interval higher; this poll() joins again"
        )
