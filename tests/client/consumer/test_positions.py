"""Where partitions begin and go on: resets, seeks, truncation, topics that are created anew."""

from __future__ import annotations

import pytest
from ottla.client.consumer.arguments import position_to_seek
from ottla.client.consumer.errors import (
    InvalidPartitionEpochError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from ottla.client.consumer.position import OffsetAndTimestamp, Position
from ottla.client.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError
from ottla.client.offset_epoch import Epochs, offset_epoch
from ottla.client.partitions import TopicPartition
from support.scripted_logs import WALL_MS, ScriptedLogs

ORDERS = TopicPartition("orders", 0)


def logs_of(**arguments: object) -> ScriptedLogs:
    return ScriptedLogs(**{"topics": {"orders": 1}, **arguments})  # type: ignore[arg-type]


def ten() -> ScriptedLogs:
    """A log of ten batches of a record each, a second apart, the first five of epoch 0."""
    logs = logs_of()
    for number in range(10):
        if number == 5:
            logs.logs[ORDERS].epoch = 1
            logs.cluster.leaders[ORDERS] = (1, 1)
        logs.append("orders", 0, [b"%d" % number], timestamp_ms=1000 * number)
    return logs


# Resets.


@pytest.mark.parametrize(
    ("policy", "first"),
    [("earliest", [b"0"]), ("latest", []), ("by_duration:PT5S", [b"6"])],
)
def test_the_policy_says_where_to_begin_without_a_committed_offset(
    policy: str, first: list[bytes]
) -> None:
    logs = logs_of()
    for number in range(10):
        logs.append("orders", 0, [b"%d" % number], timestamp_ms=WALL_MS - 11_000 + 1000 * number)
    core = logs.consumer(auto_offset_reset=policy)
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100)[:1] == first
    logs.append("orders", 0, [b"new"])
    assert logs.values(core, max_ms=100) == [b"new"]


def test_a_duration_without_records_begins_at_the_end() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="by_duration:PT5S")
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100) == []
    assert logs.wait(core.position(ORDERS)).offset == 10


def test_without_a_policy_each_poll_says_that_there_is_no_offset_until_the_application_seeks() -> (
    None
):
    logs = ten()
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError, match="orders-0") as caught:
            logs.poll(core)
        assert caught.value.partitions == {ORDERS: -1}
    core.seek(ORDERS, Position(7))
    assert logs.values(core, max_ms=100) == [b"7", b"8", b"9"]


def test_a_position_outside_of_the_log_is_reset_by_the_policy() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="earliest")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(99))
    assert logs.values(core, max_ms=200)[0] == b"0"
    (said,) = core.network.warned.texts
    assert said == (
        "orders-0: no log has offset 99, where the consumer was: goes on by auto_offset_reset "
        "(earliest)"
    )


def test_a_position_outside_of_the_log_is_an_error_without_a_policy() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(99))
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="position 99") as caught:
            logs.poll(core)
        assert caught.value.partitions == {ORDERS: 99}
    core.seek_to_end([ORDERS])
    assert logs.values(core, max_ms=100) == []


def test_records_that_are_deleted_before_the_position_are_passed_over_by_policy() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="earliest")
    core.assign([ORDERS], logs.now_ms)
    assert len(logs.poll(core, limit=2)) == 2
    logs.logs[ORDERS].start = 6
    logs.logs[ORDERS].batches = logs.logs[ORDERS].batches[6:]
    core.seek(ORDERS, Position(2))
    assert logs.values(core, max_ms=200) == [b"6", b"7", b"8", b"9"]


# Seeks and questions.


def test_a_seek_by_time_goes_on_from_the_first_record_as_new() -> None:
    logs = ten()
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    core.seek_to_times({ORDERS: 6500})
    assert logs.values(core, max_ms=100) == [b"7", b"8", b"9"]


def test_a_seek_that_follows_another_at_once_is_the_one_that_counts() -> None:
    logs = ten()
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    core.seek_to_beginning([ORDERS])
    logs.cluster.run(max_ms=3)
    core.seek(ORDERS, Position(8))
    assert logs.values(core, max_ms=100) == [b"8", b"9"]


def test_a_seek_of_what_is_not_assigned_is_refused() -> None:
    logs = ten()
    core = logs.consumer()
    with pytest.raises(IllegalStateError, match="orders-0 is not assigned"):
        core.seek(ORDERS, Position(8))


