"""What a process of a broker's own asks of its allocator."""

from __future__ import annotations

__all__ = ["keep_freed_memory"]

KEPT_BYTES = 8 << 20
"""Twice as much of what was freed stays with the process: one answer to a large fetch."""


def keep_freed_memory() -> None:
    """Has freed buffers of frames used again, and not given back to the system each time.

    The system clears every page that it hands out, which takes as long as all that is done with
    the bytes. The GNU allocator gives back what is freed in pieces above 128 KiB, until a larger
    one was freed: from then on the bound is that one's size. Other allocators do not mind.
    """
    bytes(KEPT_BYTES)
