"""Committed offsets: who may commit, what is refused, transactions, expiry, deletion."""

import pytest
from ottla.broker.groups.commits import Fetched
from ottla.broker.partitioner import partition_of
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
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.consumer_world import Client, heartbeat
from support.group_world import World, topic_id

MINUTE_MS = 60_000
SUBSCRIBED_TO_T = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"


def commit_in_transaction(
    world: World,
    offset: int,
    *,
    producer_id: int = 9,
    group: str = "g",
    member_id: str = "",
    generation_id: int = -1,
) -> int:
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group,
        producer_id=producer_id,
        producer_epoch=0,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                ],
            )
        ],
    )
    response = world.groups.commits.commit_transactional(request, world.now_ms)
    return response.topics[0].partitions[0].error_code


def delete(world: World, partition: int = 0, group: str = "g") -> tuple[int, int | None]:
    """The error code of the request, and that of the partition."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name="t", partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
            )
        ],
    )
    response = world.groups.commits.delete(request, world.now_ms)
    if not response.topics:
        return response.error_code, None
    return response.error_code, response.topics[0].partitions[0].error_code


def stable_fetch(world: World) -> Fetched:
    return world.groups.commits.fetch("g", "t", [0], require_stable=True)[0]


def test_a_simple_consumer_commits_to_a_group_that_nobody_is_in() -> None:
    world = World()
    assert world.commit(7) == 0
    assert world.committed() == 7
    assert world.state() == "Empty"


def test_nothing_committed_is_offset_minus_1_and_no_error() -> None:
    world = World()
    assert world.groups.commits.fetch("g", "t", [3], require_stable=True) == [
        Fetched(3, -1, -1, "", 0)
    ]


def test_a_simple_consumer_may_not_commit_beside_members() -> None:
    world = World()
    world.stable(1)
    assert world.commit(7) == 25
    assert world.committed() == -1


def test_a_member_commits_in_its_generation_alone() -> None:
    world = World()
    (leader,) = world.stable(1)
    codes = [world.commit(7, member_id=leader.member_id, generation_id=each) for each in (0, 1, 2)]
    assert codes == [22, 0, 22]
    assert world.commit(7, member_id="stranger", generation_id=1) == 25


def test_a_member_may_commit_while_others_join_and_not_while_its_leader_assigns() -> None:
    world = World()
    (leader,) = world.stable(1)
    newcomer = world.join()
    assert world.commit(7, member_id=leader.member_id, generation_id=1) == 0
    world.join(leader.member_id)
    assert world.commit(8, member_id=newcomer.value.member_id, generation_id=2) == 27


def test_a_commit_is_a_sign_of_life() -> None:
    world = World()
    (leader,) = world.stable(1, session_ms=10_000)
    world.pass_time(6_000)
    world.commit(7, member_id=leader.member_id, generation_id=1)
    world.pass_time(6_000)
    assert world.heartbeat(leader.member_id, 1) == 0


def test_a_generation_of_a_group_that_is_not_there() -> None:
    world = World()
    assert world.commit(7, member_id="m", generation_id=1, version=8) == 22
    assert world.commit(7, member_id="m", generation_id=1, version=9) == 69


def test_partitions_that_are_not_there_are_refused_alone() -> None:
    world = World(topics={"t": 1})
    assert world.commit(7, topic="other") == 3
    assert world.commit(7, partition=1) == 3
    assert world.commit(7, partition=-1) == 3


def test_metadata_beyond_the_bound_is_refused() -> None:
    world = World(offset_metadata_max_bytes=4)
    assert [world.commit(7, metadata="x" * size) for size in (4, 5)] == [0, 12]
    assert world.commit(7, metadata=None) == 0


def test_from_version_10_topics_are_named_by_id() -> None:
    world = World()
    topics = [
        OffsetCommitRequestTopic(
            topic_id=each,
            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
        )
        for each in (topic_id("t"), topic_id("unknown"))
    ]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
    )
    response = world.groups.commits.commit(request, 10, world.now_ms)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in response.topics] == [
        (topic_id("t"), 0),
        (topic_id("unknown"), 100),
    ]
    assert world.committed() == 7
    (fetched,) = world.groups.commits.fetch_all("g", require_stable=False)
    assert (fetched.name, fetched.topic_id, fetched.partitions) == (
        "t",
        topic_id("t"),
        [Fetched(0, 7)],
    )


def test_a_commit_that_cannot_be_kept_changes_nothing() -> None:
    world = World()
    world.commit(7)
    for error, answered in ((19, 15), (6, 16), (10, -1), (56, 16), (47, 47)):
        world.append_error = error
        assert world.commit(8) == answered
    assert world.committed() == 7


def test_a_member_of_a_consumer_group_commits_in_its_epoch_and_from_version_9() -> None:
    world = World()
    client = Client(world, "m")
    client.beat()
    assert world.commit(7, member_id="m", generation_id=1, version=9) == 0
    assert world.commit(7, member_id="m", generation_id=0, version=9) == 113
    assert world.commit(7, member_id="stranger", generation_id=1, version=9) == 25
    assert world.commit(7, member_id="m", generation_id=1, version=8) == 35
    assert world.commit(7, version=9) == 25
    client.leave()
    assert world.commit(8, version=9) == 0


def test_a_fetch_by_a_member_of_another_epoch_is_refused() -> None:
    world = World()
    heartbeat(world)
    world.groups.commits.validate_fetch("g", "m", 1)
    world.groups.commits.validate_fetch("g", None, -1)
    world.groups.commits.validate_fetch("no-such", "m", 1)
    with pytest.raises(Exception, match="113"):
        world.groups.commits.validate_fetch("g", "m", 2)
    with pytest.raises(Exception, match="25"):
        world.groups.commits.validate_fetch("g", "stranger", 1)


def test_offsets_of_a_transaction_count_once_it_is_committed() -> None:
    world = World()
    world.commit(5)
    assert commit_in_transaction(world, 7) == 0
    assert world.committed() == 5
    assert stable_fetch(world) == Fetched(0, -1, -1, "", 88)
    world.end_transaction(9, "g", commit=True)
    assert stable_fetch(world) == Fetched(0, 7)


def test_offsets_of_a_transaction_are_forgotten_when_it_is_aborted() -> None:
    world = World()
    world.commit(5)
    commit_in_transaction(world, 7)
    world.end_transaction(9, "g", commit=False)
    assert stable_fetch(world) == Fetched(0, 5)


def test_a_commit_after_that_of_a_transaction_stays_when_it_ends() -> None:
    world = World()
    commit_in_transaction(world, 7)
    world.commit(6)
    world.end_transaction(9, "g", commit=True)
    assert world.committed() == 6


def test_a_marker_decides_the_groups_of_its_partition_alone() -> None:
    world = World()
    groups = ["g", "other"]
    assert len({world.groups.partitions.of(each) for each in groups}) == 2
    for group in groups:
        commit_in_transaction(world, 7, group=group)
    world.end_transaction(9, "g", commit=True)
    assert [world.committed(each) for each in groups] == [7, -1]


def test_a_transaction_is_held_to_the_generation_it_names() -> None:
    world = World()
    (leader,) = world.stable(1)
    codes = [
        commit_in_transaction(world, 7, member_id=leader.member_id, generation_id=1),
        commit_in_transaction(world, 7, member_id=leader.member_id, generation_id=2),
        commit_in_transaction(world, 7, member_id="stranger", generation_id=1),
        # Before KIP-447 producers name none.
        commit_in_transaction(world, 7),
        commit_in_transaction(world, 7, group=""),
        commit_in_transaction(world, 7, group="no-such", generation_id=1, member_id="m"),
    ]
    assert codes == [0, 22, 25, 0, 24, 22]


def test_a_transaction_that_names_an_old_epoch_of_a_consumer_is_told_of_a_generation() -> None:
    world = World()
    heartbeat(world)
    assert commit_in_transaction(world, 7, member_id="m", generation_id=1) == 0
    assert commit_in_transaction(world, 7, member_id="m", generation_id=5) == 22


def test_a_restart_knows_pending_and_decided_offsets() -> None:
    world = World()
    world.commit(1, partition=1)
    commit_in_transaction(world, 7, producer_id=9)
    world.start()
    assert stable_fetch(world).error_code == 88
    world.end_transaction(9, "g", commit=True)
    commit_in_transaction(world, 8, producer_id=10)
    world.end_transaction(10, "g", commit=False)
    world.start()
    assert stable_fetch(world) == Fetched(0, 7)
    assert world.committed(partition=1) == 1
    assert [each.group_id for each in world.groups.listed()] == ["g"]


def test_offsets_are_deleted_of_topics_that_nobody_reads() -> None:
    world = World()
    assert delete(world) == (69, None)
    world.commit(7)
    assert delete(world, partition=9) == (0, 3)
    assert delete(world) == (0, 0)
    assert world.committed() == -1
    assert delete(world, group="") == (24, None)


def test_offsets_of_topics_that_consumers_read_are_not_deleted() -> None:
    world = World()
    world.commit(7)
    (leader,) = world.stable(1, protocols={"range": SUBSCRIBED_TO_T})
    assert delete(world) == (0, 86)
    world.leave(leader.member_id)
    world.stable(1, protocol_type="connect")
    assert delete(world) == (68, None)


def test_offsets_of_an_empty_group_expire_after_the_retention_since_it_was_left() -> None:
    world = World(offsets_retention_minutes=60)
    (leader,) = world.stable(1, session_ms=1_800_000)
    world.commit(7, member_id=leader.member_id, generation_id=1)
    world.pass_time(20 * MINUTE_MS)
    world.leave(leader.member_id)
    world.pass_time(50 * MINUTE_MS)
    assert world.committed() == 7
    world.pass_time(20 * MINUTE_MS)
    assert world.committed() == -1
    assert world.groups.listed() == []
    world.start()
    assert (world.committed(), world.groups.listed()) == (-1, [])


def test_offsets_of_a_simple_consumer_expire_after_the_last_commit_of_each() -> None:
    world = World(offsets_retention_minutes=60)
    world.commit(7)
    world.pass_time(30 * MINUTE_MS)
    world.commit(8, partition=1)
    world.pass_time(40 * MINUTE_MS)
    assert [world.committed(partition=each) for each in (0, 1)] == [-1, 8]


def test_offsets_expire_also_after_a_time_without_any() -> None:
    world = World(offsets_retention_minutes=60)
    world.pass_time(100 * MINUTE_MS)
    world.commit(7)
    world.pass_time(80 * MINUTE_MS)
    assert (world.committed(), world.groups.listed()) == (-1, [])


def test_offsets_expire_when_a_client_of_versions_2_to_4_said() -> None:
    world = World()
    world.commit(7, retention_ms=5 * MINUTE_MS, version=4)
    (record,) = world.records("g")
    assert record["version"] == 1
    world.start()
    world.pass_time(20 * MINUTE_MS)
    assert world.committed() == -1


def test_a_stable_group_keeps_the_offsets_of_what_it_reads() -> None:
    world = World(offsets_retention_minutes=60, topics={"t": 1, "u": 1})
    world.commit(7)
    world.commit(7, topic="u")
    (leader,) = world.stable(1, protocols={"range": SUBSCRIBED_TO_T}, session_ms=1_800_000)
    for _ in range(10):
        world.pass_time(10 * MINUTE_MS)
        assert world.heartbeat(leader.member_id, 1) == 0
    assert (world.committed(), world.committed(topic="u")) == (7, -1)


def test_a_group_whose_subscriptions_cannot_be_read_keeps_all_offsets() -> None:
    world = World(offsets_retention_minutes=60)
    world.commit(7)
    (leader,) = world.stable(1, protocols={"range": b"?"}, session_ms=1_800_000)
    for _ in range(10):
        world.pass_time(10 * MINUTE_MS)
        world.heartbeat(leader.member_id, 1)
    assert world.committed() == 7


def test_offsets_that_a_transaction_may_change_do_not_expire() -> None:
    world = World(offsets_retention_minutes=60)
    world.commit(7)
    commit_in_transaction(world, 8)
    world.pass_time(200 * MINUTE_MS)
    assert world.committed() == 7
    world.end_transaction(9, "g", commit=False)
    world.pass_time(20 * MINUTE_MS)
    assert world.committed() == -1


def test_commits_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.groups.commits.MAX_OFFSETS", 2)
    world = World()
    assert [world.commit(7, partition=each) for each in range(3)] == [0, 0, 28]


def test_groups_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.groups.store.MAX_GROUPS", 1)
    world = World()
    assert world.commit(7) == 0
    assert world.commit(7, group="other") == 81
    assert world.join(group="other").value.error_code == 81
    assert heartbeat(world, group="other").error_code == 81


@pytest.mark.parametrize(
    ("group", "partition"),
    # The absolute value of Java's "…".hashCode(), modulo 50.
    [("", 0), ("g", 3), ("console-consumer-12345", 6), ("käfka", 31), ("🦦", 40)],
)
def test_a_group_belongs_to_the_partition_of_javas_hash(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_the_log_holds_what_the_audit_decodes() -> None:
    world = World()
    world.commit(7, metadata="note")
    world.groups.delete("g", world.now_ms)
    commit, *tombstones = world.records("g")
    assert commit["type"] == "offset-commit"
    assert commit["key"] == {"group": "g", "topic": "t", "partition": 0}
    assert commit["value"] == {
        "offset": 7,
        "leader_epoch": -1,
        "metadata": "note",
        "commit_timestamp": world.now_ms,
    }
    assert [(each["type"], each["value"]) for each in tombstones] == [
        ("offset-commit", None),
        ("group", None),
    ]
