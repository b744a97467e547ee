"""Groups over the wire: every version of every API, and what differs between versions."""

from typing import Any

import pytest
from ottla.broker.api import APIS
from ottla.broker.faults import Fault, Names
from ottla.protocol.api_key import ApiKey
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
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
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.wire_client import WireClient, new_broker


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic]), 7)
    return client


def versions(key: int) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


def topic_id(client: WireClient) -> bytes:
    return client.broker.image.topics["t"].topic_id


def join(client: WireClient, version: int = 9, member_id: str = "") -> Any:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    if version >= 1:
        request.rebalance_timeout_ms = 10_000
    answer = client.ask(request, version)
    if answer.error_code == 79:
        return join(client, version, answer.member_id)
    return answer


def commit(client: WireClient, version: int, **fields: Any) -> int:
    by_id = version >= 10
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="" if by_id else "t",
                topic_id=topic_id(client) if by_id else bytes(16),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=100 + version, committed_metadata="m"
                    )
                ],
            )
        ],
        **fields,
    )
    code: int = client.ask(request, version).topics[0].partitions[0].error_code
    return code


def fetch(client: WireClient, version: int, **fields: Any) -> Any:
    """The answer about the group, whatever its form."""
    by_id = version >= 10
    if version >= 8:
        asked = OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(
                    name="" if by_id else "t",
                    topic_id=topic_id(client) if by_id else bytes(16),
                    partition_indexes=[0, 1],
                )
            ],
            **fields,
        )
        (group,) = client.ask(OffsetFetchRequest(groups=[asked]), version).groups
        return group
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    return client.ask(OffsetFetchRequest(group_id="g", topics=topics), version)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_comes_and_goes_in_every_version(client: WireClient, version: int) -> None:
    joined = join(client, version)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    synced = client.ask(
        SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id=joined.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"x")],
        ),
        min(version, 5),
    )
    assert (synced.error_code, synced.assignment) == (0, b"x")
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert client.ask(beat, min(version, 4)).error_code == 0
    assert leave(client, joined.member_id, min(version, 5)) == 0
    assert leave(client, joined.member_id, min(version, 5)) == 25


def leave(client: WireClient, member_id: str, version: int) -> int:
    """The error of a member: before version 3 that of the request."""
    if version < 3:
        request = LeaveGroupRequest(group_id="g", member_id=member_id)
        return int(client.ask(request, version).error_code)
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    answer = client.ask(request, version)
    assert answer.error_code == 0
    return int(answer.members[0].error_code)


def test_refused_joins_are_written_in_every_version(client: WireClient) -> None:
    for version in versions(ApiKey.JOIN_GROUP):
        refused = client.ask(JoinGroupRequest(group_id="g"), version)
        assert (refused.error_code, refused.protocol_name) == (26, "")


def test_a_member_that_waits_holds_up_its_connection_alone(client: WireClient) -> None:
    leader = join(client)
    other = WireClient(client.broker)
    waiting = other.send(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        3,
    )
    assert waiting.waits
    assert not waiting.is_answered
    again = join(client, member_id=leader.member_id)
    assert again.generation_id == waiting.answer().generation_id == 2


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_are_committed_in_every_version(client: WireClient, version: int) -> None:
    assert commit(client, version) == 0
    partition = fetch(client, 8).topics[0].partitions[0]
    assert (partition.committed_offset, partition.metadata) == (100 + version, "m")


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_offsets_are_fetched_in_every_version(client: WireClient, version: int) -> None:
    commit(client, 9)
    found = fetch(client, version).topics[0]
    assert [
        (each.committed_offset, each.metadata, each.error_code) for each in found.partitions
    ] == [
        (109, "m", 0),
        (-1, "", 0),
    ]
    assert (found.topic_id == topic_id(client)) if version >= 10 else (found.name == "t")


@pytest.mark.parametrize("version", [*versions(ApiKey.OFFSET_FETCH)][1:])
def test_all_offsets_of_a_group_are_fetched(client: WireClient, version: int) -> None:
    commit(client, 9)
    if version >= 8:
        asked = OffsetFetchRequestGroup(group_id="g", topics=None)
        (found,) = client.ask(OffsetFetchRequest(groups=[asked]), version).groups
    else:
        found = client.ask(OffsetFetchRequest(group_id="g", topics=None), version)
    assert [each.committed_offset for each in found.topics[0].partitions] == [109]


