# Directories by the names in them, and logs that are judged whole: a part of `_engine`.
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ottla._engine import PackedLog, _PartitionState

_FileKind: TypeAlias = Literal[
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
    "unknown",
]
_FileState: TypeAlias = Literal["live", "deleted", "swap", "cleaned", "temporary"]

def parse_file_name(name: bytes) -> tuple[_FileKind, _FileState, int | None]: ...
def refuses_start(name: bytes) -> bool: ...
def parse_partition_name(name: bytes) -> tuple[bytes, int, _PartitionState] | None: ...
def stray_name(name: bytes, unique_id: bytes) -> bytes | None: ...
def directory_kind(names: Sequence[bytes]) -> Literal["log-directory", "partition", "unknown"]: ...
def lacks_offset(name: bytes) -> bool: ...
def file_name(kind: str, offset: int) -> bytes: ...
def listed_order(names: Sequence[bytes]) -> list[int]: ...
def live_base_offsets(names: Sequence[bytes]) -> list[int]: ...
def list_plain_partitions(
    directories: Sequence[bytes], *, threads: int = 1
) -> list[tuple[tuple[bytes, ...], tuple[int, ...], tuple[int, ...]] | None]: ...
def judge_clean(
    directory: bytes,
    names: tuple[bytes, ...],
    sizes: Sequence[int],
    *,
    state: str,
    level: str,
    now_ms: int,
    stopped_cleanly: bool,
    is_consumer_offsets: bool,
    topic: str,
    log_start_offset: int | None,
    recovery_point: int | None,
    high_watermark: int | None,
    first_dirty_offset: int | None,
    cleanup_policy: str | None = None,
    remote_storage: bool | None = None,
    max_message_bytes: int | None = None,
    is_preallocated: bool | None = None,
) -> tuple[PackedLog, str | None, tuple[int, int]] | None: ...
