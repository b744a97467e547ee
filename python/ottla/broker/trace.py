"""What is remembered of a request that is logged until it is answered."""

from __future__ import annotations

__all__ = ["Trace"]


class Trace:
    """See the head of this file.

    Attributes:
        frame, position: the request, and where its body begins.
        begun_us: when it came.
        left_us: when it began to wait for something else, `None` while it has not.
    """

    __slots__ = ("begun_us", "frame", "left_us", "position")

    def __init__(self, frame: bytes, position: int, begun_us: int) -> None:
        self.frame = frame
        self.position = position
        self.begun_us = begun_us
        self.left_us: int | None = None
