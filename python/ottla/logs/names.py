"""Kafka's names: of files in a log directory, a partition and a segment, and of its own topics.

They are built by Kafka's `LogManager`, `LocalLog` and `LogFileUtils`. A name that fits none of
this is unknown, never an error. Names are bytes, as the operating system has them; `display` makes
text of them.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Literal

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

MAX_OFFSET = 2**63 - 1
MAX_PARTITION = 2**31 - 1

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)
"""Topics of the coordinators, whose records `ottla.decode_record` knows."""


RECOVERY_POINTS = b"recovery-point-offset-checkpoint"
LOG_START_OFFSETS = b"log-start-offset-checkpoint"
HIGH_WATERMARKS = b"replication-offset-checkpoint"
CLEANER_OFFSETS = b"cleaner-offset-checkpoint"
META_PROPERTIES = b"meta.properties"
CLEAN_SHUTDOWN = b".kafka_cleanshutdown"

LEADER_EPOCHS = b"leader-epoch-checkpoint"
PARTITION_METADATA = b"partition.metadata"

_LOG_DIRECTORY_FILES: dict[bytes, FileKind] = {
    META_PROPERTIES: "meta-properties",
    CLEAN_SHUTDOWN: "clean-shutdown",
    RECOVERY_POINTS: "offset-checkpoint",
    LOG_START_OFFSETS: "offset-checkpoint",
    HIGH_WATERMARKS: "offset-checkpoint",
    CLEANER_OFFSETS: "offset-checkpoint",
    b"bootstrap.checkpoint": "metadata-snapshot",
    b".lock": "lock",
}
# A `.lock` alone says nothing: other programs leave such files too.
_MARKS = frozenset(_LOG_DIRECTORY_FILES) - {b".lock"}
_PARTITION_FILES: dict[bytes, FileKind] = {
    LEADER_EPOCHS: "leader-epoch-checkpoint",
    PARTITION_METADATA: "partition-metadata",
    b"quorum-state": "quorum-state",
}
_SEGMENT_FILES: dict[bytes, FileKind] = {
    b"log": "segment",
    b"index": "offset-index",
    b"timeindex": "time-index",
    b"txnindex": "transaction-index",
    b"snapshot": "producer-snapshot",
}
_SUFFIXES: dict[bytes, FileState] = {
    b"": "live",
    b".deleted": "deleted",
    b".swap": "swap",
    b".cleaned": "cleaned",
    b".part": "temporary",
}
_SEGMENT_FILE = re.compile(
    rb"(\d{1,20})\.(log|index|timeindex|txnindex|snapshot)(|\.deleted|\.swap|\.cleaned)", re.ASCII
)
_METADATA_SNAPSHOT = re.compile(rb"(\d{1,20})-\d{1,10}\.checkpoint(|\.deleted|\.part)", re.ASCII)
# Kafka writes 20 digits and reads any number. A directory is known by the former: a `2024.log` is
# nobody's segment.
_AS_KAFKA_WRITES = re.compile(rb"\d{20}(-\d{10})?\.[a-z]", re.ASCII)
_PARTITION_DIRECTORY = re.compile(
    rb"(.+)-(\d{1,10})(?:\.[0-9a-f]{32}-(delete|future|stray))?", re.ASCII | re.DOTALL
)
_PARTITION_STATES: dict[bytes | None, PartitionState] = {
    None: "live",
    b"delete": "delete",
    b"future": "future",
    b"stray": "stray",
}
# In `-delete` and `-stray` names Kafka cuts the topic so that the whole fits 255 characters.


def display(name: bytes) -> str:
    r"""A file name as printable text: what is no UTF-8, or no printable character, as ``\xNN``.

    >>> display(b"orders-0"), display(b"caf\xe9\n")
    ('orders-0', 'caf\\xe9\\x0a')
    """
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text
    )


def parse_partition_name(name: bytes) -> tuple[str, int, PartitionState] | None:
    """Topic, partition and state that a directory name tells, None when it is no partition's.

    >>> parse_partition_name(b"page-views-12")
    ('page-views', 12, 'live')
    >>> parse_partition_name(b"lost+found") is None
    True
    """
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or int(match[2]) > MAX_PARTITION:
        return None
    # The partitions of a topic share its name.
    return sys.intern(display(match[1])), int(match[2]), _PARTITION_STATES[match[3]]


@lru_cache(maxsize=4096)
def classify(name: bytes) -> tuple[FileKind, FileState, int | None]:
    """Kind, state and base offset that a file name tells.

    >>> classify(b"00000000000000000042.log.deleted")
    ('segment', 'deleted', 42)
    """
    if (match := _SEGMENT_FILE.fullmatch(name)) and int(match[1]) <= MAX_OFFSET:
        return _SEGMENT_FILES[match[2]], _SUFFIXES[match[3]], int(match[1])
    if (match := _METADATA_SNAPSHOT.fullmatch(name)) and int(match[1]) <= MAX_OFFSET:
        return "metadata-snapshot", _SUFFIXES[match[2]], int(match[1])
    stem = name.removesuffix(b".tmp")
    kind = _PARTITION_FILES.get(stem) or _LOG_DIRECTORY_FILES.get(stem) or "unknown"
    return kind, "live" if stem == name else "temporary", None


def is_mark(name: bytes) -> bool:
    """Whether a file of this name makes its directory a log directory."""
    return name in _MARKS


def is_of_partition(name: bytes) -> bool:
    """Whether a file of this name makes its directory a partition's."""
    return name in _PARTITION_FILES or _AS_KAFKA_WRITES.match(name) is not None
