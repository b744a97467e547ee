from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.wire import schema
from support.messages import any_message, messages_of, modules


@pytest.mark.parametrize("name", modules())
def test_what_is_written_is_read_again_in_every_version(name: str) -> None:
    random = Random(name)
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            for _ in range(5):
                written = any_message(message, version, random)
                frame = b"ahead" + b"".join(encode(message, version)(written))
                assert decode(message, version)(frame + b"behind", 5) == (written, len(frame))


@pytest.mark.parametrize("name", modules())
def test_a_new_message_is_one_of_defaults_in_every_version(name: str) -> None:
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            frame = b"".join(encode(message, version)(message()))
            assert decode(message, version)(frame, 0) == (message(), len(frame))


@given(
    version=st.sampled_from(list(schema(HeartbeatRequest).versions)),
    values=st.fixed_dictionaries(
        {
            "group_id": st.text(max_size=300),
            "generation_id": st.integers(-(2**31), 2**31 - 1),
            "member_id": st.text(max_size=20),
        }
    ),
)
def test_any_text_and_number_is_read_as_it_was_written(
    version: int, values: dict[str, Any]
) -> None:
    message = HeartbeatRequest(**values)
    frame = b"".join(encode(HeartbeatRequest, version)(message))
    assert decode(HeartbeatRequest, version)(frame, 0) == (message, len(frame))


@given(
    sizes=st.lists(st.sampled_from([0, 1, 16_383, 16_384, 50_000]), max_size=6),
    version=st.sampled_from([11, 12, 16]),
)
def test_large_records_are_parts_of_their_own_and_not_copied(
    sizes: list[int], version: int
) -> None:
    records = [bytes([index]) * size for index, size in enumerate(sizes)]
    partitions = [PartitionData(records=data) for data in records]
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    parts = encode(FetchResponse, version)(message)
    large = [data for data in records if len(data) >= 16_384]
    assert [part for part in parts if any(part is data for data in large)] == large
    assert decode(FetchResponse, version)(b"".join(parts), 0)[0] == message
