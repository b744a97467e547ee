"""Reading, checking and building record batches.

All functions work on buffers of any number of batches; Python objects are created only on request.
Data may be any bytes-like object: ``bytes`` and views of it are borrowed, anything else is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ottla._engine import (
    AbortedTransaction,
    BatchBuilder,
    BatchIterator,
    Columns,
    ConsumerRecord,
    ErrorCode,
    FetchedColumns,
    FetchedRecords,
    Leader,
    ProducerState,
    Record,
    RecordBatch,
    RecordError,
    RecordIterator,
    RememberedBatch,
    SetPart,
    SetSplit,
    Verdict,
    VerificationGuard,
    check_batches,
    crc32c,
    decode_record,
    error_codes,
    fetched,
    join_columns,
    kafka_versions,
    leader_error_codes,
    murmur2,
    partitions_of,
    profile_differences,
    read_batches,
    read_columns,
    release_differences,
    require_numpy,
    rows_by_partition,
    split_column,
    validate,
    validate_column,
    validate_each,
    validate_stored,
)
from ottla._engine import build_batch as _build_batch
from ottla._engine import build_batch_from_columns as _build_batch_from_columns
from ottla._engine import build_control_batch as _build_control_batch
from ottla._engine import build_message_set as _build_message_set
from ottla.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ottla.records.config import TopicConfig
    from ottla.records.new_record import NewRecord
else:
    from ottla.on_demand import on_demand

    # Dataclasses: what makes them costs more to load than the engine.
    __getattr__ = on_demand(
        __name__,
        {"NewRecord": "ottla.records.new_record", "TopicConfig": "ottla.records.config"},
    )

__all__ = [
    "AbortedTransaction",
    "BatchBuilder",
    "BatchIterator",
    "BinaryColumn",
    "Columns",
    "Compression",
    "ConsumerRecord",
    "ErrorCode",
    "FetchedColumns",
    "FetchedRecords",
    "Leader",
    "NewRecord",
    "ProducerState",
    "Record",
    "RecordBatch",
    "RecordError",
    "RecordIterator",
    "RememberedBatch",
    "SetPart",
    "SetSplit",
    "TopicConfig",
    "Verdict",
    "VerificationGuard",
    "arrow_column",
    "build_batch",
    "build_batch_from_columns",
    "build_control_batch",
    "build_message_set",
    "check_batches",
    "columns",
    "crc32c",
    "decode_record",
    "error_codes",
    "fetched",
    "join_columns",
    "kafka_versions",
    "leader_error_codes",
    "murmur2",
    "partitions_of",
    "profile_differences",
    "read",
    "read_batches",
    "read_columns",
    "release_differences",
    "require_numpy",
    "rows_by_partition",
    "split_column",
    "validate",
    "validate_column",
    "validate_each",
    "validate_stored",
]

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

BinaryColumn = Any
"""A column of byte strings: ``(offsets, data)`` or ``(offsets, data, validity)`` with offsets an
int32 or int64 array of n + 1 positions into the uint8 array data and validity a bool array, False
for null; or an Arrow array of type binary or large_binary; or ``None`` for a column of nulls."""


def columns(data: Buffer | NDArray[Any], *, views: bool = False) -> Columns:
    """Reads a buffer as columns: the former name of `read_columns`.

    >>> import ottla
    >>> columns = ottla.read_columns(ottla.build_batch([ottla.NewRecord(b"k", b"value")]))
    >>> columns.offset.tolist()
    [0]
    """
    import warnings

    message = "ottla.columns is deprecated, and called ottla.read_columns"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return read_columns(data, views=views)


def read(data: Buffer | NDArray[Any], *, control: bool = False) -> Iterator[Record]:
    """Yields every record of a buffer of batches, in order, with checksums verified.

    Args:
        data: any bytes-like object.
        control: include control records, which consumers never receive.

    Raises:
        RecordBatchError: while iterating, at the first batch that a consumer would reject.
        TypeError: `data` has no bytes; raised at once.

    >>> import ottla
    >>> data = ottla.build_batch([ottla.NewRecord(b"k", b"v"), ottla.NewRecord(b"l", None)])
    >>> [(record.offset, record.key, record.value) for record in ottla.read(data)]
    [(0, b'k', b'v'), (1, b'l', None)]
    """
    batches = read_batches(data)
    return _records_of(batches, control)


def _records_of(batches: BatchIterator, control: bool) -> Iterator[Record]:
    for batch in batches:
        batch.verify()
        if control or not batch.is_control:
            yield from batch.records()


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    compression: Compression = "none",
    compression_level: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Builds one batch of magic 2, byte for byte as Kafka's own builder.

    Args:
        records: at least one.
        base_offset: offset of the first record.
        compression: codec of the payload.
        compression_level: level in the codec's own scale; ``None`` for Kafka's default.
        partition_leader_epoch: -1, as producers send it.
        producer_id, producer_epoch, base_sequence: of an idempotent producer; all or none (KIP-98).
        is_transactional: whether the batch is part of a transaction; requires a producer id.
        log_append_time_ms: makes the timestamp type LogAppendTime, with this time.
        delete_horizon_ms: sets the delete horizon (KIP-534).

    Raises:
        ValueError: Kafka's builder would reject it: no records, a negative timestamp other than -1,
            offsets that do not increase, a producer id without epoch or sequence.

    >>> import ottla
    >>> data = ottla.build_batch([ottla.NewRecord(value=b"x")], base_offset=7, compression="zstd")
    >>> next(ottla.read_batches(data)).base_offset
    7
    """
    rows = _rows_of(records)
    return _build_batch(
        rows,
        base_offset=base_offset,
        compression=compression,
        compression_level=compression_level,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        log_append_time_ms=log_append_time_ms,
        delete_horizon_ms=delete_horizon_ms,
    )


