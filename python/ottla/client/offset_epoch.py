"""The epochs of a position as bytes that an application keeps and does not interpret (KIP-232).

A byte 1, the leader epoch, the partition epoch, the topic's id, and a CRC-32C of all of it. A byte
0 with both epochs alone is read, too.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.client.errors import IllegalArgumentError
from ottla.records import crc32c

__all__ = ["Epochs", "epochs_in", "offset_epoch"]

_WHOLE = struct.Struct(">bii16sI")
_SHORT = struct.Struct(">bii")
_NO_TOPIC_ID = bytes(16)
_CRC_BYTES = 4


class Epochs(NamedTuple):
    """What the bytes mean; -1 and zeros stand for what is not known."""

    leader_epoch: int = -1
    partition_epoch: int = -1
    topic_id: bytes = _NO_TOPIC_ID


def offset_epoch(epochs: Epochs) -> bytes:
    """Returns the bytes.

    >>> len(offset_epoch(Epochs(3, 1)))
    29
    """
    whole = _WHOLE.pack(1, *epochs, 0)[:-_CRC_BYTES]
    return whole + crc32c(whole).to_bytes(_CRC_BYTES, "big")


def epochs_in(data: bytes) -> Epochs:
    """Returns what bytes mean; empty ones mean that nothing is known.

    Raises:
        IllegalArgumentError: they are none of ours, or changed on the way.

    >>> epochs_in(offset_epoch(Epochs(3, 1))).leader_epoch
    3
    """
    if not data:
        return Epochs()
    if len(data) == _SHORT.size and data[0] == 0:
        return Epochs(*_SHORT.unpack(data)[1:])
    if len(data) == _WHOLE.size and data[0] == 1:
        *epochs, checksum = _WHOLE.unpack(data)[1:]
        if checksum == crc32c(data[:-_CRC_BYTES]):
            return Epochs(*epochs)
    raise IllegalArgumentError(
        f"an offset epoch of {len(data)} bytes is none that a position or a commit gave: pass it "
        "on as it was"
    )