def test_an_error_of_a_group_is_where_its_version_has_it(client: WireClient) -> None:
    client.broker.faults.add(Fault(APIS[ApiKey.OFFSET_FETCH], error=16, names=Names(group="g")))
    oldest = fetch(client, 1)
    assert [each.error_code for each in oldest.topics[0].partitions] == [16, 16]
    for version in range(2, 8):
        answer = fetch(client, version)
        assert (answer.error_code, answer.topics) == (16, [])
    group = fetch(client, 8)
    assert (group.error_code, group.topics) == (16, [])


def test_a_topic_id_that_nobody_has_is_an_error_of_its_partitions(client: WireClient) -> None:
    topics = [OffsetFetchRequestTopics(topic_id=b"x" * 16, partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id="g", topics=topics)
    (group,) = client.ask(OffsetFetchRequest(groups=[asked]), 10).groups
    assert [each.error_code for each in group.topics[0].partitions] == [100]


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_this_broker_coordinates_every_group_and_transaction(
    client: WireClient, version: int
) -> None:
    for key_type, topic in ((0, "__consumer_offsets"), (1, "__transaction_state")):
        if version == 0 and key_type == 1:
            continue
        request = FindCoordinatorRequest(key_type=key_type)
        if version >= 4:
            request.coordinator_keys = ["a", "b"]
        else:
            request.key = "a"
        answer = client.ask(request, version)
        found = answer.coordinators if version >= 4 else [answer]
        assert {(each.node_id, each.host, each.port) for each in found} == {(1, "127.0.0.1", 9092)}
        assert topic in client.broker.image.topics


def test_a_coordinator_of_an_unknown_kind_is_an_invalid_request(client: WireClient) -> None:
    answer = client.ask(FindCoordinatorRequest(key="a", key_type=2), 3)
    assert (answer.error_code, answer.node_id) == (42, -1)
    many = client.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=9), 6)
    assert [each.error_code for each in many.coordinators] == [42, 42]


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_groups_are_described_in_every_version(client: WireClient, version: int) -> None:
    member = join(client)
    found, missing = client.ask(DescribeGroupsRequest(groups=["g", "none"]), version).groups
    assert (found.error_code, found.group_state) == (0, "CompletingRebalance")
    assert [each.member_id for each in found.members] == [member.member_id]
    assert missing.group_state == "Dead"
    assert missing.error_code == (69 if version >= 6 else 0)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_groups_are_listed_in_every_version(client: WireClient, version: int) -> None:
    commit(client, 9)
    (listed,) = client.ask(ListGroupsRequest(), version).groups
    assert listed.group_id == "g"
    assert listed.group_state == ("Empty" if version >= 4 else "")
    assert listed.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted_in_every_version(client: WireClient, version: int) -> None:
    commit(client, 9)
    answer = client.ask(DeleteGroupsRequest(groups_names=["g", "none", "g"]), version)
    assert [(each.group_id, each.error_code) for each in answer.results] == [("g", 0), ("none", 69)]


def test_offsets_are_deleted(client: WireClient) -> None:
    commit(client, 9)
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    answer = client.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    assert fetch(client, 8).topics[0].partitions[0].committed_offset == -1


def begin_transaction(client: WireClient) -> tuple[int, int]:
    """The producer id and epoch of transactional id `tx`."""
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    answer = client.ask(request, 4)
    return answer.producer_id, answer.producer_epoch


def commit_in_transaction(client: WireClient, version: int, producer: tuple[int, int]) -> int:
    by_id = version >= 6
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            TxnOffsetCommitRequestTopic(
                name="" if by_id else "t",
                topic_id=topic_id(client) if by_id else bytes(16),
                partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)],
            )
        ],
    )
    return int(client.ask(request, version).topics[0].partitions[0].error_code)


def stable(client: WireClient) -> tuple[int, int]:
    """The committed offset that no transaction is about to change, and its error."""
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(group_id="g", topics=topics, require_stable=True)
    partition = client.ask(request, 7).topics[0].partitions[0]
    return partition.committed_offset, partition.error_code


