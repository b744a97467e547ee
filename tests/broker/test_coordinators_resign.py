"""The log of a coordinator is deleted: it resigns, and starts over with what the next log has."""

from typing import Any

import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.coordinator_calls import Said, call, each_version, only_error, send
from support.failing_plane import failing
from support.wire_client import WireClient, new_broker

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
DAY_MS = 86_400_000
OF_GROUPS = (
    "join_group",
    "sync_group",
    "heartbeat",
    "leave_group",
    "describe_groups",
    "delete_groups",
    "offset_commit",
    "offset_fetch",
    "offset_delete",
    "consumer_group_heartbeat",
    "consumer_group_describe",
)
OF_TRANSACTIONS = (
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "describe_transactions",
)


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker(), looks_for_coordinators=False)
    client.broker.topics.create("orders", 2, {"retention.ms": "-1"}, client.now_ms)
    find(client, 0)
    find(client, 1)
    return client


def said(client: WireClient, **fields: Any) -> Said:
    return Said(client.broker.image.topics["orders"].topic_id, **fields)


def find(client: WireClient, key_type: int, key: str = "g") -> int:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    code: int = client.ask(request, 4).coordinators[0].error_code
    return code


def delete(client: WireClient, *names: str) -> None:
    topics = [DeleteTopicState(name=name) for name in names]
    answer = client.ask(DeleteTopicsRequest(topics=topics), 6)
    assert [each.error_code for each in answer.responses] == [0] * len(names)


def end_offsets(client: WireClient, topic: str) -> dict[int, int]:
    """The log end offsets of the partitions that hold anything."""
    plane = client.broker.plane
    partitions = client.broker.image.topics[topic].partitions
    found = {each.partition_index: plane.offsets(each.handle)[3] for each in partitions}
    return {index: offset for index, offset in found.items() if offset}


def member(client: WireClient, group: str = "g") -> Said:
    """A member of a stable group of one."""
    me = said(client, group=group)
    first = send(client, "join_group", 4, me).answer()
    me = me._replace(member_id=first.member_id)
    joined = send(client, "join_group", 4, me).answer()
    me = me._replace(generation=joined.generation_id)
    assert call(client, "sync_group", 3, me) == 0
    return me


def producer(client: WireClient, **fields: Any) -> Said:
    """A producer that has just begun."""
    me = said(client, **fields)
    answer = send(client, "init_producer_id", 4, me).answer()
    assert answer.error_code == 0
    return me._replace(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)


def stable(client: WireClient) -> tuple[int, int]:
    partition = client.broker.image.partition("orders", 0)
    assert partition is not None
    _, last_stable_offset, _, log_end_offset = client.broker.plane.offsets(partition.handle)
    return last_stable_offset, log_end_offset


@pytest.mark.parametrize(("name", "version"), each_version(*OF_GROUPS))
def test_without_its_log_nobody_coordinates_a_group(
    client: WireClient, name: str, version: int
) -> None:
    me = member(client)
    call(client, "offset_commit", 9, me)
    delete(client, OFFSETS)
    assert call(client, name, version, me) == ErrorCode.NOT_COORDINATOR
    assert OFFSETS not in client.broker.image.topics


@pytest.mark.parametrize(("name", "version"), each_version(*OF_TRANSACTIONS))
def test_without_its_log_nobody_coordinates_a_transaction(
    client: WireClient, name: str, version: int
) -> None:
    me = producer(client)
    call(client, "add_partitions_to_txn", 3, me)
    delete(client, TRANSACTIONS)
    assert call(client, name, version, me) == ErrorCode.NOT_COORDINATOR
    assert TRANSACTIONS not in client.broker.image.topics


@pytest.mark.parametrize(("name", "version"), each_version(*OF_GROUPS, *OF_TRANSACTIONS))
def test_before_anybody_has_looked_for_it_there_is_no_coordinator(name: str, version: int) -> None:
    client = WireClient(new_broker(), looks_for_coordinators=False)
    client.broker.topics.create("orders", 2, {}, client.now_ms)
    assert call(client, name, version, said(client)) == ErrorCode.NOT_COORDINATOR
    assert {*client.broker.image.topics} == {"orders"}


def test_nothing_is_listed_of_what_is_forgotten(client: WireClient) -> None:
    member(client)
    producer(client)
    delete(client, OFFSETS, TRANSACTIONS)
    assert client.ask(ListGroupsRequest(), 4).groups == []
    assert client.ask(ListTransactionsRequest(), 1).transaction_states == []


