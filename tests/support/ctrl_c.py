"""Ctrl-C, pressed in the midst of a call of a client that waits."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.net.client.thread import DriverThread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["ctrl_c_once_waiting"]


@contextmanager
def ctrl_c_once_waiting() -> Iterator[None]:
    """Has Ctrl-C pressed once the main thread waits for a client."""
    left = threading.Event()
    pressing = threading.Thread(target=_press_once_waiting, args=(left,))
    pressing.start()
    try:
        yield
    finally:
        left.set()
        pressing.join()


def _press_once_waiting(left: threading.Event) -> None:
    main = threading.main_thread().ident or 0
    pause_s = 0.001
    while not left.wait(pause_s):
        if _is_waiting(sys._current_frames()[main]):
            os.kill(os.getpid(), signal.SIGINT)
            # Python misses a signal that comes as it is about to wait: a user presses again.
            pause_s = 5.0


def _is_waiting(frame: FrameType | None) -> bool:
    """Whether a frame is that of an event, for which `DriverThread.wait` waits."""
    codes = set()
    while frame is not None:
        codes.add(frame.f_code)
        frame = frame.f_back
    return {DriverThread.wait.__code__, threading.Event.wait.__code__} <= codes
