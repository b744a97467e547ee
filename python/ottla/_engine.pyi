# Types only; the prose is in the extension and shown by help().
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from ottla._engine_columns import (
    Columns,
    FetchedColumns,
    PartitionBatches,
    PartitionColumns,
    PartitionRecords,
)
from ottla._engine_logs import (
    PlacedFindings,
    PlainPartitions,
    directory_kind,
    file_name,
    judge_whole_logs,
    lacks_offset,
    list_plain_partitions,
    listed_order,
    live_base_offsets,
    parse_file_name,
    parse_partition_name,
    refuses_start,
    stray_name,
)
from ottla._engine_plane import (
    Compaction,
    CompactJob,
    DataPlane,
    Fetched,
    FlushJob,
    Produced,
    Verification,
)
from ottla._engine_producers import AbortedTransaction, ProducerState, RememberedBatch
from ottla.errors import RecordBatchError
from ottla.records.config import TopicConfig

__all__ = [
    "BOOTSTRAP_CHECKPOINT",
    "CLEANER_OFFSETS",
    "CLEAN_SHUTDOWN",
    "CLUSTER_METADATA",
    "CONSUMER_OFFSETS",
    "HIGH_WATERMARKS",
    "LEADER_EPOCHS",
    "LOG_START_OFFSETS",
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "RECOVERY_POINTS",
    "SEGMENT_SUFFIX",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
    "AbortedTransaction",
    "BatchBuilder",
    "BatchIterator",
    "CauseExplanation",
    "Chunk",
    "Columns",
    "CompactJob",
    "Compaction",
    "ConsumerRecord",
    "Copy",
    "CopyFinding",
    "DataPlane",
    "Difference",
    "ErrorCode",
    "Explanation",
    "Fetched",
    "FetchedColumns",
    "FetchedRecords",
    "Finding",
    "FindingGroups",
    "FlushJob",
    "Leader",
    "PackedLog",
    "PartitionBatches",
    "PartitionColumns",
    "PartitionRecords",
    "PartitionScan",
    "PlacedFindings",
    "PlainPartitions",
    "Produced",
    "ProducerState",
    "QuorumLog",
    "ReadableOffsets",
    "Rebuild",
    "RebuiltIndexes",
    "Record",
    "RecordBatch",
    "RecordError",
    "RecordIterator",
    "Recovery",
    "RememberedBatch",
    "Segment",
    "SegmentScan",
    "SegmentStream",
    "SegmentTable",
    "SetPart",
    "SetSplit",
    "SideFiles",
    "Start",
    "TableBatch",
    "TableStream",
    "TopicSettings",
    "Verdict",
    "Verification",
    "VerificationGuard",
    "__version__",
    "bare_inflate",
    "bare_read",
    "build_batch",
    "build_batch_from_columns",
    "build_control_batch",
    "build_message_set",
    "build_profile",
    "build_quorum_batch",
    "cause_catalogue",
    "check_batches",
    "check_names",
    "committed_offsets",
    "compare_copies",
    "crc32c",
    "decode_record",
    "directory_kind",
    "epoch_beyond_end",
    "error_codes",
    "event_rows",
    "fetched",
    "file_name",
    "finding_catalogue",
    "finding_rows",
    "follow_batches",
    "foreign_topic_ids",
    "group_findings",
    "join_columns",
    "json_rows",
    "judge_committed_offset",
    "judge_open_transaction",
    "judge_whole_logs",
    "kafka_versions",
    "kernel_level",
    "lacks_offset",
    "lawful_hole",
    "leader_error_codes",
    "least_release",
    "list_plain_partitions",
    "listed_order",
    "live_base_offsets",
    "merge_partition",
    "metadata_snapshot_fault",
    "missing_log",
    "murmur2",
    "offsets_beyond_end",
    "orphaned_indexes",
    "parse_file_name",
    "parse_leader_epochs",
    "parse_meta_properties",
    "parse_offset_checkpoint",
    "parse_partition_metadata",
    "parse_partition_name",
    "parse_side_entries",
    "partition_tables",
    "partition_transactions",
    "partitions_of",
    "partitions_without_directory",
    "predict_recovery",
    "predict_starts",
    "profile_differences",
    "proved_end",
    "provoke_panic",
    "read_batches",
    "read_columns",
    "refuses_start",
    "release_bounds",
    "release_differences",
    "release_freed_memory",
    "require_numpy",
    "rows_by_partition",
    "segment_batches",
    "segment_columns",
    "segment_cuts",
    "segment_records",
    "segment_stream",
    "segment_table",
    "share_group_states",
    "split_column",
    "stray_name",
    "table_stream",
    "transactional_ids",
    "unreadable_text_file",
    "validate",
    "validate_column",
    "validate_each",
    "validate_stored",
    "write_offset_checkpoint",
]

