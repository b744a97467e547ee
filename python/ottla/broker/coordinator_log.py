"""The log of a coordinator as it is loaded: whole batches under right checksums, or nothing of it.

A partition that cannot be read has no coordinator, as with Kafka's, whose group coordinator fails
to load what it cannot decode. Kafka does not look at the checksums there; who takes a garbled
offset for a committed one skips records, or reads them twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.errors import KafkaError, RecordBatchError
from ottla.protocol.error_code import ErrorCode
from ottla.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.plane import DataPlane

__all__ = ["read_whole_log"]

_READ_BYTES: Final = 1 << 20


def read_whole_log(plane: DataPlane, handle: int) -> Iterator[bytes]:
    """Yields the batches of a partition, some at a time.

    Raises:
        KafkaError: CORRUPT_MESSAGE (2), where a batch is not as it was written.
    """
    start_offset, _, _, end_offset = plane.offsets(handle)
    offset, size = start_offset, 0
    while offset < end_offset and (data := plane.read(handle, offset, _READ_BYTES)):
        try:
            for batch in read_batches(data):
                batch.verify()
                offset = batch.last_offset + 1
        except RecordBatchError as error:
            raise _corrupt(f"the batch at offset {offset} cannot be read: {error}") from None
        size += len(data)
        yield data
    segments = plane.segments(handle)
    stored = sum(of_segment for _, of_segment in segments)
    # Compaction leaves offsets without batches, also at the end, but no bytes that are none.
    if size < stored and segments[0][0] == start_offset:
        raise _corrupt(f"{stored - size:,} bytes behind offset {offset} are no batches")


def _corrupt(message: str) -> KafkaError:
    return KafkaError(message, ErrorCode.CORRUPT_MESSAGE, "CORRUPT_MESSAGE")
