"""Valid requests that no client sends: an answer of the protocol, and no fault."""

import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.wire_client import WireClient, new_broker


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 2, {}, client.now_ms)
    return client


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "odd",
    [MetadataRequestTopic(name=None), MetadataRequestTopic(name="orders", topic_id=b"\1" * 16)],
)
def test_topics_without_a_name_or_by_id_are_refused_before_version_12_of_metadata(
    client: WireClient, version: int, odd: MetadataRequestTopic
) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders"), odd])
    answer = client.ask(request, version)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("orders", ErrorCode.INVALID_REQUEST),
        (odd.name or "", ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize("version", range(6))
def test_a_commit_in_a_transaction_with_an_impossible_epoch_is_fenced(
    client: WireClient, version: int
) -> None:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=7,
        producer_epoch=-128,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    (topic,) = client.ask(request, version).topics
    assert [p.error_code for p in topic.partitions] == [ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_commit_that_is_to_be_kept_longer_than_time_lasts_is_kept(
    client: WireClient, version: int
) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id="g",
        retention_time_ms=2**63 - 1,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    (topic,) = client.ask(request, version).topics
    assert [p.error_code for p in topic.partitions] == [ErrorCode.NONE]