class _Object(Protocol):
    @property
    def size(self) -> int: ...
    def read_at(self, position: int, size: int, /) -> Buffer: ...

_Place: TypeAlias = bytes | _Object
_Progress: TypeAlias = Callable[[int], bool] | None
_Segments: TypeAlias = Sequence[tuple[_Place, int | None]]
# `SegmentScan` has a property of that name.
_Bytes: TypeAlias = bytes
__version__: str
RECOVERY_POINTS: bytes
LOG_START_OFFSETS: bytes
HIGH_WATERMARKS: bytes
CLEANER_OFFSETS: bytes
META_PROPERTIES: bytes
BOOTSTRAP_CHECKPOINT: bytes
CLEAN_SHUTDOWN: bytes
LEADER_EPOCHS: bytes
PARTITION_METADATA: bytes
SEGMENT_SUFFIX: bytes
CONSUMER_OFFSETS: str
SHARE_GROUP_STATE: str
TRANSACTION_STATE: str
CLUSTER_METADATA: str
# Below Python 3.12 a checker does not see that an array of NumPy has a buffer.
_Data: TypeAlias = Buffer | NDArray[Any]
_Config: TypeAlias = TopicConfig | TopicSettings | None
_Level: TypeAlias = Literal["crc", "decode", "full"]
_TimestampType: TypeAlias = Literal["create_time", "log_append_time", "no_timestamp_type"]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_Row: TypeAlias = tuple[
    int, bytes | None, bytes | None, Sequence[tuple[str | bytes, bytes | None]] | None, int | None
]
_Severity: TypeAlias = Literal["info", "warning", "error"]
_PartitionState: TypeAlias = Literal["live", "delete", "future", "stray"]
_StartOutcome: TypeAlias = Literal[
    "refuses", "put-aside", "ends-early", "cuts", "empties", "exposes-aborted", "opens"
]
_Fault: TypeAlias = tuple[str, str, str] | None

def check_batches(data: _Data, *, level: _Level | None = None) -> int: ...
def kernel_level() -> str: ...
def release_freed_memory() -> None: ...
def require_numpy(instead: str) -> None: ...
def build_profile() -> Literal["dev", "release"]: ...
def crc32c(data: bytes) -> int: ...

@final
class ConsumerRecord:
    __match_args__: Final = ("topic", "partition", "offset")
    def __new__(
        cls,
        topic: str,
        partition: int,
        offset: int,
        timestamp_ms: int = ...,
        timestamp_type: _TimestampType = "create_time",
        key: Any = None,
        value: Any = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        leader_epoch: int = ...,
    ) -> ConsumerRecord: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def timestamp_type(self) -> _TimestampType: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    def with_parts(self, key: Any, value: Any) -> ConsumerRecord: ...

@final
class FetchedRecords:
    def __len__(self) -> int: ...
    @property
    def next_position(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def error(self) -> RecordBatchError | None: ...
    def split(self, count: int) -> tuple[FetchedRecords, FetchedRecords]: ...
    def records(self, topic: str, partition: int) -> list[ConsumerRecord]: ...

def fetched(
    data: Buffer,
    position: int,
    aborted: Sequence[tuple[int, int]] | None = None,
    check_crcs: bool = True,
) -> FetchedRecords: ...
def join_columns(parts: Sequence[tuple[str, int, FetchedRecords]]) -> FetchedColumns: ...
def murmur2(key: bytes) -> int: ...
def partitions_of(keys: list[Any] | tuple[Any, ...], count: int) -> NDArray[np.int32]: ...
def rows_by_partition(
    partitions: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def bare_read(data: bytes) -> int: ...
def bare_inflate(data: bytes) -> int: ...
def read_batches(data: _Data) -> BatchIterator: ...
def read_columns(data: _Data, *, views: bool = False, headers: bool = False) -> Columns: ...
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
def build_quorum_batch(
    kind: int,
    value: bytes,
    *,
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

@final
class BatchBuilder:
    def __new__(cls, max_bytes: int) -> BatchBuilder: ...
    def append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str | bytes, Buffer | None]] | None = None,
        /,
    ) -> int: ...
    def append_many(
        self,
        timestamps: NDArray[np.int64] | int,
        keys: list[Any] | tuple[Any, ...] | None,
        values: list[Any] | tuple[Any, ...] | None,
        rows: NDArray[np.int64] | None = None,
        start: int = 0,
        headers: list[Any] | None = None,
    ) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def without(self, indexes: Sequence[int]) -> BatchBuilder: ...
    def split(self, at: int) -> tuple[BatchBuilder, BatchBuilder]: ...
    def finish(
        self,
        *,
        compression: _Compression = "none",
        compression_level: int | None = None,
        producer_id: int = ...,
        producer_epoch: int = ...,
        base_sequence: int = ...,
        is_transactional: bool = False,
    ) -> bytes: ...

