"""Keys and values of the records in which coordinators keep their state.

A key begins with its type, the `api_key` of its class, and is of version 0; a value begins with its
version. A record without a value deletes what its key names.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.protocol.wire import Message

__all__ = ["key_bytes", "read_key", "read_value", "value_bytes"]

M = TypeVar("M", bound="Message")

_NUMBER = struct.Struct(">h")


def key_bytes(key: Message) -> bytes:
    """The key of a record."""
    parts = encode(type(key), 0)(key)
    return b"".join((_NUMBER.pack(schema(type(key)).api_key), *parts))


def value_bytes(value: Message, version: int) -> bytes:
    """The value of a record in a version."""
    return b"".join((_NUMBER.pack(version), *encode(type(value), version)(value)))


def read_key(data: bytes, keys: Iterable[type[Message]]) -> Message | None:
    """The key of a record, if it is one of those classes.

    Raises:
        MalformedFrameError: it is of one of their types, and not whole.
    """
    type_of_record = _number(data)
    for key in keys:
        if schema(key).api_key == type_of_record:
            return decode(key, 0)(data, _NUMBER.size)[0]
    return None


def read_value(data: bytes, value: type[M]) -> M:
    """The value of a record whose key is of the type of a class.

    Raises:
        MalformedFrameError: it is not whole, or of a version that nobody knows.
    """
    version = _number(data)
    if version not in schema(value).versions:
        raise MalformedFrameError(0, f"{schema(value).name} has no version {version}")
    return decode(value, version)(data, _NUMBER.size)[0]


def _number(data: bytes) -> int:
    if len(data) < _NUMBER.size:
        raise MalformedFrameError(0, "a record without a type or version")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
