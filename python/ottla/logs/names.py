"""Kafka's names: of files in a log directory, a partition and a segment, and of internal topics.

The rules, those of Kafka's `LogManager`, `LocalLog` and `LogFileUtils`, are in the engine. A name
that matches none of them is unknown, never an error. Names are bytes, as the operating system
returns them; `display` converts them to text.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from ottla import _engine
from ottla._engine import (
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    SEGMENT_SUFFIX,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    directory_kind,
    file_name,
    lacks_offset,
    listed_order,
    live_base_offsets,
)
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BOOTSTRAP_CHECKPOINT",
    "CLEANER_OFFSETS",
    "CLEAN_SHUTDOWN",
    "CLUSTER_METADATA",
    "CONSUMER_OFFSETS",
    "HIGH_WATERMARKS",
    "INTERNAL_TOPICS",
    "LEADER_EPOCHS",
    "LOG_START_OFFSETS",
    "MAX_OFFSET",
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "RECOVERY_POINTS",
    "SEGMENT_SUFFIX",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
    "FileKind",
    "FileState",
    "PartitionState",
    "Said",
    "classify",
    "directory_kind",
    "display",
    "file_name",
    "is_segment",
    "lacks_offset",
    "listed_order",
    "live_base_offsets",
    "may_hold_batches",
    "parse_partition_name",
    "stray_name",
    "topic_name",
    "topic_patterns",
]

FileKind = Literal[
    "segment",
    "offset-index",
    "time-index",
    "transaction-index",
    "producer-snapshot",
    "leader-epoch-checkpoint",
    "partition-metadata",
    "metadata-snapshot",
    "quorum-state",
    "offset-checkpoint",
    "meta-properties",
    "clean-shutdown",
    "lock",
    "directory",
    "unknown",
]
FileState = Literal["live", "deleted", "swap", "cleaned", "temporary"]
PartitionState = Literal["live", "delete", "future", "stray"]

Said: TypeAlias = tuple[FileKind, FileState, "int | None"]
"""What a file's name says: kind, state and base offset."""

MAX_OFFSET = 2**63 - 1

INTERNAL_TOPICS = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
"""Topics of the coordinators, whose records `ottla.decode_record` decodes."""


def display(name: bytes) -> str:
    r"""Returns a file name as printable text, with other bytes and characters as ``\xNN``.

    >>> display(b"orders-0"), display(b"caf\xe9\n")
    ('orders-0', 'caf\\xe9\\x0a')
    """
    return visible(name.decode("utf-8", "backslashreplace"))


def topic_patterns(topics: str | Iterable[str] | None) -> tuple[str, ...]:
    """Returns patterns of topics as they are given: one, several, or none for all.

    >>> topic_patterns("orders"), topic_patterns(["a", "b-*"]), topic_patterns(None)
    (('orders',), ('a', 'b-*'), ())
    """
    return (topics,) if isinstance(topics, str) else tuple(topics or ())


def parse_partition_name(name: bytes) -> tuple[str, int, PartitionState] | None:
    """Parses a directory's name into topic, partition and state; None if it is no partition's.

    >>> parse_partition_name(b"page-views-12")
    ('page-views', 12, 'live')
    >>> parse_partition_name(b"lost+found") is None
    True
    """
    parsed = _engine.parse_partition_name(name)
    if parsed is None:
        return None
    topic, partition, state = parsed
    return topic_name(topic), partition, state


@lru_cache(maxsize=64)
def topic_name(name: bytes) -> str:
    """Returns the name of a topic as printable text: one string for all of its partitions.

    >>> topic_name(b"page-views")
    'page-views'
    """
    return sys.intern(display(name))


def stray_name(name: str, unique_id: bytes) -> str:
    """Returns the name under which a partition's directory is put aside as that of no topic.

    >>> stray_name("orders-0", bytes(16))
    'orders-0.00000000000000000000000000000000-stray'

    Args:
        name: of the directory as it is.
        unique_id: 16 bytes that no other such directory of this partition has.
    """
    renamed = _engine.stray_name(os.fsencode(name), unique_id)
    if renamed is None:
        raise ValueError(f"{name} is not the name of a partition's directory")
    return os.fsdecode(renamed)


@lru_cache(maxsize=4096)
def classify(name: bytes) -> Said:
    """Parses a file's name into kind, state and base offset.

    >>> classify(b"00000000000000000042.log.deleted")
    ('segment', 'deleted', 42)
    """
    return _engine.parse_file_name(name)


def is_segment(path: bytes) -> bool:
    """Whether a path is that of a segment's file.

    >>> is_segment(b"orders-0/00000000000000000042.log"), is_segment(b"orders-0")
    (True, False)
    """
    return classify(os.path.basename(path))[0] == "segment"


def may_hold_batches(path: bytes) -> bool:
    """Whether a path is that of a file with batches, or of one that Kafka does not name.

    >>> may_hold_batches(b"orders-0/copy.log"), may_hold_batches(b"00000000000000000042.index")
    (True, False)
    """
    return classify(os.path.basename(path))[0] in ("segment", "metadata-snapshot", "unknown")