def build_batch_from_columns(
    timestamps: NDArray[np.int64],
    keys: tuple[Any, ...] | None,
    values: tuple[Any, ...] | None,
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
def validate(
    records: _Data,
    config: _Config = None,
    *,
    now_ms: int,
    api_version: int | None = 11,
    base_offset: int = 0,
    leader_epoch: int = 0,
    origin: str = "client",
    transactional_id: str | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
) -> Verdict: ...
def validate_each(
    records: _Data,
    config: _Config = None,
    *,
    now_ms: int,
    api_version: int | None = 11,
    base_offset: int = 0,
    leader_epoch: int = 0,
    origin: str = "client",
    transactional_id: str | None = None,
    profile: str = "strict",
    kafka_version: str | None = None,
) -> list[SetPart]: ...
def validate_stored(
    batch: _Data,
    config: _Config = None,
    *,
    now_ms: int,
    base_offset: int,
    profile: str = "strict",
    kafka_version: str | None = None,
) -> Verdict: ...
def error_codes() -> list[ErrorCode]: ...
def leader_error_codes() -> list[ErrorCode]: ...
def validate_column(
    ends: NDArray[np.int64],
    data: NDArray[np.uint8],
    config: _Config | Sequence[TopicConfig | None],
    *,
    now_ms: int | Sequence[int | None] | None,
    api_version: int | Sequence[int | None] | None,
    base_offset: int | Sequence[int | None] | None,
    leader_epoch: int | Sequence[int | None] | None,
    origin: str | Sequence[str | None] | None,
    transactional_id: str | Sequence[str | None] | None,
    profile: str,
    kafka_version: str | None = None,
    unjudged: Sequence[str | None] | None = None,
) -> TableBatch: ...
def split_column(
    ends: NDArray[np.int64],
    data: NDArray[np.uint8],
    config: _Config | Sequence[TopicConfig | None],
    half: Literal["valid", "quarantine"],
    *,
    now_ms: int | Sequence[int | None] | None,
    api_version: int | Sequence[int | None] | None,
    base_offset: int | Sequence[int | None] | None,
    leader_epoch: int | Sequence[int | None] | None,
    origin: str | Sequence[str | None] | None,
    transactional_id: str | Sequence[str | None] | None,
    profile: str,
    kafka_version: str | None = None,
    unjudged: Sequence[str | None] | None = None,
    nulls: Sequence[bool] | None = None,
    piece_bytes: int = 4_194_304,
    columns: Sequence[str] | None = None,
) -> SetSplit: ...
def provoke_panic(message: str) -> None: ...
def profile_differences() -> list[dict[str, str]]: ...
def release_differences() -> list[dict[str, Any]]: ...
def kafka_versions() -> list[str]: ...
def finding_catalogue() -> list[Explanation]: ...
def cause_catalogue() -> list[CauseExplanation]: ...
def group_findings(
    findings: PlacedFindings, ends: Mapping[_Bytes, tuple[int, _Bytes, int, bool]]
) -> FindingGroups: ...
def event_rows(
    findings: PlacedFindings,
    groups: FindingGroups,
    partitions: Mapping[_Bytes, Any],
    gaps: Callable[[], Iterable[tuple[_Bytes, _Bytes, int | None, int, int, str]]],
    span: Callable[
        [_Bytes | None, _Bytes | None, int | None, int | None], tuple[int | None, int | None]
    ],
    show: Mapping[_Bytes, tuple[str, str]],
    verdicts: Sequence[str],
) -> tuple[list[tuple[Any, ...]], list[int]]: ...
def finding_rows(
    findings: PlacedFindings,
    events: Sequence[int] | None,
    show: Mapping[_Bytes, tuple[str, str]],
    places: Mapping[_Bytes | None, tuple[str | None, int | None]],
    commands: Callable[..., tuple[str, ...]],
    visible: Callable[[Any], Any],
) -> list[tuple[Any, ...]]: ...
def check_names(
    entries: Sequence[tuple[bytes, bool]], *, state: _PartitionState, is_whole: bool
) -> list[tuple[int, Finding]]: ...
def offsets_beyond_end(
    file_name: bytes, partitions: Sequence[tuple[str, int, int, int]]
) -> list[tuple[int, Finding]]: ...
def partitions_without_directory(
    file_name: bytes, partitions: Sequence[tuple[str, int, int]]
) -> Finding | None: ...
def orphaned_indexes(names: Sequence[_Bytes]) -> list[int]: ...
def missing_log(
    *,
    log_start_offset: int | None,
    recovery_point: int | None,
    high_watermark: int | None,
    orphans: Sequence[int],
    snapshots: Sequence[int],
) -> Finding: ...
def proved_end(log_end_offset: int, witnesses: Sequence[tuple[str, int]]) -> Finding | None: ...
def epoch_beyond_end(entries: Sequence[tuple[int, int]], log_end_offset: int) -> Finding | None: ...
def unreadable_text_file(file_name: bytes, fault: str, expected: str, found: str) -> Finding: ...
def foreign_topic_ids(partitions: Sequence[tuple[str, str]]) -> list[tuple[int, Finding]]: ...
def merge_partition(
    scans: Sequence[tuple[int, SegmentScan]],
    *,
    topic: str | None = None,
    log_start_offset: int | None = None,
    recovery_point: int | None = None,
    high_watermark: int | None = None,
    first_dirty_offset: int | None = None,
    leader_epochs: Sequence[tuple[int, int]] = ...,
    cleanup_policy: str | None = None,
    remote_storage: bool | None = None,
    max_message_bytes: int | None = None,
    is_preallocated: bool | None = None,
    is_growing: bool = False,
    is_head: bool = False,
    is_consumer_offsets: bool = False,
    orphans: Sequence[int] = ...,
    snapshots: Sequence[tuple[int, _Place]] = ...,
    transaction_indexes: Sequence[_Place | None] = ...,
) -> PartitionScan: ...
def parse_leader_epochs(data: bytes) -> tuple[list[tuple[int, int]], _Fault]: ...
def parse_meta_properties(data: bytes) -> tuple[dict[str, str], _Fault]: ...
def release_bounds(
    properties: dict[str, str],
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]: ...
def write_offset_checkpoint(entries: Sequence[tuple[str, int, int]]) -> bytes: ...
def metadata_snapshot_fault(data: bytes) -> str | None: ...
def parse_side_entries(kind: str, data: bytes, base_offset: int) -> tuple[list[Any], int]: ...
def parse_offset_checkpoint(
    data: bytes,
) -> tuple[list[tuple[tuple[str, int], int]], _Fault]: ...
def parse_partition_metadata(data: bytes) -> tuple[str | None, _Fault]: ...
def predict_recovery(
    files: Mapping[bytes, _Place],
    *,
    partition: str,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    aborted: bytes | None,
    kafka_version: str | None = None,
    progress: _Progress = None,
) -> Recovery: ...
def predict_starts(
    files: Mapping[bytes, _Place],
    *,
    partition: str,
    stopped_cleanly: bool,
    recovery_point: int | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    needs_topic_id: bool,
    aborted: bytes | None,
    progress: _Progress = None,
) -> list[Start]: ...
def segment_columns(
    table: Literal["place", "batches", "records", "source", "kafka"],
) -> list[tuple[str, Any, str]]: ...
def follow_batches(
    place: _Place,
    position: int,
    stop: int,
    *,
    max_bytes: int | None = None,
    next_offset: int | None = None,
    has_holes: bool = False,
) -> tuple[int, int, int, int | None, int | None, int, int, int, str, int | None]: ...
def lawful_hole(
    first_offset: int,
    last_offset: int,
    *,
    topic: str | None = None,
    log_start_offset: int | None = None,
    first_dirty_offset: int | None = None,
    rewritten_batches: int = 0,
    cleanup_policy: str | None = None,
) -> str | None: ...
def segment_batches(
    path: _Place, position: int, limit: int
) -> tuple[list[tuple[Any, ...]], int | None]: ...
def segment_cuts(
    path: _Place, index: _Bytes, *, base_offset: int, size: int, apart: int
) -> list[int]: ...
def segment_records(
    path: _Place, position: int, limit: int
) -> tuple[list[tuple[Any, ...]], int | None]: ...
def segment_table(
    place: _Place,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    prefix: tuple[str | None, str | None, int | None] = ...,
    start: int = 0,
    stop: int | None = None,
    min_offset: int | None = None,
    max_offset: int | None = None,
    min_timestamp: int | None = None,
    max_timestamp: int | None = None,
    batch_bytes: int = ...,
    impossible_timestamps: str = ...,
    place_in_log: tuple[int | None, int | None, bool] | None = None,
    expected: int | None = None,
    without_controls: bool = False,
    aborted: Sequence[tuple[int, int, int]] = ...,
) -> SegmentTable: ...
def partition_transactions(
    segments: _Segments, *, position: int = 0, stop: int | None = None
) -> tuple[list[tuple[int, int, int]], tuple[int, int] | None]: ...
def segment_stream(table: str, batches: Iterable[TableBatch]) -> SegmentStream: ...
def json_rows(names: Sequence[str], rows: Iterable[tuple[Any, ...]], separator: str) -> bytes: ...
def table_stream(
    names: Sequence[str], types: Sequence[str], columns: Sequence[list[Any]]
) -> TableStream: ...

@final
class SegmentTable:
    def __iter__(self) -> SegmentTable: ...
    def __next__(self) -> TableBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def take_damage(self) -> list[dict[str, Any]]: ...
    @property
    def last_position(self) -> int | None: ...
    @property
    def next_offset(self) -> int | None: ...

@final
class TableBatch:
    def __len__(self) -> int: ...
    def json_lines(self, json_columns: Sequence[str]) -> bytes: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

@final
class SegmentStream:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class BatchIterator:
    def __iter__(self) -> Iterator[RecordBatch]: ...
    def __next__(self) -> RecordBatch: ...

@final
class RecordBatch:
    __match_args__: Final = ("base_offset", "last_offset")
    def __new__(cls, data: _Data, position: int = 0) -> RecordBatch: ...
    def __bytes__(self) -> bytes: ...
    def __getnewargs__(self) -> tuple[bytes, int]: ...
    position: Final[int]
    size: Final[int]
    magic: Final[int]
    base_offset: Final[int]
    last_offset: Final[int]
    partition_leader_epoch: Final[int]
    crc: Final[int]
    attributes: Final[int]
    compression: Final[str]
    timestamp_type: Final[str]
    is_transactional: Final[bool]
    is_control: Final[bool]
    delete_horizon_ms: Final[int | None]
    base_timestamp: Final[int]
    max_timestamp: Final[int]
    producer_id: Final[int]
    producer_epoch: Final[int]
    base_sequence: Final[int]
    last_sequence: Final[int]
    record_count: Final[int | None]
    def verify(self) -> None: ...
    def records(self) -> RecordIterator: ...

@final
class RecordIterator:
    def __iter__(self) -> Iterator[Record]: ...
    def __next__(self) -> Record: ...
    def __length_hint__(self) -> int: ...

@final
class QuorumLog:
    def __new__(cls, path: str | PathLike[str], *, segment_bytes: int) -> QuorumLog: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def epoch(self) -> int | None: ...
    @property
    def snapshot_offset(self) -> int: ...
    @property
    def torn(self) -> tuple[PathLike[str], int, int] | None: ...
    @property
    def faulty_snapshots(self) -> list[tuple[PathLike[str], str]]: ...
    def read(self, offset: int) -> bytes: ...
    def read_snapshot(self) -> bytes | None: ...
    def begin_epoch(self, epoch: int) -> None: ...
    def append(self, records: Buffer, now_ms: int) -> None: ...
    def write_snapshot(self, snapshot: bytes) -> None: ...
    def delete_old(self, max_bytes: int) -> None: ...
    def close(self) -> None: ...

@final
class ReadableOffsets:
    def __new__(
        cls, segments: _Segments, *, start_offset: int, stopped_cleanly: bool
    ) -> ReadableOffsets: ...
    def count(
        self, remainders: Sequence[tuple[int, int, Sequence[int]]], progress: _Progress = None
    ) -> tuple[int, list[int]]: ...

@final
class Record:
    __match_args__: Final = ("offset", "timestamp", "key", "value")
    def __new__(
        cls,
        offset: int,
        timestamp: int = ...,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Sequence[tuple[str | bytes, bytes | None]] | None = None,
        sequence: int = ...,
        is_control: bool = False,
    ) -> Record: ...
    offset: Final[int]
    timestamp: Final[int]
    key: Final[bytes | None]
    value: Final[bytes | None]
    headers: Final[list[tuple[str, bytes | None]]]
    raw_headers: Final[list[tuple[bytes, bytes | None]]]
    sequence: Final[int]
    control: Final[str | None]
    coordinator_epoch: Final[int | None]

@final
class Segment:
    def __new__(
        cls,
        path: _Place,
        *,
        base_offset: int | None = None,
        next_base_offset: int | None = None,
        is_active: bool = True,
        stopped_cleanly: bool = False,
        is_consumer_offsets: bool = False,
        is_compared: bool = False,
        offset_index: _Place | None = None,
        time_index: _Place | None = None,
        level: str = "full",
        now_ms: int,
        size: int | None = None,
    ) -> Segment: ...
    def scan(self, *, progress: _Progress = None) -> SegmentScan: ...
    def scan_range(self, start: int, stop: int, *, progress: _Progress = None) -> Chunk: ...
    def resolve(self, chunk: Chunk, *, progress: _Progress = None) -> Chunk: ...
    def finish(self, chunk: Chunk, *, progress: _Progress = None) -> SegmentScan: ...

class _Ordered:
    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...

@final
class Chunk(_Ordered):
    start: Final[int]
    stop: Final[int]
    pieces: Final[int]
    def merge(self, right: Chunk) -> Chunk: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Chunk: ...

@final
class SegmentScan(_Ordered):
    bytes: Final[int]
    batches: Final[int]
    records: Final[int]
    first_offset: Final[int | None]
    next_offset: Final[int | None]
    min_timestamp: Final[int | None]
    max_timestamp: Final[int | None]
    magics: Final[list[int]]
    codecs: Final[list[str]]
    findings: Final[list[Finding]]
    def to_bytes(self) -> _Bytes: ...
    @staticmethod
    def from_bytes(data: _Bytes) -> SegmentScan: ...

@final
class PartitionScan:
    log_start_offset: Final[int | None]
    log_end_offset: Final[int | None]
    last_stable_offset: Final[int | None]
    findings: Final[list[tuple[int, Finding]]]
    def placed(self, paths: Sequence[_Bytes], directory: _Bytes | None) -> PlacedFindings: ...

@final
class PackedLog(_Ordered):
    def __new__(
        cls, scans: Sequence[tuple[int, SegmentScan]], merged: Sequence[PartitionScan]
    ) -> PackedLog: ...
    file_count: Final[int]
    @staticmethod
    def totals(logs: Sequence[PackedLog | None]) -> tuple[list[int], list[int]]: ...
    def files(self, piece: int) -> list[tuple[Any, ...]] | None: ...
    def rows(self, table: str, piece: int) -> list[tuple[Any, ...]] | None: ...
    def to_bytes(self) -> _Bytes: ...
    @staticmethod
    def from_bytes(data: _Bytes) -> PackedLog: ...
    def __reduce__(self) -> tuple[Any, tuple[_Bytes]]: ...

def partition_tables() -> list[tuple[str, list[str]]]: ...

@final
class Finding(_Ordered):
    name: Final[str]
    severity: Final[_Severity]
    position: Final[int | None]
    size: Final[int | None]
    first_offset: Final[int | None]
    last_offset: Final[int | None]
    expected: Final[str | None]
    found: Final[str | None]
    message: Final[str]
    def said(self) -> tuple[Any, ...]: ...

@final
class Explanation:
    name: Final[str]
    severity: Final[_Severity]
    meaning: Final[str]
    causes: Final[str]
    action: Final[str]
    kafka: Final[str]
    condemns: Final[bool]
    resume_at: Final[Literal["next-good-offset", "next-batch"] | None]
    stops: Final[Literal["all", "read_committed"] | None]
    matters_to_start: Final[bool]
    is_rebuildable: Final[bool]
    loses_records: Final[bool]
    effects: Final[list[str]]
    trace_of: Final[list[str]]
    joins: Final[str]

@final
class CauseExplanation:
    name: Final[str]
    is_lawful: Final[bool]
    brief: Final[str]
    meaning: Final[str]
    causes: Final[str]
    action: Final[str]
    kafka: Final[str]

@final
class Copy:
    def __new__(cls, scan: PartitionScan, *, high_watermark: int | None = None) -> Copy: ...

@final
class Difference(_Ordered):
    kind: Final[str]
    severity: Final[_Severity]
    first_offset: Final[int]
    last_offset: Final[int]
    good_replicas: Final[list[str]]
    bad_replicas: Final[list[str]]
    only_replica: Final[str | None]
    replicas: Final[list[str]]
    segments: Final[list[int | None]]
    positions: Final[list[int | None]]
    sizes: Final[list[int | None]]
    batches: Final[list[int]]
    records: Final[list[int]]
    leader_epochs: Final[list[int | None]]
    action: Final[str]
    message: Final[str]

@final
class CopyFinding(_Ordered):
    finding: Final[Finding]
    replica: Final[str]
    segment: Final[int]
    good_replicas: Final[list[str]]
    difference: Final[int]

def compare_copies(
    copies: Sequence[tuple[str, Copy, Sequence[_Place]]], *, progress: _Progress = None
) -> tuple[list[Difference], list[CopyFinding]]: ...

@final
class TableStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

_Profile: TypeAlias = Literal["strict", "kafka"]
_UnknownProducer: TypeAlias = Literal["auto", "unknown", "accept"]

@final
class VerificationGuard: ...

@final
class Leader:
    def __new__(
        cls,
        config: _Config = None,
        *,
        topic: str = ...,
        partition: int = 0,
        leader_epoch: int = ...,
        next_offset: int = 0,
        log_start_offset: int = 0,
        profile: _Profile | str = "strict",
        kafka_version: str | None = None,
        unknown_producer: _UnknownProducer | str = "auto",
        transaction_verification: bool = True,
    ) -> Leader: ...
    @staticmethod
    def restore(
        snapshot: _Data | None,
        stored_batches_after: _Data | Iterable[_Data] | None = None,
        *,
        now_ms: int,
        snapshot_offset: int = 0,
        log_start_offset: int = 0,
        log_start_batch_offset: int | None = None,
        log_end_offset: int | None = None,
        high_watermark: int | None = None,
        aborted_transactions: Sequence[AbortedTransaction] = ...,
        is_recovery: bool = False,
        config: _Config = None,
        topic: str = ...,
        partition: int = 0,
        leader_epoch: int = ...,
        profile: _Profile | str = "strict",
        kafka_version: str | None = None,
        unknown_producer: _UnknownProducer | str = "auto",
        transaction_verification: bool = True,
    ) -> Leader: ...
    @staticmethod
    def from_bytes(
        state: _Data,
        *,
        config: _Config = None,
        topic: str = ...,
        partition: int = 0,
        leader_epoch: int = ...,
        profile: _Profile | str = "strict",
        kafka_version: str | None = None,
        unknown_producer: _UnknownProducer | str = "auto",
        transaction_verification: bool = True,
    ) -> Leader: ...
    def to_bytes(self) -> bytes: ...
    def append(
        self,
        records: _Data,
        *,
        now_ms: int,
        api_version: int | None = ...,
        transactional_id: str | None = None,
        origin: str = "client",
        guard: VerificationGuard | None = None,
    ) -> Verdict: ...
    def append_as_follower(self, records: _Data, *, now_ms: int) -> Verdict: ...
    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        now_ms: int,
        transaction_version: int = 2,
    ) -> VerificationGuard | None: ...
    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        coordinator_epoch: int,
        commit: bool,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Verdict: ...
    def delete_records(self, offset: int, *, batch_base_offset: int | None = None) -> None: ...
    def advance_high_watermark(self, offset: int) -> None: ...
    def expire_producers(self, now_ms: int) -> None: ...
    def truncate(
        self,
        offset: int,
        snapshot: _Data | None = None,
        stored_batches_after: _Data | Iterable[_Data] | None = None,
        *,
        now_ms: int,
        snapshot_offset: int = 0,
    ) -> None: ...
    def snapshot(self) -> bytes: ...
    def aborted_between(self, start: int, end: int) -> tuple[AbortedTransaction, ...]: ...
    topic: Final[str]
    partition: Final[int]
    producers: Final[tuple[ProducerState, ...]]
    aborted_transactions: Final[tuple[AbortedTransaction, ...]]
    log_start_offset: Final[int]
    log_end_offset: Final[int]
    high_watermark: Final[int]
    last_stable_offset: Final[int]
    first_unstable_offset: Final[int | None]
    producer_end_offset: Final[int]
    metrics: Final[dict[str, int]]

