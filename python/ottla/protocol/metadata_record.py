"""Records of `__cluster_metadata`: what frames a message there (KIP-631).

The value of a record begins with the version of the frame, the type of the message and its version,
each an unsigned varint; the message is behind them. A record has no key.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.varint import read_uvarint, uvarint
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.protocol.wire import Message

__all__ = ["read_record", "record_bytes", "whose"]

_FRAME_VERSION = 1
_NUMBER = struct.Struct(">i")


def record_bytes(message: Message, version: int = 0) -> bytes:
    """The value of a record with a message in a version."""
    declared = type(message)
    head = (_FRAME_VERSION, schema(declared).api_key or 0, version)
    return b"".join((*map(uvarint, head), *encode(declared, version)(message)))


def read_record(data: bytes, kinds: Mapping[int, type[Message]]) -> tuple[int, Message | None]:
    """The type of a record and its message; no message where the type is not among those asked for.

    Raises:
        MalformedFrameError: it is not whole, or of a version that is not known.
    """
    try:
        frame_version, position = read_uvarint(data, 0)
        kind, position = read_uvarint(data, position)
        version, position = read_uvarint(data, position)
    except IndexError:
        raise MalformedFrameError(0, "a record without a type and a version") from None
    if frame_version != _FRAME_VERSION:
        raise MalformedFrameError(0, f"version {frame_version} of a frame, not {_FRAME_VERSION}")
    declared = kinds.get(kind)
    if declared is None:
        return kind, None
    if version not in schema(declared).versions:
        raise MalformedFrameError(0, f"{schema(declared).name} has no version {version}")
    return kind, decode(declared, version)(data, position)[0]


def whose(data: bytes) -> int:
    """The number of a broker or a controller, with which records about one begin.

    Raises:
        MalformedFrameError: it is not whole.
    """
    try:
        position = 0
        for _ in range(3):
            _, position = read_uvarint(data, position)
        return int(_NUMBER.unpack_from(data, position)[0])
    except (IndexError, struct.error):
        raise MalformedFrameError(0, "a record without a number") from None
