"""Ids of topics, clusters and directories: UUIDs, which Kafka writes as 22 characters of base64."""

from __future__ import annotations

from binascii import b2a_base64
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["base64_of", "random_uuid", "uuid_of"]

_DASH: Final = 62
_RESERVED: Final = frozenset({bytes(16), bytes(15) + b"\1", bytes(15) + b"\2"})
_SIZE: Final = 16
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def random_uuid(random_bits: Callable[[int], int]) -> bytes:
    """Returns a random UUID (version 4) that is none of those with a meaning of their own."""
    while True:
        number = random_bits(128)
        number = (number & ~(0xF << 76)) | (4 << 76)
        number = (number & ~(3 << 62)) | (2 << 62)
        made = number.to_bytes(_SIZE, "big")
        # Kafka does not let what it writes begin with a dash.
        is_dashed = made[0] >> 2 == _DASH
        if made not in _RESERVED and not is_dashed:
            return made


def base64_of(uuid: bytes) -> str:
    r"""Returns an id as Kafka writes it.

    >>> base64_of(bytes(15) + b"\1")
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return b2a_base64(uuid, newline=False).translate(_URL_SAFE).decode().rstrip("=")


def uuid_of(text: str) -> bytes:
    """Returns the id that Kafka has written so.

    Raises:
        ValueError: it is none.
    """
    import base64  # noqa: PLC0415 - a broker in memory reads none

    try:
        number = base64.urlsafe_b64decode(f"{text}==")
    except ValueError:
        number = b""
    if len(number) != _SIZE:
        raise ValueError(f"{text!r} is no id: expected 22 characters of base64")
    return number
