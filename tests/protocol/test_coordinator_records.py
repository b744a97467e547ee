from collections import Counter
from pathlib import Path

import ottla
import pytest
from ottla.errors import MalformedFrameError
from ottla.protocol.coordinator_record import key_bytes, read_key, read_value, value_bytes
from ottla.protocol.messages import consumer_offsets, transaction_state
from ottla.protocol.messages.consumer_offsets import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from ottla.protocol.wire import Message, schema
from support.messages import messages_of


def test_a_key_begins_with_its_type_and_a_value_with_its_version() -> None:
    # Group g has read partition t-7 up to offset 42, in version 3 of the value.
    key = bytes.fromhex("0001 0001 67 0001 74 00000007")
    value = bytes.fromhex("0003 000000000000002a 00000005 0000 0000018bcfe56800")
    assert read_key(key, [LegacyOffsetCommitKey, OffsetCommitKey]) == OffsetCommitKey(
        group="g", topic="t", partition=7
    )
    commit = OffsetCommitValue(offset=42, leader_epoch=5, commit_timestamp=1_700_000_000_000)
    assert read_value(value, OffsetCommitValue) == commit
    assert key_bytes(OffsetCommitKey(group="g", topic="t", partition=7)) == key
    assert value_bytes(commit, 3) == value


def test_a_struct_in_a_tagged_field_is_null_by_a_varint() -> None:
    # Elsewhere a byte of -1 stands for null (KIP-893), but here 0 does: of a member of a consumer
    # group that came by its own protocol, and of one that speaks the classic protocol.
    null = bytes.fromhex("0000 00 00 01 01 01 00 ffffffff 00 01 00 01 00")
    there = bytes.fromhex("0000 00 00 01 01 01 00 ffffffff 00 01 00 07 01 00001388 01 00")
    member = ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, subscribed_topic_regex=None, server_assignor=None
    )
    for data, classic in (
        (null, None),
        (there, ClassicMemberMetadata(session_timeout_ms=5000)),
    ):
        member.classic_member_metadata = classic
        assert read_value(data, ConsumerGroupMemberMetadataValue) == member
        assert value_bytes(member, 0) == data


def test_a_key_of_a_type_that_is_not_asked_for_is_none() -> None:
    assert read_key(key_bytes(GroupMetadataKey(group="g")), [OffsetCommitKey]) is None


def test_a_value_of_an_unknown_version_is_malformed() -> None:
    with pytest.raises(MalformedFrameError, match="no version 2"):
        read_value(b"\0\2", TransactionLogValue)


@pytest.mark.parametrize("data", [b"", b"\0", key_bytes(TransactionLogKey())[:3]])
def test_a_key_that_is_cut_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        read_key(data, [TransactionLogKey])


def rewritten(directory: Path) -> Counter[str]:
    """How many records of coordinators in logs below a directory are written as they are read."""
    counts: Counter[str] = Counter()
    for topic, module in (
        ("__consumer_offsets", consumer_offsets),
        ("__transaction_state", transaction_state),
    ):
        classes = {schema(message).name: message for message in messages_of(module)}
        keys = [message for name, message in classes.items() if name.endswith("Key")]
        for segment in directory.rglob(f"{topic}-*/*.log"):
            for batch in ottla.read_batches(segment.read_bytes()):
                for record in batch.records() if not batch.is_control else ():
                    assert record.key is not None
                    key = read_key(record.key, keys)
                    assert key is not None
                    assert key_bytes(key) == record.key
                    name = schema(type(key)).name.removesuffix("Key")
                    rewrite(record.value, classes[f"{name}Value"])
                    counts[name] += 1
    return counts


def rewrite(data: bytes | None, message: type[Message]) -> None:
    """Read a value of a record, and hold that it is written as it was."""
    if data is not None:
        version = int.from_bytes(data[:2], "big")
        assert value_bytes(read_value(data, message), version) == data


def test_what_a_brokers_coordinators_wrote_is_written_byte_for_byte(demo: Path) -> None:
    assert set(rewritten(demo)) >= {"GroupMetadata", "OffsetCommit", "TransactionLog"}


@pytest.mark.shared
def test_what_coordinators_of_five_releases_wrote_is_written_byte_for_byte(shared: Path) -> None:
    counts = rewritten(shared / "corpus" / "kafka")
    assert counts.total() > 500
    assert {"ConsumerGroupMemberMetadata", "ConsumerGroupCurrentMemberAssignment"} <= set(counts)
