"""A request of each API that coordinators answer, in every version, by one short line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import ottla
from ottla.broker.api import APIS
from ottla.broker.broker import error_codes
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.protocol.wire import Message
    from support.wire_client import Pending, WireClient

NO_ID = bytes(16)


class Said(NamedTuple):
    """What a client says of itself.

    Attributes:
        topic_id: of "orders", to which all of it belongs.
        group: which is its own.
        member_id, generation: in that group.
        transactional_id: "t".
        producer_id, producer_epoch: of that.
        sequence: of the batch that it produces.
    """

    topic_id: bytes
    group: str = "g"
    member_id: str = ""
    generation: int = -1
    transactional_id: str = "t"
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = 0


def call(client: WireClient, name: str, version: int, said: Said) -> int:
    """Sends a request; returns the one error code of its answer, 0 for none."""
    return only_error(send(client, name, version, said))


def send(client: WireClient, name: str, version: int, said: Said) -> Pending:
    """Sends a request, which may wait."""
    return client.send(REQUESTS[name](version, said), version)


def only_error(pending: Pending) -> int:
    """Returns the one error code of an answer, 0 for none."""
    codes = error_codes(pending.answer())
    assert len(codes) <= 1, codes
    return codes[0] if codes else 0


def versions(name: str) -> range:
    """Returns the versions in which an API is served."""
    api = next(row for row in APIS.values() if row.name == name)
    return range(api.min_version, api.max_version + 1)


def each_version(*names: str) -> list[tuple[str, int]]:
    """Returns APIs with each of their versions."""
    return [(name, version) for name in names for version in versions(name)]


def _find_group(version: int, said: Said) -> Message:
    if version >= 4:
        return FindCoordinatorRequest(key_type=0, coordinator_keys=[said.group])
    return FindCoordinatorRequest(key=said.group)


def _join_group(version: int, said: Said) -> Message:
    request = JoinGroupRequest(
        group_id=said.group,
        session_timeout_ms=10_000,
        member_id=said.member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    if version >= 1:
        request.rebalance_timeout_ms = 10_000
    return request


def _sync_group(_version: int, said: Said) -> Message:
    assigned = SyncGroupRequestAssignment(member_id=said.member_id, assignment=b"x")
    return SyncGroupRequest(
        group_id=said.group,
        generation_id=said.generation,
        member_id=said.member_id,
        assignments=[assigned],
    )


def _heartbeat(_version: int, said: Said) -> Message:
    return HeartbeatRequest(
        group_id=said.group, generation_id=said.generation, member_id=said.member_id
    )


def _leave_group(version: int, said: Said) -> Message:
    if version >= 3:
        identity = MemberIdentity(member_id=said.member_id)
        return LeaveGroupRequest(group_id=said.group, members=[identity])
    return LeaveGroupRequest(group_id=said.group, member_id=said.member_id)


def _offset_commit(version: int, said: Said) -> Message:
    by_id = version >= 10
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(
        name="" if by_id else "orders",
        topic_id=said.topic_id if by_id else NO_ID,
        partitions=[partition],
    )
    return OffsetCommitRequest(
        group_id=said.group,
        member_id=said.member_id,
        generation_id_or_member_epoch=said.generation,
        topics=[topic],
    )


def _offset_fetch(version: int, said: Said) -> Message:
    if version < 8:
        plain = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
        return OffsetFetchRequest(group_id=said.group, topics=[plain])
    by_id = version >= 10
    topic = OffsetFetchRequestTopics(
        name="" if by_id else "orders",
        topic_id=said.topic_id if by_id else NO_ID,
        partition_indexes=[0],
    )
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=said.group, topics=[topic])])


def _offset_delete(_version: int, said: Said) -> Message:
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="orders", partitions=[partition])
    return OffsetDeleteRequest(group_id=said.group, topics=[topic])


def _consumer_group_heartbeat(_version: int, said: Said) -> Message:
    joins = said.generation <= 0
    return ConsumerGroupHeartbeatRequest(
        group_id=said.group,
        member_id=said.member_id or "me",
        member_epoch=max(said.generation, 0),
        rebalance_timeout_ms=10_000 if joins else -1,
        subscribed_topic_names=["orders"] if joins else None,
        topic_partitions=[] if joins else None,
    )


def _init_producer_id(version: int, said: Said) -> Message:
    request = InitProducerIdRequest(
        transactional_id=said.transactional_id, transaction_timeout_ms=60_000
    )
    if version >= 3:
        request.producer_id, request.producer_epoch = said.producer_id, said.producer_epoch
    return request


def _add_partitions_to_txn(version: int, said: Said) -> Message:
    topics = [AddPartitionsToTxnTopic(name="orders", partitions=[0])]
    if version >= 4:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=said.transactional_id,
            producer_id=said.producer_id,
            producer_epoch=said.producer_epoch,
            topics=topics,
        )
        return AddPartitionsToTxnRequest(transactions=[transaction])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=said.transactional_id,
        v3_and_below_producer_id=said.producer_id,
        v3_and_below_producer_epoch=said.producer_epoch,
        v3_and_below_topics=topics,
    )


def _add_offsets_to_txn(_version: int, said: Said) -> Message:
    return AddOffsetsToTxnRequest(
        transactional_id=said.transactional_id,
        producer_id=said.producer_id,
        producer_epoch=said.producer_epoch,
        group_id=said.group,
    )


def _end_txn(_version: int, said: Said) -> Message:
    return EndTxnRequest(
        transactional_id=said.transactional_id,
        producer_id=said.producer_id,
        producer_epoch=said.producer_epoch,
        committed=True,
    )


def _txn_offset_commit(version: int, said: Said) -> Message:
    by_id = version >= 6
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = TxnOffsetCommitRequestTopic(
        name="" if by_id else "orders",
        topic_id=said.topic_id if by_id else NO_ID,
        partitions=[partition],
    )
    request = TxnOffsetCommitRequest(
        transactional_id=said.transactional_id,
        group_id=said.group,
        producer_id=said.producer_id,
        producer_epoch=said.producer_epoch,
        topics=[topic],
    )
    if version >= 3:
        request.member_id = said.member_id
        request.generation_id_or_member_epoch = said.generation
    return request


def _produce(version: int, said: Said) -> Message:
    by_id = version >= 13
    batch = ottla.build_batch(
        [ottla.NewRecord(b"k", b"v")],
        producer_id=said.producer_id,
        producer_epoch=said.producer_epoch,
        base_sequence=said.sequence,
        is_transactional=True,
    )
    topic = TopicProduceData(
        name="" if by_id else "orders",
        topic_id=said.topic_id if by_id else NO_ID,
        partition_data=[PartitionProduceData(index=0, records=batch)],
    )
    return ProduceRequest(
        transactional_id=said.transactional_id, acks=-1, timeout_ms=1000, topic_data=[topic]
    )


REQUESTS: dict[str, Callable[[int, Said], Message]] = {
    "find_coordinator": _find_group,
    "join_group": _join_group,
    "sync_group": _sync_group,
    "heartbeat": _heartbeat,
    "leave_group": _leave_group,
    "describe_groups": lambda _version, said: DescribeGroupsRequest(groups=[said.group]),
    "delete_groups": lambda _version, said: DeleteGroupsRequest(groups_names=[said.group]),
    "offset_commit": _offset_commit,
    "offset_fetch": _offset_fetch,
    "offset_delete": _offset_delete,
    "consumer_group_heartbeat": _consumer_group_heartbeat,
    "consumer_group_describe": lambda _version, said: ConsumerGroupDescribeRequest(
        group_ids=[said.group]
    ),
    "init_producer_id": _init_producer_id,
    "add_partitions_to_txn": _add_partitions_to_txn,
    "add_offsets_to_txn": _add_offsets_to_txn,
    "end_txn": _end_txn,
    "txn_offset_commit": _txn_offset_commit,
    "describe_transactions": lambda _version, said: DescribeTransactionsRequest(
        transactional_ids=[said.transactional_id]
    ),
    "produce": _produce,
}
"""By the names of APIs."""
