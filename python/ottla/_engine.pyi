# Types only; the prose is in the extension and shown by help().
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SEGMENT_BATCH_COLUMNS",
    "SEGMENT_RECORD_COLUMNS",
    "BatchIterator",
    "Columns",
    "PartitionScan",
    "Record",
    "RecordBatch",
    "RecordIterator",
    "SegmentScan",
    "TableStream",
    "__version__",
    "bare_inflate",
    "bare_read",
    "build_batch",
    "build_batch_from_columns",
    "build_control_batch",
    "build_message_set",
    "check_batches",
    "finding_catalogue",
    "kernel_level",
    "merge_partition",
    "read_batches",
    "read_columns",
    "scan_segment",
    "segment_batches",
    "segment_records",
    "table_stream",
]

__version__: str
SEGMENT_BATCH_COLUMNS: list[str]
SEGMENT_RECORD_COLUMNS: list[str]

_Level: TypeAlias = Literal["crc", "decode", "full"]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_Row: TypeAlias = tuple[
    int,
    bytes | None,
    bytes | None,
    Sequence[tuple[str | bytes, bytes | None]] | None,
    int | None,
]
_Column: TypeAlias = tuple[Any, ...] | None

def check_batches(data: object, *, level: _Level | None = None) -> int: ...
def kernel_level() -> str: ...
def bare_read(data: bytes) -> int: ...
def bare_inflate(data: bytes) -> int: ...
def read_batches(data: object) -> BatchIterator: ...
def read_columns(data: object, *, views: bool = False) -> Columns: ...
def build_batch(
    rows: Sequence[_Row],
    *,
    base_offset: int = 0,
    compression: _Compression = "none",
    compression_level: int | None = None,
    partition_leader_epoch: int = ...,
    producer_id: int = ...,
    producer_epoch: int = ...,
    base_sequence: int = ...,
    is_transactional: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes: ...
def build_control_batch(
    kind: Literal["commit", "abort"],
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = ...,
) -> bytes: ...
def build_message_set(
    rows: Sequence[_Row],
    *,
    magic: int,
    base_offset: int = 0,
    compression: _Compression = "none",
    compression_level: int | None = None,
    log_append_time_ms: int | None = None,
) -> bytes: ...
def build_batch_from_columns(
    timestamps: NDArray[np.int64],
    keys: _Column,
    values: _Column,
    *,
    base_offset: int = 0,
    compression: _Compression = "none",
    compression_level: int | None = None,
    partition_leader_epoch: int = ...,
    producer_id: int = ...,
    producer_epoch: int = ...,
    base_sequence: int = ...,
    is_transactional: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes: ...
def finding_catalogue() -> list[dict[str, str]]: ...
def scan_segment(
    path: bytes,
    *,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    is_active: bool = True,
    stopped_cleanly: bool = False,
    is_consumer_offsets: bool = False,
    level: str = "full",
    now_ms: int,
    progress: Callable[[int], bool] | None = None,
) -> SegmentScan: ...
def merge_partition(
    scans: Sequence[tuple[str, SegmentScan]],
    *,
    log_start_offset: int | None = None,
    is_consumer_offsets: bool = False,
    orphans: Sequence[int] = ...,
) -> PartitionScan: ...
def segment_batches(
    path: bytes, position: int, limit: int
) -> tuple[list[tuple[Any, ...]], int | None]: ...
def segment_records(
    path: bytes, position: int, limit: int
) -> tuple[list[tuple[Any, ...]], int | None]: ...
def table_stream(
    names: Sequence[str], types: Sequence[str], columns: Sequence[list[Any]]
) -> TableStream: ...

@final
class BatchIterator:
    def __iter__(self) -> Iterator[RecordBatch]: ...
    def __next__(self) -> RecordBatch: ...

@final
class RecordBatch:
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def magic(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def partition_leader_epoch(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def compression(self) -> str: ...
    @property
    def timestamp_type(self) -> str: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def delete_horizon_ms(self) -> int | None: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def record_count(self) -> int | None: ...
    def verify(self) -> None: ...
    def records(self) -> RecordIterator: ...

@final
class RecordIterator:
    def __iter__(self) -> Iterator[Record]: ...
    def __next__(self) -> Record: ...
    def __length_hint__(self) -> int: ...

@final
class Record:
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...
    @property
    def raw_headers(self) -> list[tuple[bytes, bytes | None]]: ...
    @property
    def sequence(self) -> int: ...
    @property
    def control(self) -> str | None: ...
    @property
    def coordinator_epoch(self) -> int | None: ...

@final
class Columns:
    def __len__(self) -> int: ...
    @property
    def offset(self) -> NDArray[np.int64]: ...
    @property
    def timestamp(self) -> NDArray[np.int64]: ...
    @property
    def key_position(self) -> NDArray[np.uint32]: ...
    @property
    def key_length(self) -> NDArray[np.int32]: ...
    @property
    def value_position(self) -> NDArray[np.uint32]: ...
    @property
    def value_length(self) -> NDArray[np.int32]: ...
    @property
    def inflated(self) -> bytes: ...
    def numbers(self) -> tuple[NDArray[Any], ...]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class SegmentScan:
    @property
    def bytes(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def first_offset(self) -> int | None: ...
    @property
    def next_offset(self) -> int | None: ...
    @property
    def min_timestamp(self) -> int | None: ...
    @property
    def max_timestamp(self) -> int | None: ...
    @property
    def magics(self) -> list[int]: ...
    @property
    def codecs(self) -> list[str]: ...
    @property
    def findings(self) -> list[dict[str, Any]]: ...

@final
class PartitionScan:
    @property
    def log_start_offset(self) -> int | None: ...
    @property
    def log_end_offset(self) -> int | None: ...
    @property
    def last_stable_offset(self) -> int | None: ...
    @property
    def findings(self) -> list[dict[str, Any]]: ...
    @property
    def transactions(self) -> list[dict[str, Any]]: ...
    @property
    def producers(self) -> list[dict[str, Any]]: ...

@final
class TableStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
