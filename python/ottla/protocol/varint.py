"""Unsigned varints and the tagged fields of flexible versions (KIP-482)."""

from __future__ import annotations

from ottla.errors import MalformedFrameError

__all__ = [
    "MAX_STRING_BYTES",
    "read_string_length",
    "read_tag",
    "read_uvarint",
    "skip_tags",
    "uvarint",
]

# Kafka reads and writes no longer ones, although compact lengths could say more.
MAX_STRING_BYTES = 32767

# Five groups of seven bits hold what 32 need; Kafka reads no more.
_MAX_BYTES = 5


def uvarint(number: int) -> bytes:
    """The bytes of a number that is not negative."""
    written = bytearray()
    while number > 127:  # noqa: PLR2004 - seven bits a byte
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def read_uvarint(frame: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position behind it.

    Raises:
        IndexError: the frame ends inside.
        MalformedFrameError: more than 32 bits.
    """
    number = 0
    for shift in range(0, 7 * _MAX_BYTES, 7):
        byte = frame[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the bit that says that there is more
            if number >> 32:
                break
            return number, position
    raise MalformedFrameError(position, "a varint of more than 32 bits")


def read_string_length(frame: bytes, position: int) -> tuple[int, int]:
    """The length of a string plus one, or 0 for null, and the position behind it.

    Raises:
        IndexError: the frame ends inside.
        MalformedFrameError: the string is longer than Kafka's may be.
    """
    length, end = read_uvarint(frame, position)
    if length > MAX_STRING_BYTES + 1:
        raise MalformedFrameError(
            position, f"a string of {length - 1} bytes, where {MAX_STRING_BYTES} are the most"
        )
    return length, end


def skip_tags(frame: bytes, position: int) -> int:
    """The position behind a section of tagged fields, none of which is known.

    Raises:
        IndexError: the frame ends inside.
        MalformedFrameError: the tags do not ascend, or a size is beyond the frame.
    """
    count, position = read_uvarint(frame, position)
    last = -1
    for _ in range(count):
        tag, size, position = read_tag(frame, position, last)
        last = tag
        position += size
    return position


def read_tag(frame: bytes, position: int, last: int) -> tuple[int, int, int]:
    """The number of a tagged field behind the tag `last`, its size, and the position of its value.

    Raises:
        IndexError: the frame ends inside.
        MalformedFrameError: the tag is not above the last one, or the size is beyond the frame.
    """
    begin = position
    tag, position = read_uvarint(frame, position)
    if tag <= last:
        raise MalformedFrameError(begin, f"tag {tag} behind tag {last}")
    size, position = read_uvarint(frame, position)
    if size > len(frame) - position:
        raise MalformedFrameError(
            begin, f"tag {tag} of {size} bytes, of which {len(frame) - position} are left"
        )
    return tag, size, position
