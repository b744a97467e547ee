"""A process that is forked off, and what a function raises there."""

from __future__ import annotations

import os
import signal
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def forked(function: Callable[[], object]) -> tuple[str, Callable[[], None]]:
    """What a function raises in a child, and what ends the child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            function()
        except BaseException:  # noqa: BLE001 - the test reads it
            os.write(writing, traceback.format_exc().encode())
        signal.pause()
    said = os.read(reading, 1 << 16).decode()
    os.close(reading)
    os.close(writing)

    def end() -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    return said, end
