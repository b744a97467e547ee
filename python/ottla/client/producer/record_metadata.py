"""Where a record was written, and futures of it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RecordMetadata"]


class RecordMetadata(NamedTuple):
    """Where a record was written.

    Attributes:
        topic: the topic.
        partition: the partition.
        offset: in the partition; -1 where the leader did not say (``acks=0``), or does not know any
            more.
        timestamp_ms: of the record in the log: its own, or the leader's where the topic has those.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
