"""Where a consumer goes on in a partition, with the epochs that say which log that is of."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.offset_epoch import Epochs, offset_epoch
from ottla.client.partitions import OffsetAndMetadata

__all__ = ["OffsetAndOffsetEpoch", "OffsetAndTimestamp", "Position"]

_NO_TOPIC_ID = bytes(16)


class OffsetAndOffsetEpoch(NamedTuple):
    """A position to keep outside of Kafka, and to `seek` to again (KIP-232).

    Attributes:
        offset: of the next record.
        offset_epoch: which log it is of; not to be interpreted.
    """

    offset: int
    offset_epoch: bytes = b""


class OffsetAndTimestamp(NamedTuple):
    """The first record of a time or later.

    Attributes:
        offset: its offset.
        timestamp_ms: its timestamp.
        leader_epoch: its leader epoch; -1 where it is not known.
        offset_epoch: which log it is of; empty where it is not known.
    """

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1
    offset_epoch: bytes = b""


class Position(NamedTuple):
    """The next offset, and what is known of the log that it is of.

    Attributes:
        offset: of the next record.
        leader_epoch: the largest of the records before it that were read; -1 where not known.
        partition_epoch: of the partition it was read from (KIP-232); -1 where not known.
        topic_id: of the topic it was read from; zeros where not known.
    """

    offset: int
    leader_epoch: int = -1
    partition_epoch: int = -1
    topic_id: bytes = _NO_TOPIC_ID

    def offset_epoch(self) -> bytes:
        """Returns its epochs as bytes; empty where nothing is known."""
        epochs = Epochs(self.leader_epoch, self.partition_epoch, self.topic_id)
        return b"" if epochs == Epochs() else offset_epoch(epochs)

    def to_commit(self) -> OffsetAndMetadata:
        """Returns what a commit of it says."""
        return OffsetAndMetadata(self.offset, "", self.leader_epoch, self.offset_epoch())
