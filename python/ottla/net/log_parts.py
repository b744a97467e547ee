"""Logs of partitions as a test reads them: whole batches, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.topics import TopicError
from ottla.net.wanted import listed, shown
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.image import Partition, Topic
    from ottla.records import Record

__all__ = [
    "ALL_BYTES",
    "LogPart",
    "LogRecord",
    "RecordCounts",
    "find_partitions",
    "find_topic",
    "log_part",
    "log_record",
]

ALL_BYTES = 1 << 31
"""More than a log in memory has."""

READ_BYTES = 1 << 20
"""At a time, to count records."""


class LogPart(NamedTuple):
    """Whole batches of a partition.

    Attributes:
        partition: its index.
        start_offset: of the log. The first batch may have records before it, which are deleted.
        data: batches, as they are stored.
        next_offset: where to go on.
        end_offset: of the log.
    """

    partition: int
    start_offset: int
    data: bytes
    next_offset: int
    end_offset: int


class LogRecord(NamedTuple):
    """A record of a partition."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def find_topic(broker: Broker, name: str) -> Topic:
    """Returns a topic.

    Raises:
        TopicError: there is none of that name.
    """
    topic = broker.image.topics.get(name)
    if topic is None:
        known = listed("topics", broker.image.topics)
        why = f"there is no topic {shown(name)}; {known}"
        raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
    return topic


def find_partitions(broker: Broker, topic: str, partition: int | None) -> tuple[Partition, ...]:
    """Returns a partition of a topic, or all of them.

    Raises:
        TopicError: there is no such topic or partition.
    """
    found = find_topic(broker, topic)
    if partition is None:
        return found.partitions
    one = found.partition(partition)
    if one is None:
        count = len(found.partitions)
        why = f"topic {topic} has no partition {partition}; it has {count}"
        raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
    return (one,)


def log_part(broker: Broker, partition: Partition, offset: int, max_bytes: int) -> LogPart:
    """Returns batches from an offset on, one at least if any bytes are allowed."""
    from ottla.records import read_batches

    start_offset, _, _, end_offset = broker.plane.offsets(partition.handle)
    next_offset = max(offset, start_offset)
    data = b""
    if next_offset < end_offset and max_bytes > 0:
        data = bytes(broker.plane.read(partition.handle, next_offset, max_bytes))
    for batch in read_batches(data):
        next_offset = batch.last_offset + 1
    return LogPart(
        partition.partition_index, start_offset, data, next_offset, max(next_offset, end_offset)
    )


def log_record(partition: int, record: Record) -> LogRecord:
    """Returns a record with its partition."""
    return LogRecord(
        partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )


class RecordCounts:
    """How many records partitions have, those of control batches left out.

    Each batch is looked at once, however often it is asked.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int, int]] = {}

    def of(self, broker: Broker, partition: Partition) -> int:
        """Returns the count of a partition."""
        from ottla.records import read_batches

        handle = partition.handle
        start_offset, _, _, end_offset = broker.plane.offsets(handle)
        from_offset, next_offset, count = self._known.get(handle, (start_offset, start_offset, 0))
        if from_offset != start_offset or next_offset > end_offset:
            # Some were deleted.
            next_offset, count = start_offset, 0
        while next_offset < end_offset:
            data = broker.plane.read(handle, next_offset, READ_BYTES)
            if not data:
                break
            for batch in read_batches(data):
                next_offset = batch.last_offset + 1
                if batch.is_control:
                    continue
                if batch.base_offset < start_offset:
                    count += sum(record.offset >= start_offset for record in batch.records())
                else:
                    count += batch.record_count or 0
        self._known[handle] = (start_offset, next_offset, count)
        return count
