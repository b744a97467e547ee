"""The state of groups as records of `__consumer_offsets`, in Kafka's layouts.

One change is one batch, so that a crash leaves all of it or nothing. Keys are compacted: of each
the last value counts, and a tombstone deletes it. Records of types that are not ours (share groups,
streams groups) are passed over when a log is loaded, and so stay as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.broker.groups.record_values import (
    classic_group,
    classic_group_value,
    current,
    current_value,
    offset,
    offset_value,
    partitions_of,
    subscription,
    subscription_value,
    target_value,
)
from ottla.broker.groups.records import (
    ClassicGroupRecord,
    ConsumerGroupRecord,
    CurrentRecord,
    GroupEpoch,
    MemberRecord,
    OffsetCommit,
    Record,
    RegexRecord,
    ResolvedRegex,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.broker.groups.store import Producer
from ottla.errors import UnwritableMessageError
from ottla.protocol.coordinator_record import key_bytes, read_key, read_value, value_bytes
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages import consumer_offsets as layouts
from ottla.protocol.wire import Message
from ottla.records import NewRecord, VerificationGuard, build_batch, read_batches

# The versions written, which every broker since 2.1 reads (KIP-915). Version 1 of an offset has the
# time at which it expires, and no leader epoch.
_OFFSET_VERSION = 3
_EXPIRING_OFFSET_VERSION = 1
_GROUP_VERSION = 3

# Appends a batch to a partition of the topic, at a time, with what shows that its transaction is
# under way. Returns an error code.
Append = Callable[[int, bytes, int, VerificationGuard | None], int]
Encoded = tuple[Message, Message | None, int]


class OffsetsLog:
    """Writes what a coordinator keeps."""

    def __init__(self, append: Append, partition_of: Callable[[str], int]) -> None:
        self._append = append
        self._partition_of = partition_of

    def write(self, records: Sequence[Record], now_ms: int, producer: Producer | None) -> int:
        """Appends records of one group as one batch. Returns an error code.

        A request may have names that are too long for the layouts: INVALID_REQUEST.
        """
        try:
            rows = [NewRecord(*encode_record(record), now_ms) for record in records]
        except UnwritableMessageError:
            return ErrorCode.INVALID_REQUEST
        # The origin of the batch tells the leader that a coordinator has no sequence.
        batch = build_batch(
            rows,
            producer_id=-1 if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            base_sequence=-1 if producer is None else 0,
            is_transactional=producer is not None,
        )
        partition = self._partition_of(records[0].group_id)
        return self._append(partition, batch, now_ms, None if producer is None else producer.guard)


def read_log(data: bytes) -> Iterator[tuple[int, int, list[Record | bool]]]:
    """Yields what each batch of a partition says, in order.

    Of a batch that is its last offset, its producer id, −1 outside transactions, and its records; a
    marker is whether the producer's transaction was committed.

    Raises:
        RecordBatchError: a batch cannot be read.
        MalformedFrameError: a record cannot be.
    """
    for batch in read_batches(data):
        changes: list[Record | bool] = []
        for raw in batch.records():
            if batch.is_control:
                if raw.control in {"COMMIT", "ABORT"}:
                    changes.append(raw.control == "COMMIT")
                continue
            record = None if raw.key is None else decode_record(raw.key, raw.value)
            if record is not None:
                changes.append(record)
        yield batch.last_offset, batch.producer_id if batch.is_transactional else -1, changes


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Returns the key and the value of a record."""
    key, value, version = _ENCODERS[type(record)](record)
    return key_bytes(key), None if value is None else value_bytes(value, version)


def decode_record(key: bytes, value: bytes | None) -> Record | None:
    """Returns a record from its key and its value; `None` for types that groups do not keep.

    Raises:
        MalformedFrameError: the key or the value is not whole, or of an unknown version.
    """
    found = read_key(key, _DECODERS)
    return None if found is None else _DECODERS[type(found)](found, value)


def _encode_offset(record: OffsetCommit) -> Encoded:
    key = layouts.OffsetCommitKey(
        group=record.group_id, topic=record.topic, partition=record.partition
    )
    if record.value is None:
        return key, None, 0
    expires = record.value.expire_timestamp_ms is not None
    version = _EXPIRING_OFFSET_VERSION if expires else _OFFSET_VERSION
    return key, offset_value(record.value), version


def _decode_offset(key: Any, value: bytes | None) -> Record:
    kept = None if value is None else offset(read_value(value, layouts.OffsetCommitValue))
    return OffsetCommit(key.group, key.topic, key.partition, kept)


def _encode_classic(record: ClassicGroupRecord) -> Encoded:
    value = None if record.value is None else classic_group_value(record.value)
    return layouts.GroupMetadataKey(group=record.group_id), value, _GROUP_VERSION


