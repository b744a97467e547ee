"""Reading, checking and building record batches: the engine's public face.

Everything works on buffers of many batches; Python objects are made only when asked for. Data may be
any bytes-like object: ``bytes`` is borrowed, anything else is copied once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ottla._engine import (
    BatchIterator,
    Columns,
    Record,
    RecordBatch,
    RecordIterator,
    check_batches,
    read_batches,
    read_columns,
)
from ottla._engine import build_batch as _build_batch
from ottla._engine import build_batch_from_columns as _build_batch_from_columns
from ottla._engine import build_control_batch as _build_control_batch
from ottla._engine import build_message_set as _build_message_set

__all__ = [
    "BatchIterator",
    "BinaryColumn",
    "Columns",
    "Compression",
    "NewRecord",
    "Record",
    "RecordBatch",
    "RecordIterator",
    "build_batch",
    "build_batch_from_columns",
    "build_control_batch",
    "build_message_set",
    "check_batches",
    "columns",
    "read",
    "read_batches",
    "read_columns",
]

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

BinaryColumn = Any
"""A column of byte strings: ``(offsets, data)`` with offsets an int32 array of n + 1 positions into the
uint8 array data; or an Arrow array of type binary (anything with ``__arrow_c_array__``); or ``None``
for a column of nulls."""

columns = read_columns


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written.

    Attributes:
        key, value: bytes, or ``None`` for null.
        timestamp: ms since 1970; −1 for none.
        headers: pairs of key and value; a key may be ``str`` or bytes.
        offset_delta: offset minus base offset; ``None`` counts on from the record before.
    """

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = -1
    headers: Sequence[tuple[str | bytes, bytes | None]] = field(default=())
    offset_delta: int | None = None


def read(data: object, *, control: bool = False) -> Iterator[Record]:
    """Gives every record of a buffer of batches, in order, checksums verified.

    Args:
        data: any bytes-like object.
        control: also give control records, which consumers never see.

    Raises:
        RecordBatchError: while iterating, at the first batch that a consumer would refuse.

    >>> import ottla
    >>> data = ottla.build_batch([ottla.NewRecord(b"k", b"v"), ottla.NewRecord(b"l", None)])
    >>> [(record.offset, record.key, record.value) for record in ottla.read(data)]
    [(0, b'k', b'v'), (1, b'l', None)]
    """
    for batch in read_batches(data):
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
    """Builds one batch of magic 2, byte for byte as Kafka's own builder writes it.

    Args:
        records: at least one.
        base_offset: offset of the first record.
        compression: codec of the payload.
        compression_level: the codec's own scale; ``None`` for Kafka's default.
        partition_leader_epoch: −1 as producers send it.
        producer_id, producer_epoch, base_sequence: of an idempotent producer, all or none (KIP-98).
        is_transactional: part of a transaction; needs a producer id.
        log_append_time_ms: makes the batch LogAppendTime with this time.
        delete_horizon_ms: sets the horizon (KIP-534).

    Raises:
        ValueError: what Kafka's builder refuses: no records, a negative timestamp other than −1,
            offsets that do not go up, a producer id without epoch or sequence.

    >>> import ottla
    >>> data = ottla.build_batch([ottla.NewRecord(value=b"x")], base_offset=7, compression="zstd")
    >>> next(ottla.read_batches(data)).base_offset
    7
    """
    rows = [(r.timestamp, r.key, r.value, r.headers or None, r.offset_delta) for r in records]
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
