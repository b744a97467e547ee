import sys
import tracemalloc
from random import Random
from types import FrameType
from typing import Any

import pytest
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import Message, schema
from support.messages import any_message, messages_of, modules


def refusal(message: type[Message], version: int, frame: bytes) -> MalformedFrameError:
    with pytest.raises(MalformedFrameError) as caught:
        decode(message, version)(frame, 0)
    assert 0 <= caught.value.position <= len(frame)
    return caught.value


def stop(message: type[Message], version: int, frame: bytes) -> int:
    """Where a message ends, or what is wrong with it begins."""
    try:
        return decode(message, version)(frame, 0)[1]
    except MalformedFrameError as error:
        return error.position


@pytest.mark.parametrize("name", modules())
def test_a_message_cut_anywhere_is_malformed(name: str) -> None:
    random = Random(name)
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            whole = any_message(message, version, random, longest=9)
            frame = b"".join(encode(message, version)(whole))
            for size in range(len(frame)):
                refusal(message, version, frame[:size])


@pytest.mark.parametrize("name", modules())
def test_a_changed_byte_is_read_or_refused_with_a_position(name: str) -> None:
    random = Random(name)
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            whole = any_message(message, version, random, longest=9)
            frame = bytearray(b"".join(encode(message, version)(whole)))
            for _ in range(min(len(frame), 50)):
                position = random.randrange(len(frame))
                byte, frame[position] = frame[position], random.choice((0, 1, 127, 128, 255))
                assert 0 <= stop(message, version, bytes(frame)) <= len(frame)
                frame[position] = byte


@pytest.mark.parametrize(
    ("message", "version", "frame", "position", "what"),
    [
        (HeartbeatRequest, 0, "ffff", 2, "group_id is null, which it cannot be"),
        (HeartbeatRequest, 4, "00", 1, "group_id is null, which it cannot be"),
        (MetadataRequest, 0, "ffffffff", 4, "topics is null, which it cannot be"),
        (ProduceRequest, 9, "00 0001 00000000 00", 8, "topic_data is null, which it cannot be"),
        (HeartbeatRequest, 0, "0005 61", 2, "group_id takes 5 bytes at least, of which 1 are left"),
        (HeartbeatRequest, 4, "06 61", 1, "group_id takes 5 bytes at least, of which 1 are left"),
        (HeartbeatRequest, 0, "0002 c328", 2, "group_id is not UTF-8"),
        (HeartbeatRequest, 0, "0001 61 00", 3, "the frame ends before the end of generation_id"),
        (HeartbeatRequest, 4, "8080808080", 5, "a varint of more than 32 bits"),
        (HeartbeatRequest, 4, "ffffffff7f", 5, "a varint of more than 32 bits"),
        (
            MetadataRequest,
            1,
            "7fffffff 0000 0000",
            4,
            "topics takes 4294967294 bytes at least, of which 4 are left",
        ),
        (
            DeleteTopicsRequest,
            1,
            "00000003 0000 0000",
            4,
            "topic_names takes 6 bytes at least, of which 4 are left",
        ),
    ],
)
def test_a_malformed_frame_is_refused_by_name_and_place(
    message: type[Message], version: int, frame: str, position: int, what: str
) -> None:
    error = refusal(message, version, bytes.fromhex(frame))
    assert (error.position, error.what) == (position, what)


# ApiVersions 3 of software a, version b, with what stands behind them.
@pytest.mark.parametrize(
    ("tags", "position", "what"),
    [
        ("01", 5, "the frame ends before the end of tagged fields"),
        ("01 05", 5, "the frame ends before the end of tagged fields"),
        ("01 05 02 00", 5, "tag 5 of 2 bytes, of which 1 are left"),
        ("02 05 00 05 00", 7, "tag 5 behind tag 5"),
        ("02 05 00 04 00", 7, "tag 4 behind tag 5"),
        ("ffffffff0f 00 00", 11, "the frame ends before the end of tagged fields"),
    ],
)
def test_unknown_tagged_fields_that_are_cut_or_out_of_order_are_malformed(
    tags: str, position: int, what: str
) -> None:
    error = refusal(ApiVersionsRequest, 3, bytes.fromhex("02 61 02 62" + tags))
    assert error.what == what
    assert error.position <= position


