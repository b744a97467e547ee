"""The data plane: partitions, and what Produce and Fetch do with them, in the engine.

`DataPlane` has no clock, threads or sockets. Nothing here in Python runs for each partition of a
Produce or Fetch, but where a fault is set.
"""

from __future__ import annotations

from ottla._engine import (
    Compaction,
    CompactJob,
    DataPlane,
    Fetched,
    Produced,
    QuorumLog,
    TopicSettings,
    Verification,
    build_quorum_batch,
    metadata_snapshot_fault,
    write_offset_checkpoint,
)

__all__ = [
    "CompactJob",
    "Compaction",
    "DataPlane",
    "Fetched",
    "Produced",
    "QuorumLog",
    "TopicSettings",
    "Verification",
    "build_quorum_batch",
    "metadata_snapshot_fault",
    "write_offset_checkpoint",
]