def test_offsets_of_times_and_ends_are_looked_up() -> None:
    logs = ten()
    core = logs.consumer()
    found = logs.wait(core.queries.offsets_for_times({ORDERS: 6500}))
    assert found[ORDERS][:3] == OffsetAndTimestamp(7, 7000, 1)[:3]
    assert logs.wait(core.queries.offsets_for_times({ORDERS: 99_000})) == {ORDERS: None}
    assert logs.wait(core.queries.beginning_offsets([ORDERS]))[ORDERS].offset == 0
    assert logs.wait(core.queries.end_offsets([ORDERS]))[ORDERS].offset == 10
    assert logs.wait(core.queries.end_offsets([])) == {}


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 74, 75, 78, 7, -1])
def test_a_lookup_is_repeated_after_an_error_that_passes(code: int) -> None:
    logs = ten()
    left = [code]
    logs.faults.append(lambda api, *_: left.pop() if left and api == "ListOffsets" else None)
    core = logs.consumer()
    assert logs.wait(core.queries.end_offsets([ORDERS]))[ORDERS].offset == 10
    assert not left


def test_a_lookup_ends_with_an_error_that_does_not_pass() -> None:
    logs = ten()
    logs.faults.append(lambda api, *_: 29 if api == "ListOffsets" else None)
    core = logs.consumer()
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        logs.wait(core.queries.end_offsets([ORDERS]))


def test_a_lookup_whose_time_is_over_asks_no_more() -> None:
    logs = logs_of(topics={})
    core = logs.consumer()
    pending = core.queries.end_offsets([TopicPartition("nowhere", 0)])
    logs.cluster.run(max_ms=2000)
    assert isinstance(core.time_out(pending), KafkaTimeoutError)
    logs.cluster.run(max_ms=5000)
    assert not logs.cluster.asked("ListOffsets")


def test_the_partitions_of_a_topic_and_all_topics_are_told() -> None:
    logs = logs_of(topics={"orders": 3, "events": 1})
    core = logs.consumer()
    assert logs.wait(core.queries.partitions_for("orders")) == {0, 1, 2}
    assert logs.wait(core.queries.topics()) == {"orders", "events"}
    missing = core.queries.partitions_for("nowhere")
    logs.cluster.run(max_ms=1000)
    assert "nowhere" in str(core.time_out(missing))


def test_the_position_is_told_once_it_is_known() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="latest")
    core.assign([ORDERS], logs.now_ms)
    pending = core.position(ORDERS)
    assert not pending.is_done
    assert logs.wait(pending).offset == 10


# Truncation (KIP-320).


def truncated() -> ScriptedLogs:
    """Ten records were read; another leader has the first six, then others."""
    logs = ten()
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    log = logs.logs[ORDERS]
    log.truncate(6)
    log.epoch = 2
    logs.cluster.leaders[ORDERS] = (1, 2)
    for number in range(6, 12):
        logs.append("orders", 0, [b"other %d" % number])
    return logs


def test_a_truncated_log_is_read_again_from_where_it_differs() -> None:
    logs = truncated()
    core = logs.consumer(auto_offset_reset="latest")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(10, leader_epoch=1))
    assert logs.values(core, max_ms=200) == [b"other %d" % number for number in range(6, 12)]
    (said,) = core.network.warned.texts
    assert said == (
        "orders-0: the log was truncated at offset 6, behind which the consumer had read up to 10: "
        "goes on by auto_offset_reset (latest)"
    )


def test_without_a_policy_truncation_is_raised_with_the_offset_from_which_the_log_differs() -> None:
    logs = truncated()
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(10, leader_epoch=1))
    for _ in range(2):
        with pytest.raises(LogTruncationError, match="offset 6 on") as caught:
            logs.poll(core)
        assert caught.value.partitions == {ORDERS: 6}
    core.seek(ORDERS, Position(6))
    assert logs.poll(core)[0].value == b"other 6"


def test_truncation_is_found_when_the_leader_changes_while_reading() -> None:
    logs = ten()
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(0))
    assert len(logs.values(core, max_ms=100)) == 10
    logs.logs[ORDERS].truncate(6)
    logs.logs[ORDERS].epoch = 2
    logs.cluster.leaders[ORDERS] = (1, 2)
    with pytest.raises(LogTruncationError):
        logs.poll(core)


