"""The tagged fields of Ottla's own: where they are, and that others pass over them (KIP-232)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    fetch,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)
from ottla.protocol.wire import schema

EPOCH, MAX_EPOCH, EXPECTED_EPOCH, EPOCHS, RECORD_CODE = 12321, 12322, 12323, 12325, 14670
Made = Callable[[Any], Any]


def of_metadata(value: Any) -> Any:
    partition = metadata.MetadataResponsePartition(partition_epoch=value)
    topic = metadata.MetadataResponseTopic(name="t", partitions=[partition])
    return metadata.MetadataResponse(topics=[topic])


def of_fetch(value: Any) -> Any:
    partition = fetch.PartitionData(partition_epoch=value)
    topic = fetch.FetchableTopicResponse(topic="t", partitions=[partition])
    return fetch.FetchResponse(responses=[topic])


def of_fetch_request(value: Any) -> Any:
    partition = fetch.FetchPartition(expected_partition_epoch=value)
    return fetch.FetchRequest(topics=[fetch.FetchTopic(topic="t", partitions=[partition])])


def of_list_offsets(value: Any) -> Any:
    partition = list_offsets.ListOffsetsPartitionResponse(partition_epoch=value)
    topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=[partition])
    return list_offsets.ListOffsetsResponse(topics=[topic])


def of_list_offsets_request(value: Any) -> Any:
    partition = list_offsets.ListOffsetsPartition(expected_partition_epoch=value)
    topic = list_offsets.ListOffsetsTopic(name="t", partitions=[partition])
    return list_offsets.ListOffsetsRequest(topics=[topic])


def of_leader_epoch(value: Any) -> Any:
    partition = offset_for_leader_epoch.EpochEndOffset(partition_epoch=value)
    topic = offset_for_leader_epoch.OffsetForLeaderTopicResult(topic="t", partitions=[partition])
    return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[topic])


def of_leader_epoch_request(value: Any) -> Any:
    partition = offset_for_leader_epoch.OffsetForLeaderPartition(expected_partition_epoch=value)
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic="t", partitions=[partition])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[topic])


def of_commit(value: Any) -> Any:
    partition = offset_commit.OffsetCommitRequestPartition(partition_epoch=value)
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[partition])
    return offset_commit.OffsetCommitRequest(topics=[topic])


def of_transactional_commit(value: Any) -> Any:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_epoch=value)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])
    return txn_offset_commit.TxnOffsetCommitRequest(topics=[topic])


def of_offset_fetch(value: Any) -> Any:
    partition = offset_fetch.OffsetFetchResponsePartitions(partition_epoch=value)
    topic = offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[partition])
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=[topic])
    return offset_fetch.OffsetFetchResponse(groups=[group])


def of_older_offset_fetch(value: Any) -> Any:
    partition = offset_fetch.OffsetFetchResponsePartition(partition_epoch=value)
    topic = offset_fetch.OffsetFetchResponseTopic(name="t", partitions=[partition])
    return offset_fetch.OffsetFetchResponse(topics=[topic])


def of_record(value: Any) -> Any:
    record = produce.BatchIndexAndErrorMessage(error_code=value)
    partition = produce.PartitionProduceResponse(record_errors=[record])
    topic = produce.TopicProduceResponse(name="t", partition_responses=[partition])
    return produce.ProduceResponse(responses=[topic])


def of_new_topic(value: Any) -> Any:
    topic = create_topics.CreatableTopicResult(name="t", partition_epochs=value)
    return create_topics.CreateTopicsResponse(topics=[topic])


def of_new_partitions(value: Any) -> Any:
    result = create_partitions.CreatePartitionsTopicResult(name="t", partition_epochs=value)
    return create_partitions.CreatePartitionsResponse(results=[result])


def of_cluster(value: Any) -> Any:
    return metadata.MetadataResponse(max_partition_epoch=value)


class Row(NamedTuple):
    """A field.

    Attributes:
        made: makes a message with a value of it.
        value, nothing: one that is written, and the one that is left out.
        tag: its number.
        since: the first version that has it.
        payload: the bytes of the value.
    """

    made: Made
    value: Any
    nothing: Any
    tag: int
    since: int
    payload: bytes


FIVE = b"\0\0\0\5"
FIELDS = [
    Row(of_metadata, 5, -1, EPOCH, 9, FIVE),
    Row(of_cluster, 5, -1, MAX_EPOCH, 9, FIVE),
    Row(of_fetch, 5, -1, EPOCH, 12, FIVE),
    Row(of_fetch_request, 5, -1, EXPECTED_EPOCH, 12, FIVE),
    Row(of_list_offsets, 5, -1, EPOCH, 6, FIVE),
    Row(of_list_offsets_request, 5, -1, EXPECTED_EPOCH, 6, FIVE),
    Row(of_leader_epoch, 5, -1, EPOCH, 4, FIVE),
    Row(of_leader_epoch_request, 5, -1, EXPECTED_EPOCH, 4, FIVE),
    Row(of_commit, 5, -1, EPOCH, 8, FIVE),
    Row(of_transactional_commit, 5, -1, EPOCH, 3, FIVE),
    Row(of_older_offset_fetch, 5, -1, EPOCH, 6, FIVE),
    Row(of_offset_fetch, 5, -1, EPOCH, 8, FIVE),
    Row(of_new_topic, [5], [], EPOCHS, 5, b"\2" + FIVE),
    Row(of_new_partitions, [5], [], EPOCHS, 2, b"\2" + FIVE),
    Row(of_record, 5, 0, RECORD_CODE, 9, b"\0\5"),
]


def written(message: Any, version: int) -> bytes:
    return b"".join(encode(type(message), version)(message))


def tagged(tag: int, value: bytes) -> bytes:
    """A tagged field: two bytes of the tag, a byte of the size, the value."""
    return bytes([tag & 0x7F | 0x80, tag >> 7, len(value)]) + value


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.made.__name__)
def test_a_private_field_is_a_tagged_one_and_left_out_where_it_says_nothing(row: Row) -> None:
    made, value, nothing, tag, since, payload = row
    field = tagged(tag, payload)
    declared = schema(type(made(value)))
    last = 7 if made is of_older_offset_fetch else declared.versions[-1]
    for version in range(since, last + 1):
        frame = written(made(value), version)
        assert frame.count(field) == 1
        read, position = decode(type(made(value)), version)(frame, 0)
        assert (written(read, version), position) == (frame, len(frame))
        plain = written(made(nothing), version)
        assert field[:2] not in plain
        # Whoever does not know the field reads past it, and finds what there is without it.
        ignorant = decode(type(made(value)), version, private=False)
        assert ignorant(frame, 0) == (ignorant(plain, 0)[0], len(frame))
    if since - 1 in declared.versions and made is not of_offset_fetch:
        assert field[:2] not in written(made(value), since - 1)