@pytest.mark.parametrize("version", range(7))
def test_offsets_of_a_transaction_have_no_log(client: WireClient, version: int) -> None:
    me = producer(client)
    call(client, "add_offsets_to_txn", 3, me)
    delete(client, OFFSETS)
    found = call(client, "txn_offset_commit", version, me)
    assert found == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert OFFSETS not in client.broker.image.topics


@pytest.mark.parametrize("version", range(3, 14))
def test_a_transactional_batch_waits_for_a_coordinator(client: WireClient, version: int) -> None:
    me = producer(client)
    call(client, "add_partitions_to_txn", 3, me)
    delete(client, TRANSACTIONS)
    assert call(client, "produce", version, me) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert stable(client) == (0, 0)


def test_a_member_that_waits_for_the_others_is_sent_away(client: WireClient) -> None:
    me = member(client)
    other = WireClient(client.broker, looks_for_coordinators=False)
    joining = send(other, "join_group", 3, said(client))
    assert not joining.is_answered
    delete(client, OFFSETS)
    answer = joining.answer()
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NOT_COORDINATOR, -1)
    assert answer.member_id
    assert call(client, "heartbeat", 4, me) == ErrorCode.NOT_COORDINATOR


def test_a_member_that_waits_for_its_assignment_is_sent_away(client: WireClient) -> None:
    first, second = (WireClient(client.broker, looks_for_coordinators=False) for _ in range(2))
    one = send(first, "join_group", 3, said(client)).answer()
    joining = send(second, "join_group", 3, said(client))
    again = send(first, "join_group", 3, said(client, member_id=one.member_id))
    two = joining.answer()
    assert again.answer().generation_id == two.generation_id == 2
    follower = said(client, member_id=two.member_id, generation=2)
    syncing = send(second, "sync_group", 3, follower)
    assert not syncing.is_answered
    delete(client, OFFSETS)
    assert only_error(syncing) == ErrorCode.NOT_COORDINATOR


def test_whoever_looks_for_the_coordinator_finds_it_with_an_empty_log(client: WireClient) -> None:
    me = member(client)
    call(client, "offset_commit", 9, me)
    old = producer(client)
    delete(client, OFFSETS, TRANSACTIONS)
    assert (find(client, 0), find(client, 1, "t")) == (0, 0)
    assert call(client, "heartbeat", 4, me) == ErrorCode.UNKNOWN_MEMBER_ID
    assert call(client, "end_txn", 4, old) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert committed(client) == -1
    again = member(client)
    assert again.generation == 1
    assert call(client, "offset_commit", 9, again) == 0
    assert committed(client) == 7
    assert producer(client).producer_id != old.producer_id


def committed(client: WireClient) -> int:
    topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    answer = client.ask(OffsetFetchRequest(group_id="g", topics=[topic]), 7)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def test_a_log_may_come_back_with_more_or_fewer_partitions(client: WireClient) -> None:
    for count in (3, 70, 1):
        me = member(client)
        assert call(client, "offset_commit", 9, me) == 0
        ongoing = producer(client)
        assert call(client, "add_offsets_to_txn", 3, ongoing) == 0
        delete(client, OFFSETS, TRANSACTIONS)
        client.broker.config = client.broker.config.with_texts(
            {
                "offsets.topic.num.partitions": str(count),
                "transaction.state.log.num.partitions": str(count),
            }
        )
        assert (find(client, 0), find(client, 1, "t")) == (0, 0)
        topics = client.broker.image.topics
        assert len(topics[OFFSETS].partitions) == len(topics[TRANSACTIONS].partitions) == count
    me = member(client)
    assert call(client, "offset_commit", 9, me) == 0
    ongoing = producer(client)
    assert call(client, "txn_offset_commit", 5, ongoing) == 0
    assert call(client, "end_txn", 4, ongoing) == 0
    assert {*end_offsets(client, OFFSETS)} == {*end_offsets(client, TRANSACTIONS)} == {0}


def test_a_log_that_grows_leaves_groups_where_they_are(client: WireClient) -> None:
    me = member(client)
    before = end_offsets(client, OFFSETS)
    topic = client.broker.image.topics[OFFSETS]
    client.broker.topics.grow(topic, 51, client.now_ms)
    assert find(client, 0) == 0
    assert call(client, "offset_commit", 9, me) == 0
    assert end_offsets(client, OFFSETS).keys() == before.keys()


