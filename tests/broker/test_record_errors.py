"""Records that a broker refuses: which, why, with which code, and what is counted (KIP-467)."""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leader.test_vectors_of_the_specification import VECTORS, Refused
from ottla.broker.measured import measured
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.records import error_codes
from records.crafting import batch, entry, message, record, wrapper
from support.wire_client import WireClient, new_broker

MESSAGES_OF_AN_ANSWER = 1000


@pytest.fixture
def client() -> WireClient:
    return a_client()


def a_client() -> WireClient:
    """A client of a broker with a compacted topic."""
    client = WireClient(new_broker())
    client.broker.topics.create("t", 1, {"cleanup.policy": "compact"}, client.now_ms)
    return client


def request_of(records: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def produce(client: WireClient, records: bytes, version: int = 9) -> Any:
    answer = client.ask(request_of(records), version)
    return answer.responses[0].partition_responses[0]


def keyed(client: WireClient, *keys: bytes | None, **fields: Any) -> bytes:
    records = [ottla.NewRecord(key, b"v", timestamp=client.now_ms) for key in keys]
    return ottla.build_batch(records, **fields)


def test_corrupt_message_is_retriable_and_an_invalid_record_is_not() -> None:
    retriable = {error.code: error.is_retriable for error in error_codes()}
    assert retriable[ErrorCode.CORRUPT_MESSAGE]
    assert not retriable[ErrorCode.INVALID_RECORD]
    assert not retriable[ErrorCode.INVALID_TIMESTAMP]
    assert not retriable[ErrorCode.INVALID_REQUEST]
    assert (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD) == (2, 87)


def test_corrupt_message_means_a_checksum_a_size_or_a_magic_byte_and_nothing_else() -> None:
    """It has clients send the same again: what stays wrong whatever they do must not get it."""
    corrupt = [
        vector.says
        for vector in VECTORS
        if isinstance(vector.strict, Refused) and vector.strict.code == ErrorCode.CORRUPT_MESSAGE
    ]
    assert corrupt == [
        "twelve zeros more",
        "seventeen bytes more, magic 9",
        "wrong checksum",
        "a batch of 55 bytes",
        "size field 13",
        "size field -1",
        "magic 3",
        "magic -1",
        "wrong inner checksum",
    ]


@given(
    culprits=st.sets(st.integers(0, 30), min_size=1),
    count=st.integers(31, 40),
    codec=st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]),
    version=st.integers(8, 12),
)
def test_every_culprit_of_a_batch_is_listed_wherever_it_stands(
    culprits: set[int], count: int, codec: str, version: int
) -> None:
    client = a_client()
    keys = [None if index in culprits else b"k" for index in range(count)]
    found = produce(client, keyed(client, *keys, compression=codec), version)
    assert found.error_code == ErrorCode.INVALID_RECORD
    assert [(each.batch_index, each.batch_index_error_message) for each in found.record_errors] == [
        (index, f"record {index}: no key, but the topic is compacted") for index in sorted(culprits)
    ]
    noun = "record" if len(culprits) == 1 else "records"
    assert found.error_message.startswith(
        f"{len(culprits)} {noun} refused: record {min(culprits)}:"
    )


def test_of_very_many_culprits_all_are_named_and_the_first_told_why(client: WireClient) -> None:
    count = MESSAGES_OF_AN_ANSWER + 5
    found = produce(client, keyed(client, *[None] * count))
    assert [each.batch_index for each in found.record_errors] == list(range(count))
    told = [each.batch_index_error_message is not None for each in found.record_errors]
    assert told == [True] * MESSAGES_OF_AN_ANSWER + [False] * 5


MESSAGE = b"1 record refused: record 0: no key, but the topic is compacted"
OF_RECORD = b"record 0: no key, but the topic is compacted"


def layout(version: int) -> bytes:
    """The answer to a batch of one record without a key, field by field."""
    is_flexible = version >= 9
    end = b"\0" if is_flexible else b""

    def length(number: int) -> bytes:
        return bytes([number + 1]) if is_flexible else number.to_bytes(4, "big")

    def text(value: bytes) -> bytes:
        size = bytes([len(value) + 1]) if is_flexible else len(value).to_bytes(2, "big")
        return size + value

    minus_1 = b"\xff" * 8
    # One topic of one partition, its index, the code, base offset, log append time.
    parts = [length(1), text(b"t"), length(1), bytes(4)]
    parts += [(87 if version >= 8 else 42).to_bytes(2, "big"), minus_1, minus_1]
    if version >= 5:
        # The log start offset.
        parts.append(bytes(8))
    if version >= 8:
        parts += [length(1), bytes(4), text(OF_RECORD), end, text(MESSAGE)]
    # The ends of the partition and of the topic, the throttle time, the end of the answer.
    return b"".join([*parts, end, end, bytes(4), end])


@pytest.mark.parametrize("version", range(3, 13))
def test_the_layout_of_an_answer_in_every_version(client: WireClient, version: int) -> None:
    pending = client.send(request_of(keyed(client, None)), version)
    (frame,) = pending.frames
    assert frame is not None
    header = 5 if version >= 9 else 4
    assert frame[header:] == layout(version)


def counted(client: WireClient, name: str) -> dict[str, float]:
    """A meter by the names of both groups."""
    return {
        family.name: family.samples[0].value
        for family in measured(client.broker)
        if family.name.endswith(f"_{name}_total")
    }


def damaged(records: bytes) -> bytes:
    return records[:-1] + bytes([records[-1] ^ 1])


def test_refused_records_are_counted_by_their_reason(client: WireClient) -> None:
    now_ms = client.now_ms
    good = keyed(client, b"k")
    produce(client, keyed(client, None, b"k", None))
    produce(client, damaged(good))
    produce(client, damaged(good))
    # One record that spans six offsets, and a producer id without a sequence.
    produce(client, batch(record(), last_offset_delta=5, max_timestamp=now_ms))
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": -1}
    produce(client, batch(record(key=b"k"), max_timestamp=now_ms, **producer))
    # Only the broker's own coordinators may still write wrappers.
    foreign = wrapper(0, "gzip", entry(0, message(1, timestamp=now_ms)), offset=0)
    partition = client.broker.image.partition("t", 0)
    assert partition is not None
    client.broker.plane.append(partition.handle, foreign, now_ms=now_ms)
    expected = {
        "nokeycompactedtopicrecords": 2,
        "invalidmessagecrcrecords": 2,
        "invalidmagicnumberrecords": 1,
        "invalidoffsetorsequencerecords": 2,
        "nonincreasingoffsetrecords": 1,
    }
    for name, count in expected.items():
        assert counted(client, name) == {
            f"kafka_server_brokertopicmetrics_{name}_total": count,
            f"kafka_server_brokertopicstats_{name}_total": count,
        }
    # What is right is counted nowhere among them.
    produce(client, good)
    assert {name: max(counted(client, name).values()) for name in expected} == expected