def test_an_epoch_that_the_leader_no_longer_knows_resets_nothing() -> None:
    logs = ten()
    log = logs.logs[ORDERS]
    log.batches, log.start = [one for one in log.batches if one[2] == 1], 5
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(6, leader_epoch=0))
    assert logs.values(core, max_ms=200) == [b"6", b"7", b"8", b"9"]


def test_a_broker_that_cannot_tell_epochs_is_read_without() -> None:
    logs = ten()
    logs.cluster.versions["OffsetForLeaderEpoch"] = range(2)
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(8, leader_epoch=0))
    assert logs.values(core, max_ms=200) == [b"8", b"9"]


def test_stale_metadata_does_not_rewind_a_position() -> None:
    """Scenarios A to C of KIP-232: a late broker names a former leader, whose log is behind."""
    logs = logs_of(nodes=2)
    for number in range(10):
        logs.append("orders", 0, [b"%d" % number])
    logs.cluster.leaders[ORDERS] = (2, 4)
    logs.logs[ORDERS].epoch = 5
    core = logs.consumer(auto_offset_reset="earliest")
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(10, leader_epoch=5))
    assert logs.poll(core, max_ms=50) == []
    assert not logs.cluster.asked("Fetch")
    logs.cluster.leaders[ORDERS] = (1, 5)
    logs.append("orders", 0, [b"new"])
    assert logs.values(core) == [b"new"]


# Topics that are deleted and created again (KIP-232).


def recreated() -> ScriptedLogs:
    """The vector of KIP-232: a topic of epochs 11 and 12 is now one of 14 and 15."""
    logs = logs_of()
    log = logs.logs[ORDERS]
    log.partition_epoch = 14
    for number in range(200):
        logs.append("orders", 0, [b"%d" % number])
    return logs


def test_a_position_of_a_deleted_topic_is_not_applied_to_its_successor() -> None:
    logs = recreated()
    core = logs.consumer(auto_offset_reset="earliest")
    core.assign([ORDERS], logs.now_ms)
    kept = offset_epoch(Epochs(3, 11))
    core.seek(ORDERS, Position(100, 3, 11))
    for _ in range(3):
        with pytest.raises(InvalidPartitionEpochError, match="created again") as caught:
            logs.poll(core)
        assert caught.value.partitions == {ORDERS: 14}
    assert logs.wait(core.position(ORDERS)).offset == 100
    assert logs.wait(core.position(ORDERS)).offset_epoch == kept
    core.seek_to_beginning([ORDERS])
    assert logs.poll(core)[0].value == b"0"
    committed = core.consumed()[ORDERS]
    assert committed.offset_epoch == offset_epoch(Epochs(0, 14, logs.cluster.id_of("orders")))


def test_a_position_of_the_same_partition_goes_on() -> None:
    logs = recreated()
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    core.seek(ORDERS, Position(198, 0, 14))
    assert logs.values(core, max_ms=100) == [b"198", b"199"]


def test_brokers_without_partition_epochs_tell_a_new_topic_by_its_id() -> None:
    logs = logs_of()
    for number in range(10):
        logs.append("orders", 0, [b"%d" % number])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert len(logs.values(core, max_ms=100)) == 10
    logs.cluster.topic_ids["orders"] = b"another topic id"
    logs.append("orders", 0, [b"of the new topic"])
    for _ in range(2):
        with pytest.raises(InvalidPartitionEpochError, match="another topic id") as caught:
            logs.poll(core)
        assert caught.value.partitions == {ORDERS: -1}
    core.seek(ORDERS, Position(10))
    assert logs.values(core, max_ms=300) == [b"of the new topic"]


def test_an_offset_epoch_that_changed_on_the_way_is_refused() -> None:
    kept = offset_epoch(Epochs(3, 11))
    assert position_to_seek(7, kept) == Position(7, 3, 11)
    for damaged in (kept[:-1], kept + b"\0", kept[:-1] + b"\0", b"\2" + kept[1:]):
        with pytest.raises(IllegalArgumentError):
            position_to_seek(7, damaged)
    with pytest.raises(IllegalArgumentError, match="offset is -1"):
        position_to_seek(-1, None)