def _decode_classic(key: Any, value: bytes | None) -> Record:
    kept = None if value is None else classic_group(read_value(value, layouts.GroupMetadataValue))
    return ClassicGroupRecord(key.group, kept)


def _encode_group(record: ConsumerGroupRecord) -> Encoded:
    value = None
    if record.value is not None:
        value = layouts.ConsumerGroupMetadataValue(
            epoch=record.value.epoch, metadata_hash=record.value.metadata_hash
        )
    return layouts.ConsumerGroupMetadataKey(group_id=record.group_id), value, 0


def _decode_group(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        read = read_value(value, layouts.ConsumerGroupMetadataValue)
        kept = GroupEpoch(read.epoch, read.metadata_hash)
    return ConsumerGroupRecord(key.group_id, kept)


def _encode_member(record: MemberRecord) -> Encoded:
    key = layouts.ConsumerGroupMemberMetadataKey(
        group_id=record.group_id, member_id=record.member_id
    )
    return key, None if record.value is None else subscription_value(record.value), 0


def _decode_member(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        kept = subscription(read_value(value, layouts.ConsumerGroupMemberMetadataValue))
    return MemberRecord(key.group_id, key.member_id, kept)


def _encode_target_epoch(record: TargetEpochRecord) -> Encoded:
    value = None
    if record.value is not None:
        value = layouts.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=record.value)
    return layouts.ConsumerGroupTargetAssignmentMetadataKey(group_id=record.group_id), value, 0


def _decode_target_epoch(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        read = read_value(value, layouts.ConsumerGroupTargetAssignmentMetadataValue)
        kept = read.assignment_epoch
    return TargetEpochRecord(key.group_id, kept)


def _encode_target(record: TargetRecord) -> Encoded:
    key = layouts.ConsumerGroupTargetAssignmentMemberKey(
        group_id=record.group_id, member_id=record.member_id
    )
    return key, None if record.value is None else target_value(record.value), 0


def _decode_target(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        read = read_value(value, layouts.ConsumerGroupTargetAssignmentMemberValue)
        kept = partitions_of(read.topic_partitions)
    return TargetRecord(key.group_id, key.member_id, kept)


def _encode_current(record: CurrentRecord) -> Encoded:
    key = layouts.ConsumerGroupCurrentMemberAssignmentKey(
        group_id=record.group_id, member_id=record.member_id
    )
    return key, None if record.value is None else current_value(record.value), 0


def _decode_current(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        kept = current(read_value(value, layouts.ConsumerGroupCurrentMemberAssignmentValue))
    return CurrentRecord(key.group_id, key.member_id, kept)


def _encode_regex(record: RegexRecord) -> Encoded:
    key = layouts.ConsumerGroupRegularExpressionKey(
        group_id=record.group_id, regular_expression=record.regex
    )
    value = None
    if record.value is not None:
        value = layouts.ConsumerGroupRegularExpressionValue(
            topics=[*record.value.topics],
            version=record.value.version,
            timestamp=record.value.timestamp_ms,
        )
    return key, value, 0


def _decode_regex(key: Any, value: bytes | None) -> Record:
    kept = None
    if value is not None:
        read = read_value(value, layouts.ConsumerGroupRegularExpressionValue)
        kept = ResolvedRegex(tuple(read.topics), read.version, read.timestamp)
    return RegexRecord(key.group_id, key.regular_expression, kept)


_ENCODERS: dict[type[Record], Callable[[Any], Encoded]] = {
    OffsetCommit: _encode_offset,
    ClassicGroupRecord: _encode_classic,
    ConsumerGroupRecord: _encode_group,
    MemberRecord: _encode_member,
    TargetEpochRecord: _encode_target_epoch,
    TargetRecord: _encode_target,
    CurrentRecord: _encode_current,
    RegexRecord: _encode_regex,
}
_DECODERS: dict[type[Message], Callable[[Any, bytes | None], Record]] = {
    layouts.LegacyOffsetCommitKey: _decode_offset,
    layouts.OffsetCommitKey: _decode_offset,
    layouts.GroupMetadataKey: _decode_classic,
    layouts.ConsumerGroupMetadataKey: _decode_group,
    layouts.ConsumerGroupMemberMetadataKey: _decode_member,
    layouts.ConsumerGroupTargetAssignmentMetadataKey: _decode_target_epoch,
    layouts.ConsumerGroupTargetAssignmentMemberKey: _decode_target,
    layouts.ConsumerGroupCurrentMemberAssignmentKey: _decode_current,
    layouts.ConsumerGroupRegularExpressionKey: _decode_regex,
}
