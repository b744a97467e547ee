"""The partition of a coordinator's topic that a group or a transactional id belongs to."""

from __future__ import annotations

from struct import iter_unpack

__all__ = ["partition_of"]

_LEAST = 1 << 31


def partition_of(name: str, partition_count: int) -> int:
    """Returns the absolute value of Java's hash of a name, modulo the number of partitions.

    The one hash without an absolute value, -2147483648, counts as 0.
    """
    found = 0
    for (unit,) in iter_unpack(">H", name.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFF_FFFF
    if found >= _LEAST:
        found = 2 * _LEAST - found
    return 0 if found == _LEAST else found % partition_count
