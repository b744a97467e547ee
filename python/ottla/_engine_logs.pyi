# Directories by the names in them, and logs that are judged whole: a part of `_engine`.
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

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

_PlainPartition: TypeAlias = tuple[
    tuple[int, int] | None,
    tuple[bytes, int, _PartitionState] | None,
    tuple[bytes, ...],
    tuple[int, ...],
    tuple[int, ...],
]
_Offsets: TypeAlias = tuple[int | None, int | None, int | None, int | None]

class _ListedPartition(Protocol):
    @property
    def directory(self) -> bytes: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def state(self) -> _PartitionState: ...
    @property
    def names(self) -> tuple[bytes, ...]: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def stopped_cleanly(self) -> bool: ...

def parse_file_name(name: bytes) -> tuple[_FileKind, _FileState, int | None]: ...
def refuses_start(name: bytes) -> bool: ...
def parse_partition_name(name: bytes) -> tuple[bytes, int, _PartitionState] | None: ...
def stray_name(name: bytes, unique_id: bytes) -> bytes | None: ...
def directory_kind(names: Sequence[bytes]) -> Literal["log-directory", "partition", "unknown"]: ...
def lacks_offset(name: bytes) -> bool: ...
def file_name(kind: str, offset: int) -> bytes: ...
def listed_order(names: Sequence[bytes]) -> list[int]: ...
def live_base_offsets(names: Sequence[bytes]) -> list[int]: ...
def list_plain_partitions(directories: Sequence[bytes], *, threads: int = 1) -> PlainPartitions: ...

@final
class PlainPartitions:
    def __iter__(self) -> Iterator[Sequence[_PlainPartition | None]]: ...
    def __next__(self) -> Sequence[_PlainPartition | None]: ...

def judge_whole_logs(
    partitions: Sequence[tuple[_ListedPartition, _Offsets]],
    *,
    settings: Mapping[str, Mapping[str, Any]],
    level: str,
    now_ms: int,
    progress: Callable[[int], object] | None = None,
) -> list[tuple[PackedLog, str | None, list[tuple[Any, ...]]] | None]: ...
