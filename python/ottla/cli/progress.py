"""The progress bar of `ottla audit`, on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID
    from typing_extensions import Self

# Shorter audits show no bar: it would only flash.
DELAY_S = 0.5

# Small files complete faster than anybody can see.
REDRAW_INTERVAL_S = 0.05


class ProgressBar:
    """A progress callback for `ottla.audit` that draws a bar."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._drawn = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, read: int, total: int) -> None:
        """Shows how many of the bytes have been read."""
        now = time.monotonic()
        if now - self._drawn < REDRAW_INTERVAL_S and read < total:
            return
        self._drawn = now
        if self._bar is None:
            if now - self._start < DELAY_S:
                return
            self._bar = _bar()
            self._task = self._bar.add_task("audit", total=total)
            self._bar.start()
        if self._task is not None:
            self._bar.update(self._task, completed=read)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