def test_after_it_resigned_a_coordinator_does_nothing_more(client: WireClient) -> None:
    member(client)
    send(WireClient(client.broker, looks_for_coordinators=False), "join_group", 3, said(client))
    send(client, "consumer_group_heartbeat", 1, said(client, group="new"))
    call(client, "offset_commit", 9, said(client, group="simple"))
    ongoing = producer(client)
    call(client, "produce", 12, ongoing)
    call(client, "add_offsets_to_txn", 3, ongoing)
    call(client, "txn_offset_commit", 4, ongoing)
    # A partition of this one cannot take its marker now, and is asked again and again.
    ended = producer(client, transactional_id="ended")
    call(client, "add_partitions_to_txn", 3, ended)
    plane = failing(client.broker)
    plane.marker_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert call(client, "end_txn", 4, ended) == 0
    plane.marker_error = 0
    before = stable(client)
    delete(client, OFFSETS, TRANSACTIONS)
    assert (find(client, 0), find(client, 1)) == (0, 0)
    client.advance(30 * DAY_MS)
    assert end_offsets(client, OFFSETS) == end_offsets(client, TRANSACTIONS) == {}
    assert stable(client) == before


def test_no_timer_is_left_of_what_is_forgotten(client: WireClient) -> None:
    before = len(client.broker.waiting)
    member(client)
    send(WireClient(client.broker, looks_for_coordinators=False), "join_group", 3, said(client))
    send(client, "consumer_group_heartbeat", 1, said(client, group="new"))
    call(client, "produce", 12, producer(client))
    delete(client, OFFSETS, TRANSACTIONS)
    # The coordinator of groups looks for what has expired from time to time, and finds nothing.
    assert len(client.broker.waiting) == before


def test_a_transaction_whose_coordinator_is_gone_hangs_until_a_marker_is_written(
    client: WireClient,
) -> None:
    old = producer(client)
    assert call(client, "produce", 12, old) == 0
    delete(client, TRANSACTIONS)
    find(client, 1, "t")
    client.advance(DAY_MS)
    assert stable(client) == (0, 1)
    # Its producer starts anew under another id, which ends nothing of the old one.
    again = producer(client)
    assert call(client, "produce", 12, again) == 0
    assert call(client, "end_txn", 4, again) == 0
    assert stable(client) == (0, 3)
    marker = WritableTxnMarker(
        producer_id=old.producer_id,
        producer_epoch=old.producer_epoch,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
    )
    client.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert stable(client) == (4, 4)


def test_the_end_of_a_transaction_decides_nothing_of_offsets_that_are_gone(
    client: WireClient,
) -> None:
    me = producer(client)
    assert call(client, "txn_offset_commit", 5, me) == 0
    delete(client, OFFSETS)
    assert call(client, "end_txn", 4, me) == 0
    find(client, 0)
    assert committed(client) == -1


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS])
def test_what_cannot_be_written_is_coordinated_no_longer(client: WireClient, topic: str) -> None:
    me, ongoing = member(client), producer(client)
    plane = failing(client.broker)
    plane.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    reads, writes, mine = {
        OFFSETS: ("heartbeat", "offset_commit", me),
        TRANSACTIONS: ("describe_transactions", "add_offsets_to_txn", ongoing),
    }[topic]
    latest = {"heartbeat": 4, "offset_commit": 9}
    assert call(client, reads, latest.get(reads, 0), mine) == 0
    assert call(client, writes, latest.get(writes, 3), mine) == ErrorCode.NOT_COORDINATOR
    assert call(client, reads, latest.get(reads, 0), mine) == ErrorCode.NOT_COORDINATOR
    # What cannot be read either has no coordinator; what can has one again, which knows the log.
    plane.append_error, plane.read_error = 0, ErrorCode.KAFKA_STORAGE_ERROR
    key_type, key = (0, "g") if topic == OFFSETS else (1, "t")
    assert find(client, key_type, key) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert call(client, reads, latest.get(reads, 0), mine) == ErrorCode.NOT_COORDINATOR
    plane.read_error = 0
    assert find(client, key_type, key) == 0
    assert call(client, reads, latest.get(reads, 0), mine) == 0
    assert call(client, writes, latest.get(writes, 3), mine) == 0


def test_whoever_may_not_ask_for_a_coordinator_makes_no_topic() -> None:
    config = {
        "authorizer.class.name": "StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
    }
    client = WireClient(new_broker(config), looks_for_coordinators=False)
    assert find(client, 0) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert find(client, 1) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert client.broker.image.topics == {}