@pytest.mark.parametrize("version", versions(ApiKey.TXN_OFFSET_COMMIT))
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_a_transaction_count_when_it_is_committed(
    client: WireClient, version: int, committed: bool
) -> None:
    producer_id, producer_epoch = producer = begin_transaction(client)
    if version < 5:
        # From then on the commit itself adds the group to the transaction.
        added = AddOffsetsToTxnRequest(
            transactional_id="tx",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            group_id="g",
        )
        assert client.ask(added, 3).error_code == 0
    assert commit_in_transaction(client, version, producer) == 0
    assert stable(client) == (-1, 88)
    end = EndTxnRequest(
        transactional_id="tx",
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=committed,
    )
    assert client.ask(end, 5 if version >= 5 else 3).error_code == 0
    assert stable(client) == (5 if committed else -1, 0)
    del client.broker.groups
    assert stable(client) == (5 if committed else -1, 0)


def test_offsets_outside_of_a_transaction_are_refused(client: WireClient) -> None:
    producer = begin_transaction(client)
    # The group was not added to it.
    assert commit_in_transaction(client, 3, producer) == 48
    assert commit_in_transaction(client, 4, producer) == 120
    assert commit_in_transaction(client, 5, (producer[0], producer[1] + 1)) != 0
    assert stable(client) == (-1, 0)


@pytest.mark.parametrize("version", [0, 1])
def test_consumer_groups_are_described_with_names_of_topics(
    client: WireClient, version: int
) -> None:
    joined = client.ask(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        ),
        version,
    )
    assert (joined.error_code, joined.member_epoch) == (0, 1)
    request = ConsumerGroupDescribeRequest(group_ids=["g", "none"])
    found, missing = client.ask(request, version).groups
    assert (found.group_state, found.group_epoch, found.assignor_name) == ("Stable", 1, "uniform")
    (member,) = found.members
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert member.member_type == (1 if version == 1 else -1)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, each.partitions) for each in assignment.topic_partitions] == [
            ("t", [0, 1])
        ]
    assert (missing.error_code, missing.error_message) == (69, "Group none is not found.")


def test_a_coordinator_on_the_same_log_knows_what_the_one_before_knew(client: WireClient) -> None:
    commit(client, 9)
    joined = join(client)
    client.ask(SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id), 5)
    before = client.broker.groups.describe("g")
    del client.broker.groups
    assert client.broker.groups.describe("g") == before
    assert client.broker.groups.commits.fetch("g", "t", [0], require_stable=False)[0].offset == 109


OTHERS = {"find_coordinator", "add_offsets_to_txn"}
GROUP_APIS = [
    row.name for row in APIS.values() if "group" in row.selectors and row.name not in OTHERS
]


@pytest.mark.parametrize("name", GROUP_APIS)
def test_a_fault_of_a_group_is_no_work_done(client: WireClient, name: str) -> None:
    api = next(row for row in APIS.values() if row.name == name)
    fault = client.broker.faults.add(Fault(api, error=14, names=Names(group="g")))
    requests: dict[str, Any] = {
        "join_group": JoinGroupRequest(group_id="g"),
        "sync_group": SyncGroupRequest(group_id="g"),
        "heartbeat": HeartbeatRequest(group_id="g"),
        "leave_group": LeaveGroupRequest(group_id="g"),
        "describe_groups": DescribeGroupsRequest(groups=["g"]),
        "delete_groups": DeleteGroupsRequest(groups_names=["g"]),
        "consumer_group_heartbeat": ConsumerGroupHeartbeatRequest(group_id="g"),
        "consumer_group_describe": ConsumerGroupDescribeRequest(group_ids=["g"]),
        "offset_delete": OffsetDeleteRequest(group_id="g"),
    }
    if name == "offset_commit":
        assert commit(client, 9) == 14
    elif name == "offset_fetch":
        assert fetch(client, 8).error_code == 14
    elif name == "txn_offset_commit":
        assert client.ask(TxnOffsetCommitRequest(group_id="g"), 5).topics == []
    else:
        answer = client.ask(requests[name], api.max_version)
        assert "error_code=14" in repr(answer)
    assert fault.hits == 1
    assert client.broker.groups.listed() == []
