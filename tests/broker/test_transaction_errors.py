"""What a transactional producer is told, and what is left of its transaction then (KIP-691)."""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.group_world import World
from support.wire_client import WireClient, new_broker

MINUTE_MS = 60_000


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 1, {"cleanup.policy": "compact"}, client.now_ms)
    return client


class Producer:
    """A producer of a transaction, which says what it is told."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=MINUTE_MS)
        started = client.ask(request, 5)
        self.identity = {
            "producer_id": started.producer_id,
            "producer_epoch": started.producer_epoch,
        }

    def batch(self, sequence: int, key: bytes | None = b"k") -> bytes:
        record = ottla.NewRecord(key, b"v", timestamp=self.client.now_ms)
        return ottla.build_batch(
            [record], base_sequence=sequence, is_transactional=True, **self.identity
        )

    def produce(self, records: bytes, version: int = 12) -> Any:
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="orders", partition_data=[data])],
        )
        answer = self.client.ask(request, version)
        return answer.responses[0].partition_responses[0]

    def end(self, version: int = 4, *, commit: bool) -> int:
        request = EndTxnRequest(transactional_id="t", committed=commit, **self.identity)
        answer = self.client.ask(request, version)
        code: int = answer.error_code
        return code

    def offsets(self) -> tuple[int, int]:
        """The last stable offset and the log end offset."""
        partition = self.client.broker.image.partition("orders", 0)
        assert partition is not None
        _, last_stable_offset, _, log_end_offset = self.client.broker.plane.offsets(
            partition.handle
        )
        return last_stable_offset, log_end_offset


def damaged(records: bytes) -> bytes:
    return records[:-1] + bytes([records[-1] ^ 1])


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_refusal_of_records_leaves_the_transaction_as_it_was(
    client: WireClient, *, is_begun: bool
) -> None:
    producer = Producer(client)
    first = int(is_begun)
    if is_begun:
        assert producer.produce(producer.batch(0)).error_code == 0
    before = producer.offsets()
    refused = producer.produce(producer.batch(first, key=None))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in refused.record_errors] == [0]
    assert producer.produce(damaged(producer.batch(first))).error_code == ErrorCode.CORRUPT_MESSAGE
    assert producer.offsets() == before
    # Neither took a sequence: the record that is right follows, and the transaction commits.
    assert producer.produce(producer.batch(first)).error_code == 0
    assert producer.offsets() == (0, first + 1)
    assert producer.end(commit=True) == 0
    assert producer.offsets() == (first + 2, first + 2)


def test_a_transaction_whose_records_were_refused_can_be_aborted(client: WireClient) -> None:
    producer = Producer(client)
    producer.produce(producer.batch(0, key=None))
    assert producer.end(commit=False) == 0
    # Its partition had joined: the marker says so.
    assert producer.offsets() == (1, 1)


@pytest.mark.parametrize("version", range(5))
def test_an_abort_after_a_commit_is_refused_and_the_commit_again_succeeds(
    client: WireClient, version: int
) -> None:
    """Who has not heard of the answer to a commit must not abort: it may be done, and it is."""
    producer = Producer(client)
    producer.produce(producer.batch(0))
    assert producer.end(version, commit=True) == 0
    assert producer.end(version, commit=False) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(version, commit=True) == 0
    assert producer.offsets() == (2, 2)


def test_offsets_of_a_member_whose_place_another_has_taken_are_fenced() -> None:
    world = World()
    (before,) = world.stable(1, instance="i", version=5)
    after = world.join(instance="i", version=5).value

    def commit(member_id: str) -> int:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=9,
            producer_epoch=0,
            generation_id_or_member_epoch=after.generation_id,
            member_id=member_id,
            group_instance_id="i",
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        answer = world.groups.commits.commit_transactional(request, world.now_ms)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    assert commit(before.member_id) == ErrorCode.FENCED_INSTANCE_ID
    assert commit(after.member_id) == ErrorCode.NONE
