# The broker's data plane, a part of `_engine`.
from collections.abc import Mapping
from os import PathLike
from typing import Any, final

from typing_extensions import Buffer

from ottla._engine import (
    Leader,
    ProducerState,
    Verdict,
    VerificationGuard,
    _Profile,
    _UnknownProducer,
)

@final
class DataPlane:
    def __new__(
        cls,
        *,
        profile: _Profile | str = "strict",
        kafka_version: str | None = None,
        unknown_producer: _UnknownProducer | str = "auto",
        transaction_verification: bool = True,
        max_stored_bytes: int = 4294967296,
        session_seed: int = 0,
    ) -> DataPlane: ...
    def open(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        *,
        now_ms: int,
        settings: Any = None,
        leader_epoch: int = 0,
        next_offset: int = 0,
        is_internal: bool = False,
        min_insync_replicas: int = 1,
        in_sync_replicas: int = 1,
        partition_epoch: int = -1,
        segment_ms: int = 604800000,
        segment_index_bytes: int = 10485760,
        index_interval_bytes: int = 4096,
        retention_ms: int = 604800000,
        retention_bytes: int = -1,
        directory: str | PathLike[str] | None = None,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
        is_dense: bool = False,
    ) -> int: ...
    def close(self, handle: int) -> None: ...
    def remove(self, handle: int) -> None: ...
    def flush(self, handle: int) -> None: ...
    def flush_job(self, handle: int) -> FlushJob | None: ...
    def flushed(self, handle: int, job: FlushJob) -> None: ...
    def unflushed(self) -> list[int]: ...
    def shut_down(self, handle: int) -> None: ...
    def checkpoints(self) -> list[tuple[str, int, int, int, int]]: ...
    def fetch_session(self, session_id: int) -> list[tuple[str, int]]: ...
    def set_full(self, handle: int, is_full: bool) -> int: ...
    def changes(self, handle: int) -> list[str]: ...
    def compact_job(
        self,
        handle: int,
        *,
        now_ms: int,
        is_forced: bool = False,
        min_cleanable_dirty_ratio: float = 0.5,
        min_compaction_lag_ms: int = 0,
        max_compaction_lag_ms: int = ...,
        delete_retention_ms: int = 86400000,
        dedupe_buffer_size: int = 134217728,
    ) -> CompactJob | None: ...
    def compacted(self, job: CompactJob) -> Compaction | None: ...
    def cleaner_offsets(self) -> list[tuple[str, int, int]]: ...
    def set_cleaner_offset(self, handle: int, offset: int) -> None: ...
    def is_offline(self, handle: int) -> bool: ...
    def take_offline(self, handle: int) -> None: ...
    def configure(
        self,
        handle: int,
        *,
        settings: Any = None,
        leader_epoch: int = ...,
        is_internal: bool = ...,
        min_insync_replicas: int = ...,
        in_sync_replicas: int = ...,
        partition_epoch: int = ...,
        segment_ms: int = ...,
        segment_index_bytes: int = ...,
        index_interval_bytes: int = ...,
        retention_ms: int = ...,
        retention_bytes: int = ...,
    ) -> None: ...
    def produce(
        self,
        frame: Buffer,
        position: int,
        version: int,
        *,
        now_ms: int,
        refused: Mapping[tuple[str, int], int] | None = None,
        verified: Verification | None = None,
        allow_internal: bool = False,
    ) -> Produced: ...
    def fetch(
        self,
        frame: Buffer,
        position: int,
        version: int,
        *,
        now_ms: int,
        must_answer: bool,
        refused: Mapping[tuple[str, int], int] | None = None,
    ) -> Fetched: ...
    def append(
        self,
        handle: int,
        records: Buffer,
        *,
        now_ms: int,
        origin: str = "coordinator",
        guard: VerificationGuard | None = None,
    ) -> Verdict: ...
    def end_transaction(
        self,
        handle: int,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Verdict: ...
    def begin_verification(
        self,
        handle: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        now_ms: int,
        transaction_version: int = 2,
    ) -> VerificationGuard | None: ...
    def read(self, handle: int, offset: int, max_bytes: int) -> bytes: ...
    def offsets(self, handle: int) -> tuple[int, int, int, int]: ...
    def find_offset(
        self,
        handle: int,
        timestamp: int,
        isolation_level: int = 0,
        *,
        current_leader_epoch: int = -1,
    ) -> tuple[int, int, int]: ...
    def end_of_epoch(
        self, handle: int, leader_epoch: int, *, current_leader_epoch: int = -1
    ) -> tuple[int, int]: ...
    def delete_records(self, handle: int, offset: int) -> int: ...
    def apply_retention(self, now_ms: int) -> tuple[int, ...]: ...
    def expire_producers(self, now_ms: int) -> None: ...
    def advance_high_watermark(self, handle: int, offset: int) -> None: ...
    def truncate(self, handle: int, offset: int, *, now_ms: int) -> None: ...
    def leader(self, handle: int) -> Leader: ...
    def producers(self, handle: int) -> tuple[ProducerState, ...]: ...
    def segments(self, handle: int) -> list[tuple[int, int]]: ...
    @property
    def stored_bytes(self) -> int: ...
    def metrics(self) -> dict[str, int]: ...

@final
class CompactJob:
    def run(self) -> None: ...
    def stop(self) -> None: ...

@final
class Compaction:
    @property
    def bytes_before(self) -> int: ...
    @property
    def bytes_after(self) -> int: ...
    @property
    def records_read(self) -> int: ...
    @property
    def records_kept(self) -> int: ...
    @property
    def records_without_key(self) -> int: ...
    @property
    def first_dirty_offset(self) -> int: ...
    @property
    def is_whole(self) -> bool: ...

@final
class FlushJob:
    def run(self) -> None: ...

@final
class Produced:
    @property
    def answer(self) -> list[bytes] | None: ...
    @property
    def moved(self) -> tuple[int, ...]: ...
    @property
    def repeated(self) -> tuple[int, ...]: ...
    @property
    def failed(self) -> bool: ...
    @property
    def to_verify(self) -> Verification | None: ...

@final
class Fetched:
    @property
    def answer(self) -> list[bytes] | None: ...
    @property
    def errors(self) -> tuple[int, ...]: ...
    @property
    def handles(self) -> tuple[int, ...]: ...
    @property
    def max_wait_ms(self) -> int: ...

@final
class Verification:
    @property
    def transactional_id(self) -> str: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def adds_partitions(self) -> bool: ...
    @property
    def partitions(self) -> tuple[tuple[str, int], ...]: ...