def _rows_of(records: Any) -> list[Any]:
    """Returns records as the engine takes them.

    Raises:
        TypeError: something among them is no record.
    """
    try:
        return [(r.timestamp, r.key, r.value, r.headers or None, r.offset_delta) for r in records]
    except (AttributeError, TypeError):
        if isinstance(records, (str, bytes)) or not hasattr(records, "__iter__"):
            raise TypeError(f"records is {_kind(records)}, expected several NewRecord") from None
        if not isinstance(records, Sequence):
            raise
        from ottla.records.new_record import NewRecord

        for index, record in enumerate(records):
            if not isinstance(record, NewRecord):
                message = f"records[{index}] is {_kind(record)}, expected a NewRecord"
                raise TypeError(message) from None
        raise


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"


def build_batch_from_columns(
    timestamps: Any,
    keys: BinaryColumn,
    values: BinaryColumn,
    *,
    base_offset: int = 0,
    compression: Compression = "none",
    compression_level: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Builds one batch of magic 2 from columns, one record per row, without headers.

    Args:
        timestamps: int64 array of ms since 1970; -1 for none.
        keys, values: see `BinaryColumn`; NumPy arrays are not copied.

    Other arguments and errors are those of `build_batch`.

    Raises:
        ValueError: columns have different lengths, offsets are outside the data, or Kafka's builder
            would reject the batch.
        TypeError: an array has the wrong type.

    >>> import numpy, ottla
    >>> values = (numpy.array([0, 1, 3], "int32"), numpy.frombuffer(b"abb", "uint8"))
    >>> data = ottla.build_batch_from_columns(numpy.array([5, 6]), None, values)
    >>> [record.value for record in ottla.read(data)]
    [b'a', b'bb']
    """
    return _build_batch_from_columns(
        timestamps,
        keys if keys is None or isinstance(keys, tuple) else arrow_column(keys),
        values if values is None or isinstance(values, tuple) else arrow_column(values),
        base_offset=base_offset,
        compression=compression,
        compression_level=compression_level,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        log_append_time_ms=log_append_time_ms,
    )


def build_control_batch(
    kind: Literal["commit", "abort"],
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Builds the marker that ends a transaction (KIP-98), as written by the coordinator.

    Raises:
        ValueError: another kind, or no producer id.

    >>> import ottla
    >>> marker = ottla.build_control_batch(
    ...     "commit", producer_id=9, producer_epoch=2, coordinator_epoch=7, timestamp=1_500_000_000
    ... )
    >>> [record.control for record in ottla.read(marker, control=True)]
    ['COMMIT']
    """
    return _build_control_batch(
        kind,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=timestamp,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_message_set(
    records: Iterable[NewRecord],
    *,
    magic: Literal[0, 1],
    base_offset: int = 0,
    compression: Literal["none", "gzip", "snappy", "lz4"] = "none",
    compression_level: int | None = None,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Builds records of magic 0 or 1: one entry each, or one compressed wrapper of all of them.

    Raises:
        ValueError: the format does not support something, such as headers or zstd.

    >>> import ottla
    >>> data = ottla.build_message_set([ottla.NewRecord(b"k", b"v")], magic=0, compression="gzip")
    >>> [record.value for record in ottla.read(data)]
    [b'v']
    """
    rows = _rows_of(records)
    return _build_message_set(
        rows,
        magic=magic,
        base_offset=base_offset,
        compression=compression,
        compression_level=compression_level,
        log_append_time_ms=log_append_time_ms,
    )


def arrow_column(column: object) -> tuple[Any, ...]:
    """Returns offsets, data and validity of an Arrow array of byte strings as NumPy arrays."""
    require_numpy("Pass records")
    import numpy as np

    try:
        import pyarrow as pa
    except ImportError as error:
        message = "Arrow columns need pyarrow: install ottla[arrow], or pass (offsets, data)"
        raise MissingDependencyError(message) from error
    array = column if isinstance(column, pa.Array) else pa.array(column)
    if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        offset_type: Any = np.int64
    elif pa.types.is_binary(array.type) or pa.types.is_string(array.type):
        offset_type = np.int32
    else:
        array, offset_type = array.cast(pa.binary()), np.int32
    validity, offsets, data = array.buffers()
    start, stop = array.offset, array.offset + len(array) + 1
    return (
        np.frombuffer(offsets, offset_type)[start:stop] if offsets else np.zeros(1, offset_type),
        np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8),
        (np.frombuffer(validity, np.uint8), start) if validity else None,
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
