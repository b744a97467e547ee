import pickle
from typing import Any

import pytest
from ottla.errors import MalformedFrameError, UnwritableMessageError
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.fetch import FetchRequest, PartitionData
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import BatchIndexAndErrorMessage, ProduceRequest
from ottla.protocol.wire import Message, int16, struct


def test_a_message_has_the_defaults_of_its_fields() -> None:
    message = HeartbeatRequest(group_id="g")
    assert (message.group_id, message.generation_id, message.group_instance_id) == ("g", 0, None)
    assert FetchRequest().max_bytes == 0x7FFFFFFF
    assert PartitionData().current_leader.leader_id == -1
    assert MetadataRequestTopic().topic_id == bytes(16)


def test_defaults_that_can_change_are_not_shared() -> None:
    first, second = PartitionData(), PartitionData()
    first.current_leader.leader_id = 5
    assert second.current_leader.leader_id == -1
    assert MetadataRequest().topics is not MetadataRequest().topics
    frame = b"".join(encode(FetchRequest, 4)(FetchRequest()))
    decoded = [decode(FetchRequest, 4)(frame, 0)[0] for _ in range(2)]
    assert decoded[0].forgotten_topics_data is not decoded[1].forgotten_topics_data
    assert decoded[0].replica_state is not decoded[1].replica_state


def test_messages_of_equal_fields_are_equal() -> None:
    assert HeartbeatRequest(group_id="g") == HeartbeatRequest(group_id="g")
    assert HeartbeatRequest(group_id="g") != HeartbeatRequest(group_id="h")
    assert HeartbeatRequest() != JoinGroupRequest()


def test_a_message_shows_what_is_not_a_default() -> None:
    message = JoinGroupRequest(group_id="g", protocols=[JoinGroupRequestProtocol(name="range")])
    assert repr(message) == (
        "JoinGroupRequest(group_id='g', protocols=[JoinGroupRequestProtocol(name='range')])"
    )


def test_a_message_has_no_other_attributes() -> None:
    message: Any = HeartbeatRequest()
    with pytest.raises(AttributeError):
        message.groupid = "g"
    with pytest.raises(TypeError):
        HeartbeatRequest(groupid="g")  # type: ignore[call-arg]


def test_what_a_version_lacks_is_dropped_where_that_is_harmless() -> None:
    # Before version 7 nobody was told leader epochs.
    partition = MetadataResponsePartition(partition_index=3, leader_epoch=9)
    message = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    frame = b"".join(encode(MetadataResponse, 6)(message))
    decoded, _ = decode(MetadataResponse, 6)(frame, 0)
    assert decoded.topics[0].partitions == [MetadataResponsePartition(partition_index=3)]


@pytest.mark.parametrize(
    ("message", "version", "error"),
    [
        (MetadataRequest(allow_auto_topic_creation=False), 3, "has no allow_auto_topic_creation"),
        (MetadataRequest(topics=None), 0, "topics"),
        (HeartbeatRequest(group_id=None), 4, "group_id"),  # type: ignore[arg-type]
        (HeartbeatRequest(generation_id=2**31), 4, "generation_id"),
        (HeartbeatRequest(group_id="\ud800"), 4, "group_id"),
        (HeartbeatRequest(group_id="g" * 32768), 3, "group_id"),
        (HeartbeatRequest(group_id="g" * 32768), 4, "group_id: 32768 bytes, where 32767 are"),
        (HeartbeatRequest(group_instance_id="i"), 2, "has no group_instance_id"),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"x")]), 12, "topics.topic_id"),
        (ProduceRequest(acks="all"), 3, "acks"),  # type: ignore[arg-type]
        (DeleteTopicsRequest(topic_names=["t", None]), 1, "topic_names"),  # type: ignore[list-item]
    ],
)
def test_what_a_version_cannot_hold_is_refused_by_name(
    message: Message, version: int, error: str
) -> None:
    with pytest.raises(UnwritableMessageError, match=error):
        encode(type(message), version)(message)


@pytest.mark.parametrize(
    ("size", "length"), [(0, "01"), (126, "7f"), (127, "8001"), (128, "8101"), (16_383, "808001")]
)
def test_compact_lengths_take_as_few_bytes_as_they_can(size: int, length: str) -> None:
    frame = b"".join(encode(HeartbeatRequest, 4)(HeartbeatRequest(group_id="g" * size)))
    assert frame.startswith(bytes.fromhex(length) + b"g" * size)
    assert len(frame) == len(length) // 2 + size + 4 + 1 + 1 + 1


@pytest.mark.parametrize("version", [-1, 5])
def test_there_is_no_codec_of_a_version_that_is_not(version: int) -> None:
    for codec in (decode, encode):
        with pytest.raises(ValueError, match=f"has the versions 0 to 4, not {version}"):
            codec(HeartbeatRequest, version)


class Inner(Message, versions="0", flexible="0+"):
    error_code: int = int16("0+", tag=7, private=True, ignorable=True)


class Outer(Message, versions="0", flexible="0+"):
    inner: Inner | None = struct(Inner, "0+", null="0+", default=None)


def test_private_tagged_fields_are_written_and_read_unless_they_are_switched_off() -> None:
    message = BatchIndexAndErrorMessage(batch_index=3, error_code=32)
    assert message.error_code == 32
    outer = Outer(inner=Inner(error_code=32))
    frame = b"".join(encode(Outer, 0)(outer))
    assert frame == bytes.fromhex("01 01 07 02 0020 00")
    assert decode(Outer, 0)(frame, 0) == (outer, len(frame))
    assert decode(Outer, 0, private=False)(frame, 0) == (Outer(inner=Inner()), len(frame))
    assert b"".join(encode(Outer, 0, private=False)(outer)) == bytes.fromhex("01 00 00")


@pytest.mark.parametrize(
    "error", [MalformedFrameError(5, "group_id is null"), UnwritableMessageError("no")]
)
def test_errors_are_pickled_with_what_they_know(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
