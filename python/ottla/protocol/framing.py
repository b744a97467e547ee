"""Frames out of a stream: the size of each, in four bytes, and then the frame."""

from __future__ import annotations

import struct

from ottla.errors import MalformedFrameError

__all__ = ["Frames", "framed"]

_SIZE = struct.Struct(">i")


class Frames:
    """Cuts whole frames out of what a connection receives.

    It holds no more than what was fed and not taken yet. Take until there is no whole frame before
    more is fed, and that is one unfinished frame of `max_bytes` at most.
    """

    __slots__ = ("_buffer", "_position", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._buffer = bytearray()
        self._position = 0

    def feed(self, received: bytes | bytearray | memoryview) -> None:
        """Take in what was received next."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += received

    def take(self) -> bytes | None:
        """The next frame, without its size; nothing while it is not whole.

        Raises:
            MalformedFrameError: its size is negative or above `max_bytes`; nothing can be taken
                any more.
        """
        buffer, begin = self._buffer, self._position + _SIZE.size
        if len(buffer) < begin:
            return None
        (size,) = _SIZE.unpack_from(buffer, self._position)
        if not 0 <= size <= self.max_bytes:
            raise MalformedFrameError(
                0,
                f"a frame of {size} bytes, where {self.max_bytes} are the most"
                f"{_hint(bytes(buffer[self._position : begin]))}",
            )
        end = begin + size
        if len(buffer) < end:
            return None
        self._position = end
        with memoryview(buffer) as view:
            return bytes(view[begin:end])

    @property
    def held_bytes(self) -> int:
        """How many bytes were fed and not taken yet, with the sizes of their frames."""
        return len(self._buffer) - self._position


def _hint(begin: bytes) -> str:
    """What a stream that begins so may be instead: the usual mistakes of those who connect."""
    if begin.startswith(b"\x16\x03"):
        return "; it begins as TLS does, which is not spoken here"
    if begin in {b"GET ", b"HEAD", b"POST", b"PUT "}:
        return "; it begins as HTTP does, which is not spoken here"
    return ""


def framed(parts: list[bytes]) -> list[bytes]:
    """Parts of a frame behind their size."""
    return [_SIZE.pack(sum(map(len, parts))), *parts]