@final
class TopicSettings:
    def __new__(
        cls, settings: Sequence[tuple[str, str]], kafka_version: str | None = None
    ) -> TopicSettings: ...

@final
class RecordError:
    __match_args__: Final = ("batch_index", "message", "error")
    def __new__(cls, batch_index: int, message: str, error: int) -> RecordError: ...
    batch_index: Final[int]
    message: Final[str]
    error: Final[int]
    error_name: Final[str]

@final
class SetPart:
    position: Final[int]
    size: Final[int]
    is_refused: Final[bool]
    error: Final[int | None]
    reason: Final[str | None]
    message: Final[str | None]
    record_index: Final[int | None]
    record_errors: Final[tuple[RecordError, ...]]
    def records(self) -> RecordIterator | None: ...

@final
class SetSplit:
    def __iter__(self) -> SetSplit: ...
    def __next__(self) -> TableBatch: ...

@final
class ErrorCode:
    code: Final[int]
    name: Final[str]
    is_retriable: Final[bool]
    refreshes_metadata: Final[bool]

@final
class Verdict:
    def __bool__(self) -> bool: ...
    def raise_for_error(self) -> None: ...
    accepted: Final[bool]
    error: Final[int]
    error_name: Final[str]
    error_message: Final[str | None]
    record_errors: Final[tuple[RecordError, ...]]
    is_request_wide: Final[bool]
    base_offset: Final[int]
    last_offset: Final[int]
    max_timestamp_ms: Final[int]
    offset_of_max_timestamp: Final[int]
    log_append_time_ms: Final[int]
    log_start_offset: Final[int]
    is_rebuilt: Final[bool]
    is_duplicate: Final[bool]
    converted: Final[int]
    stored: Final[bytes]
    stored_parts: Final[tuple[bytes | memoryview, ...]]
    metrics: Final[dict[str, int]]

