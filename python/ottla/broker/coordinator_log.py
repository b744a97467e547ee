"""The log of a coordinator as it is written, and loaded: whole batches under right checksums.

A partition that cannot be written is led no longer. One that cannot be read has no coordinator, as
with Kafka's, whose group coordinator fails to load what it cannot decode. Kafka does not look at
the checksums there; who takes a garbled offset for a committed one skips records, or reads them
twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.errors import KafkaError, RecordBatchError
from ottla.protocol.error_code import ErrorCode
from ottla.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.broker.plane import DataPlane
    from ottla.broker.state import State
    from ottla.records import VerificationGuard

__all__ = ["append_to_log", "read_whole_log"]

_READ_BYTES: Final = 1 << 20


def append_to_log(
    state: State,
    place: tuple[str, int],
    batch: bytes,
    now_ms: int,
    *,
    give_up: Callable[[int], None],
    guard: VerificationGuard | None = None,
) -> int:
    """Appends a batch to a partition of a coordinator's topic; returns an error code.

    Args:
        state: of the broker.
        place: the topic and the partition.
        batch: of records of one group or transactional id.
        now_ms: the broker's time.
        give_up: has a partition led no longer; called soon where it cannot be written.
        guard: shows that a transaction is under way (KIP-890).
    """
    topic, index = place
    partition = state.image.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        verdict = state.plane.append(partition.handle, batch, now_ms=now_ms, guard=guard)
    except KafkaError as error:
        if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            state.waiting.do_at(now_ms, lambda: give_up(index))
        return error.error_code
    if not verdict.error:
        state.moved((partition.handle,))
    return verdict.error


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