def test_unknown_tagged_fields_are_skipped_by_their_size() -> None:
    frame = bytes.fromhex("02 61 02 62 02 05 03 010203 90 4e 00")
    expected = ApiVersionsRequest(client_software_name="a", client_software_version="b")
    assert decode(ApiVersionsRequest, 3)(frame, 0) == (expected, len(frame))


@pytest.mark.parametrize("size", ["07", "09"])
def test_a_tagged_field_must_be_as_long_as_its_value(size: str) -> None:
    # No error, no APIs, no throttling; tag 1 is an int64.
    frame = bytes.fromhex("0000 01 00000000 01 01" + size + "00" * 10)
    assert "tag 1" in refusal(ApiVersionsResponse, 3, frame).what


def test_a_string_of_flexible_versions_is_no_longer_than_others() -> None:
    longest = HeartbeatRequest(group_id="g" * 32767)
    frame = b"".join(encode(HeartbeatRequest, 4)(longest))
    assert decode(HeartbeatRequest, 4)(frame, 0) == (longest, len(frame))
    longer = bytes.fromhex("818002") + frame[3:4] + frame[3:]
    assert refusal(HeartbeatRequest, 4, longer).what == (
        "a string of 32768 bytes, where 32767 are the most"
    )


def test_a_nullable_struct_is_null_or_there() -> None:
    body = "00000000 0000 00 00 00000001 00001388"
    message, _ = decode(ConsumerGroupHeartbeatResponse, 0)(bytes.fromhex(body + "ff 00"), 0)
    assert message.assignment is None
    message, _ = decode(ConsumerGroupHeartbeatResponse, 0)(bytes.fromhex(body + "01 01 00 00"), 0)
    assert message.assignment is not None
    assert message.assignment.topic_partitions == []


def test_a_count_allocates_nothing_before_its_elements_are_there() -> None:
    decoder = decode(FindCoordinatorRequest, 4)
    frame = b"\0" + bytes.fromhex("ffffffff0f") + bytes(1000)
    tracemalloc.start()
    with pytest.raises(MalformedFrameError):
        decoder(frame, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000


def test_arrays_have_a_million_elements_together_and_no_more() -> None:
    # Topics of an empty name with a thousand partitions each; an element is a topic or a partition.
    topic = b"\0\0" + (1000).to_bytes(4, "big") + bytes(4000)
    for topics, is_refused in ((999, False), (1000, True)):
        frame = b"\0\0" + topics.to_bytes(4, "big") + topic * topics
        if is_refused:
            assert "more than 1000000 elements" in refusal(OffsetFetchRequest, 0, frame).what
        else:
            assert len(decode(OffsetFetchRequest, 0)(frame, 0)[0].topics or ()) == topics


def lines_run(decoder: Any, frame: bytes) -> int:
    """How many lines of compiled code and its helpers a frame takes."""
    lines = 0

    def on_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return on_line

    previous = sys.gettrace()
    sys.settrace(on_line)
    try:
        decoder(frame, 0)
    except MalformedFrameError:
        pass
    finally:
        sys.settrace(previous)
    return lines


@pytest.mark.parametrize("byte", [0, 1, 2, 4, 127, 128, 255])
def test_work_is_bounded_by_the_size_of_a_frame(byte: int) -> None:
    frame = bytes([byte]) * 4_000
    for module in modules().values():
        for message in messages_of(module):
            for version in (schema(message).versions[0], schema(message).versions[-1]):
                assert lines_run(decode(message, version), frame) < 100 + 20 * len(frame)