_LeftOut: TypeAlias = tuple[int, tuple[int, str] | None, int]

def committed_offsets(
    segments: _Segments, start_offset: int
) -> tuple[list[dict[str, Any]], _LeftOut]: ...
def share_group_states(
    segments: _Segments, start_offset: int
) -> tuple[list[dict[str, Any]], _LeftOut]: ...
def transactional_ids(
    segments: _Segments, start_offset: int
) -> tuple[list[dict[str, Any]], _LeftOut]: ...
def judge_committed_offset(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    log_start_offset: int,
    log_end_offset: int,
    findings: Sequence[tuple[str, int, int, int | None]],
) -> Finding | None: ...
def judge_open_transaction(
    known: dict[str, Any], producer_epoch: int, topic: str, partition: int
) -> Literal["ongoing", "moved-on"]: ...
def least_release(value: bytes) -> tuple[int, int] | None: ...
def decode_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any] | None: ...

@final
class RebuiltIndexes:
    offset_entries: Final[int]
    time_entries: Final[int]
    aborted_count: Final[int]
    aborted: Final[bytes]
    max_timestamp: Final[int]
    fault: Final[str | None]

@final
class FindingGroups:
    def __new__(
        cls,
        rows: Sequence[tuple[int, tuple[int, ...], _Severity, tuple[int, int] | None, bool]],
    ) -> FindingGroups: ...
    def __len__(self) -> int: ...
    def severity_counts(self) -> list[int]: ...
    def row(
        self, number: int
    ) -> tuple[int, tuple[int, ...], _Severity, tuple[int, int] | None, bool]: ...

