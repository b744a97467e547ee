"""The rows of an audit's tables, as checkers of types know them; made from `columns.py`.

`docs/tables.md` says what the columns mean. `| Any` stands for a column that may be null: whether
it is depends on the row, and a checker would ask for more than is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from ottla.severity import Severity

__all__ = [
    "BatchRow",
    "DifferenceRow",
    "EpochRow",
    "EventRow",
    "FileRow",
    "FindingRow",
    "GapRow",
    "GroupRow",
    "MetricRow",
    "ProducerRow",
    "RecordRow",
    "RecoveryRow",
    "TimelineRow",
    "TransactionRow",
    "TransactionalIdRow",
]


class FileRow(TypedDict):
    """A row of `files`."""

    file: str
    topic: str | Any
    partition: int | Any
    kind: str
    state: str
    partition_state: str | Any
    size: int
    base_offset: int | Any
    is_read: bool
    batches: int | Any
    records: int | Any
    first_offset: int | Any
    next_offset: int | Any
    min_timestamp: int | Any
    max_timestamp: int | Any
    magics: list[Any] | Any
    codecs: list[Any] | Any
    reason: str | Any


class BatchRow(TypedDict):
    """A row of `batches`."""

    file: str
    topic: str | Any
    partition: int | Any
    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    record_count: int | Any
    compression: str | Any
    timestamp_type: str | Any
    base_timestamp: int | Any
    max_timestamp: int | Any
    partition_leader_epoch: int | Any
    producer_id: int | Any
    producer_epoch: int | Any
    base_sequence: int | Any
    last_sequence: int | Any
    is_transactional: bool | Any
    is_control: bool | Any
    delete_horizon_ms: int | Any
    crc: int | Any
    is_valid: bool


class RecordRow(TypedDict):
    """A row of `records`."""

    file: str
    topic: str | Any
    partition: int | Any
    batch_position: int
    offset: int
    timestamp: int
    key: bytes | Any
    value: bytes | Any
    headers: list[Any] | Any
    sequence: int
    control: str | Any


class EventRow(TypedDict):
    """A row of `events`."""

    event: int
    name: str
    severity: Severity
    verdict: str | Any
    file: str | Any
    topic: str | Any
    partition: int | Any
    position: int | Any
    first_offset: int | Any
    last_offset: int | Any
    first_timestamp: int | Any
    last_timestamp: int | Any
    next_good_offset: int | Any
    offsets_lost: int | Any
    records_lost: int | Any
    blocks: str | Any
    blocked_offset: int | Any
    cause: str | Any
    replica: str | Any
    good_replicas: list[Any] | Any
    findings: int | Any
    files: list[Any] | Any
    action: str | Any
    message: str


class FindingRow(TypedDict):
    """A row of `findings`."""

    name: str
    severity: Severity
    file: str | Any
    topic: str | Any
    partition: int | Any
    position: int | Any
    size: int | Any
    first_offset: int | Any
    last_offset: int | Any
    record_index: int | Any
    producer_id: int | Any
    next_good_offset: int | Any
    cause: str | Any
    replica: str | Any
    good_replicas: list[Any] | Any
    commands: list[Any] | Any
    expected: str | Any
    found: str | Any
    message: str
    event: int | Any


class GapRow(TypedDict):
    """A row of `gaps`."""

    file: str
    topic: str | Any
    partition: int | Any
    position: int | Any
    first_offset: int
    last_offset: int
    ranges: int | Any
    offsets: int
    reader: str | Any
    cause: str | Any
    confidence: str | Any
    evidence: str | Any


class TransactionRow(TypedDict):
    """A row of `transactions`."""

    topic: str | Any
    partition: int | Any
    producer_id: int | Any
    producer_epoch: int | Any
    coordinator_epoch: int | Any
    state: str | Any
    first_offset: int | Any
    last_offset: int | Any
    marker_offset: int | Any
    batches: int | Any
    records: int | Any
    bytes: int | Any
    first_timestamp: int | Any
    last_timestamp: int | Any
    duration_ms: int | Any
    transactional_id: str | Any
    coordinator_state: str | Any
    holds_last_stable_offset: bool | Any
    commands: list[Any] | Any


class ProducerRow(TypedDict):
    """A row of `producers`."""

    topic: str | Any
    partition: int | Any
    producer_id: int | Any
    producer_epoch: int | Any
    last_sequence: int | Any
    last_offset: int | Any
    last_offset_delta: int | Any
    last_timestamp: int | Any
    coordinator_epoch: int | Any
    open_transaction_offset: int | Any


class EpochRow(TypedDict):
    """A row of `epochs`."""

    topic: str | Any
    partition: int | Any
    leader_epoch: int | Any
    start_offset: int | Any
    batches: int | Any
    checkpoint_start_offset: int | Any


class TimelineRow(TypedDict):
    """A row of `timeline`."""

    file: str | Any
    topic: str | Any
    partition: int | Any
    base_offset: int | Any
    next_offset: int | Any
    batches: int | Any
    records: int | Any
    bytes: int | Any
    min_timestamp: int | Any
    min_timestamp_offset: int | Any
    max_timestamp: int | Any
    max_timestamp_offset: int | Any
    retention: str | Any
    blamed_offset: int | Any


class MetricRow(TypedDict):
    """A row of `metrics`."""

    topic: str
    partition: int
    log_start_offset: int | Any
    last_stable_offset: int | Any
    log_end_offset: int | Any
    segments: int | Any
    batches: int
    records: int
    bytes: int
    damaged_bytes: int | Any
    missing_offsets: int | Any
    removed_offsets: int | Any
    control_batches: int | Any
    thin_batches: int | Any
    empty_batches: int | Any
    transactional_batches: int | Any
    idempotent_batches: int | Any
    producers: int | Any
    committed_transactions: int | Any
    aborted_transactions: int | Any
    open_transactions: int | Any
    transactions_left_out: int | Any
    gaps_left_out: int | Any
    min_timestamp: int | Any
    max_timestamp: int | Any


class DifferenceRow(TypedDict):
    """A row of `differences`."""

    topic: str | Any
    partition: int | Any
    kind: str | Any
    severity: Severity | Any
    first_offset: int | Any
    last_offset: int | Any
    good_replicas: list[Any] | Any
    bad_replicas: list[Any] | Any
    only_replica: str | Any
    replicas: list[Any] | Any
    files: list[Any] | Any
    positions: list[Any] | Any
    sizes: list[Any] | Any
    batches: list[Any] | Any
    records: list[Any] | Any
    leader_epochs: list[Any] | Any
    action: str | Any
    commands: list[Any] | Any
    message: str | Any


class RecoveryRow(TypedDict):
    """A row of `recovery`."""

    directory: str | Any
    topic: str | Any
    partition: int | Any
    stop: str | Any
    is_next: bool | Any
    outcome: str | Any
    opens: bool | Any
    error: str | Any
    message: str | Any
    log_start_offset: int | Any
    log_end_offset: int | Any
    offsets_lost: int | Any
    bytes_cut: int | Any
    segments_deleted: list[Any] | Any
    exposed_transactions: int | Any
    action: str | Any


class GroupRow(TypedDict):
    """A row of `groups`."""

    group: str | Any
    type: str | Any
    topic: str | Any
    partition: int | Any
    offset: int | Any
    lag: int | Any
    leader_epoch: int | Any
    metadata: str | Any
    commit_timestamp_ms: int | Any
    expire_timestamp_ms: int | Any


class TransactionalIdRow(TypedDict):
    """A row of `transactional_ids`."""

    transactional_id: str | Any
    producer_id: int | Any
    producer_epoch: int | Any
    state: str | Any
    partitions: list[Any] | Any
    timeout_ms: int | Any
    last_update_ms: int | Any
    start_ms: int | Any
