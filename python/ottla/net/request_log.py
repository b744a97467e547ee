"""The log of requests of a broker behind a server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.net.server import Server

__all__ = ["log_requests"]


def log_requests(
    server: Server[Broker], form: str, descriptor: int, complain: Callable[[str], None]
) -> None:
    """Has a server that is not started log every request.

    Args:
        server: of the broker.
        form: ``"text"`` or ``"json"``.
        descriptor: of the file that gets the lines.
        complain: told, at most once a second, that lines are lost.
    """
    from ottla.broker.loggers import REQUESTS
    from ottla.broker.request_log import RequestLog
    from ottla.net.log_lines import LineFile

    broker = server.served
    broker.loggers.add(REQUESTS, "DEBUG")
    broker.request_log = RequestLog(
        form,
        elapsed_us=lambda: time.monotonic_ns() // 1_000,
        write=LineFile(descriptor, complain).write,
        is_on=lambda: broker.loggers.shows(REQUESTS, "DEBUG"),
    )
