"""Frames out of a stream: the size of each, in four bytes, and then the frame."""

from __future__ import annotations

import struct

from ottla.errors import MalformedFrameError

__all__ = ["Frames", "framed"]

_SIZE = struct.Struct(">i")
_PIECE_BYTES = 4096
"""Smaller pieces of a frame are put together at once: each one takes memory of its own."""


class Frames:
    """Cuts whole frames out of what a connection receives.

    It holds no more than what was fed and not taken yet. Take until there is no whole frame before
    more is fed, and that is one unfinished frame of `max_bytes` at most.

    A small frame mostly lies whole in what was received, and is cut out of it. Of a larger one the
    pieces are kept as they come, and put together once.
    """

    __slots__ = ("_data", "_missing", "_pieced", "_pieces", "_position", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        # What was received and not looked at, from a position on.
        self._data: bytes | bytearray = b""
        self._position = 0
        # Before it, the frame that is under way: how much of it is there, its size included.
        self._pieces: list[bytes | bytearray] = []
        self._pieced = 0
        self._missing = 0

    def feed(self, received: bytes | bytearray | memoryview) -> None:
        """Take in what was received next."""
        missing = self._missing
        if missing:
            if len(received) > missing:
                self._add(bytes(received[:missing]))
                self._data, self._position = bytes(received[missing:]), 0
            else:
                self._add(received)
        elif self._position == len(self._data):
            self._data, self._position = bytes(received), 0
        else:
            data = self._data
            if self._position or not isinstance(data, bytearray):
                data = bytearray(data[self._position :])
                self._position = 0
            data += received
            self._data = data

    def _add(self, received: bytes | bytearray | memoryview) -> None:
        """Adds to the frame that is under way."""
        pieces, size = self._pieces, len(received)
        if size >= _PIECE_BYTES:
            pieces.append(bytes(received))
        elif pieces and isinstance(pieces[-1], bytearray):
            pieces[-1] += received
        else:
            pieces.append(bytearray(received))
        self._pieced += size
        self._missing -= size

    def take(self) -> bytes | None:
        """The next frame, without its size; nothing while it is not whole.

        Raises:
            MalformedFrameError: its size is negative or above `max_bytes`; nothing can be taken
                any more.
        """
        if self._pieced:
            return None if self._missing else self._joined()
        data, position = self._data, self._position
        begin = position + _SIZE.size
        if len(data) < begin:
            return None
        (size,) = _SIZE.unpack_from(data, position)
        if not 0 <= size <= self.max_bytes:
            raise MalformedFrameError(
                0,
                f"a frame of {size} bytes, where {self.max_bytes} are the most"
                f"{_hint(bytes(data[position:begin]))}",
            )
        end = begin + size
        if len(data) < end:
            self._pieces = [data[begin:]]
            self._pieced, self._missing = len(data) - position, end - len(data)
            self._data, self._position = b"", 0
            return None
        self._position = end
        if isinstance(data, bytes):
            return data[begin:end]
        with memoryview(data) as view:
            return bytes(view[begin:end])

    def _joined(self) -> bytes:
        frame = b"".join(self._pieces)
        self._pieces, self._pieced = [], 0
        return frame

    @property
    def held_bytes(self) -> int:
        """How many bytes were fed and not taken yet, with the sizes of their frames."""
        return self._pieced + len(self._data) - self._position

    @property
    def missing_bytes(self) -> int:
        """How many bytes the frame that is under way lacks; 0 where its size is not known yet."""
        return self._missing


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
