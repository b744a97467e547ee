"""Messages from bytes and to bytes: a function for each (message, version), compiled at first use.

The only place that knows what flexible versions change (KIP-482). What is compiled is flat: a
message is read and written by one function without calls for its structs, and numbers beside
each other are one call of the module struct. Whatever the bytes, decoding them costs no more than
their number, and either makes a message or raises an error with a position.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.protocol.decoder import decoder
from ottla.protocol.encoder import encoder
from ottla.protocol.wire import Message, schema

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["decode", "encode"]

M = TypeVar("M", bound=Message)


def decode(
    message: type[M], version: int, *, private: bool = True
) -> Callable[[bytes, int], tuple[M, int]]:
    """The function that reads a message of a version from a frame, at a position.

    It returns the message and the position behind it, and raises `ottla.errors.MalformedFrameError`
    for what is no such message. Tagged fields that are not known are skipped. Fields that the
    version lacks have their defaults.

    Args:
        private: whether to read Ottla's own tagged fields, too.

    Raises:
        ValueError: there is no such version of the message.
    """
    compiled: Callable[[bytes, int], tuple[M, int]] = _decoder(message, version, private)
    return compiled


def encode(message: type[M], version: int, *, private: bool = True) -> Callable[[M], list[bytes]]:
    """The function that writes a message in a version.

    It returns bytes-like objects whose concatenation is the message: large byte strings are objects
    of their own, not copied. It raises `ottla.errors.UnwritableMessageError` for a value that does
    not fit its type, null where there may be none, and a value other than the default in a field
    that the version lacks and that is not ignorable.

    Args:
        private: whether to write Ottla's own tagged fields, too.

    Raises:
        ValueError: there is no such version of the message.
    """
    compiled: Callable[[M], list[bytes]] = _encoder(message, version, private)
    return compiled


@cache
def _decoder(message: type[Message], version: int, private: bool) -> Any:
    _require(message, version)
    return decoder(message, version, private=private)


@cache
def _encoder(message: type[Message], version: int, private: bool) -> Any:
    _require(message, version)
    return encoder(message, version, private=private)


def _require(message: type[Message], version: int) -> None:
    declared = schema(message)
    if version not in declared.versions:
        first, last = declared.versions.start, declared.versions.stop - 1
        raise ValueError(f"{declared.name} has the versions {first} to {last}, not {version}")
