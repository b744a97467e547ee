"""What the network knows of each node: its connection, who waits for it, and how it failed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.network.connection import Connection
    from ottla.client.network.exchange import Exchange

__all__ = ["NodeState", "Waiting"]


class Waiting:
    """A request that is not sent yet."""

    __slots__ = ("deadline_ms", "exchange", "timeout_ms")

    def __init__(self, exchange: Exchange, timeout_ms: int, now_ms: int) -> None:
        self.exchange = exchange
        self.timeout_ms = timeout_ms
        self.deadline_ms = now_ms + timeout_ms


class NodeState:
    """One node.

    Attributes:
        host, port: where it is.
        connection: to it, if there is one that has not ended.
        waiting: requests for it alone, oldest first.
        failures: how often in a row it could not be connected to, or was disconnected.
        not_before_ms: when it may be connected to next.
        reason: the last failure.
        refusal: the last failure, if that was none that passes by itself.
    """

    __slots__ = (
        "connection",
        "failures",
        "host",
        "not_before_ms",
        "port",
        "reason",
        "refusal",
        "waiting",
    )

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.connection: Connection | None = None
        self.waiting: deque[Waiting] = deque()
        self.failures = 0
        self.not_before_ms = 0
        self.reason: Exception | None = None
        self.refusal: Exception | None = None