@final
class Recovery:
    error: Final[str | None]
    message: Final[str | None]
    is_stray: Final[bool]
    log_start_offset: Final[int]
    log_end_offset: Final[int]
    first_undecided_offset: Final[int | None]
    segments: Final[list[tuple[bytes, int]]]
    bytes_before: Final[list[tuple[bytes, int]]]
    bytes_cut: Final[int]
    rebuilt: Final[list[tuple[bytes, RebuiltIndexes]]]
    producer_count: Final[int]
    leader_epochs: Final[list[tuple[int, int]]]
    exposed: Final[bytes]
    files_deleted: Final[list[bytes]]
    files_created: Final[list[bytes]]
    snapshots_rewritten: Final[list[bytes]]
    def producer(self, number: int) -> tuple[int, int, int, int, int, int, int | None]: ...
    def producer_ids(self) -> bytes: ...
    def knows_producers(self, ids: bytes) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Start:
    clean: Final[bool]
    is_next: Final[bool]
    outcome: Final[_StartOutcome]
    offsets_lost: Final[int]
    action: Final[str]
    after: Final[Recovery]

@final
class Rebuild:
    def __new__(
        cls, snapshot: bytes | None = None, *, index_interval_bytes: int = 4096
    ) -> Rebuild: ...
    def segment(self, path: _Place, base_offset: int) -> SideFiles: ...
    def leader_epochs(self) -> bytes: ...

@final
class SideFiles:
    offset_index: Final[bytes]
    time_index: Final[bytes]
    transaction_index: Final[bytes]
    snapshot: Final[bytes]
    next_offset: Final[int]
    valid_bytes: Final[int]
    fault: Final[str | None]
    def __eq__(self, other: object, /) -> bool: ...
