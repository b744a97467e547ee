"""Offsets of a data plane by time and by leader epoch, deletion and retention."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla import KafkaError, NewRecord, TopicConfig, build_batch
from ottla._engine import DataPlane
from support.plane_frames import CODE, NOW_MS, TOPIC_ID, Plane, batch, values

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NONE = (-1, -1, -1)
SMALL_SEGMENTS = TopicConfig(segment_bytes=300)


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.open(leader_epoch=3)
    for timestamp in (100, 300, 200, 300):
        plane.append(batch(timestamp_ms=timestamp))
    return plane


def test_the_offsets_of_list_offsets_by_their_numbers(plane: Plane) -> None:
    handle = plane.handles["t", 0]
    plane.engine.delete_records(handle, 1)
    found = {query: plane.engine.find_offset(handle, query) for query in range(-1, -7, -1)}
    assert found == {
        LATEST: (4, -1, 3),
        EARLIEST: (1, -1, 3),
        MAX_TIMESTAMP: (1, 300, 3),
        EARLIEST_LOCAL: (1, -1, 3),
        LATEST_TIERED: NONE,
        PENDING_UPLOAD: NONE,
    }


def test_an_empty_partition_has_its_ends_and_no_record() -> None:
    plane = Plane()
    handle = plane.open(next_offset=7, leader_epoch=2)
    queries = (LATEST, EARLIEST, MAX_TIMESTAMP, 0)
    found = [plane.engine.find_offset(handle, query) for query in queries]
    assert found == [(7, -1, 2), (7, -1, 2), NONE, NONE]


def test_the_latest_offset_of_committed_records_is_before_an_open_transaction() -> None:
    plane = Plane(DataPlane(transaction_verification=False))
    handle = plane.open()
    plane.append(batch())
    fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    plane.append(batch(is_transactional=True, **fields), transactional_id="x")
    assert plane.engine.find_offset(handle, LATEST) == (2, -1, 0)
    assert plane.engine.find_offset(handle, LATEST, 1) == (1, -1, 0)
    assert plane.engine.find_offset(handle, NOW_MS, 1)[0] == 0


@given(
    sets=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=30),
    is_compressed=st.booleans(),
    start=st.integers(0, 20),
)
def test_the_first_record_of_a_time_or_later_is_found(
    sets: list[list[int]], is_compressed: bool, start: int
) -> None:
    """A naive twin: every record of the log, in a list."""
    plane = Plane()
    handle = plane.open(settings=SMALL_SEGMENTS)
    log: list[int] = []
    for timestamps in sets:
        records = [NewRecord(value=b"v", timestamp=timestamp) for timestamp in timestamps]
        plane.append(build_batch(records, compression="gzip" if is_compressed else "none"))
        log += timestamps
    start = min(start, len(log))
    plane.engine.delete_records(handle, start)
    for timestamp in range(11):
        expected = next(
            (
                (offset, found, 0)
                for offset, found in enumerate(log)
                if offset >= start and found >= timestamp
            ),
            NONE,
        )
        assert plane.engine.find_offset(handle, timestamp) == expected
    if log and start == 0:
        largest = max(log)
        assert plane.engine.find_offset(handle, MAX_TIMESTAMP) == (log.index(largest), largest, 0)


def test_an_epoch_ends_where_the_next_begins(plane: Plane) -> None:
    """KIP-101: epoch 3 has offsets 0 to 3, epoch 7 nothing, epoch 9 offset 4."""
    handle = plane.handles["t", 0]
    plane.engine.configure(handle, leader_epoch=7)
    plane.engine.configure(handle, leader_epoch=9)
    plane.append(batch())
    ends = {epoch: plane.engine.end_of_epoch(handle, epoch) for epoch in (-1, 2, 3, 5, 8, 9, 10)}
    assert ends == {
        -1: (-1, 0),
        2: (2, 0),
        3: (3, 4),
        5: (3, 4),
        8: (3, 4),
        9: (9, 5),
        10: (-1, -1),
    }


def test_a_leader_epoch_that_is_another_is_refused(plane: Plane) -> None:
    for epoch, code in ((2, CODE.FENCED_LEADER_EPOCH), (4, CODE.UNKNOWN_LEADER_EPOCH)):
        for find in (plane.engine.find_offset, plane.engine.end_of_epoch):
            with pytest.raises(KafkaError) as raised:
                find(0, 0, current_leader_epoch=epoch)
            assert raised.value.error_code == code
    assert plane.engine.find_offset(0, LATEST, current_leader_epoch=3) == (4, -1, 3)


def test_the_largest_timestamp_is_of_a_record_that_is_left(plane: Plane) -> None:
    for start, expected in ((0, (1, 300, 3)), (2, (3, 300, 3)), (4, NONE)):
        plane.engine.delete_records(0, start)
        assert plane.engine.find_offset(0, MAX_TIMESTAMP) == expected
    plane.append(batch(timestamp_ms=50))
    assert plane.engine.find_offset(0, MAX_TIMESTAMP) == (4, 50, 3)


def test_records_are_deleted_up_to_the_high_watermark(plane: Plane) -> None:
    handle = plane.handles["t", 0]
    assert plane.engine.delete_records(handle, 2) == 2
    assert plane.engine.delete_records(handle, 1) == 2
    assert plane.read(1).error_code == CODE.OFFSET_OUT_OF_RANGE
    assert plane.engine.delete_records(handle, -1) == 4
    for offset in (5, -2):
        with pytest.raises(KafkaError) as raised:
            plane.engine.delete_records(handle, offset)
        assert raised.value.error_code == CODE.OFFSET_OUT_OF_RANGE


def full(**options: Any) -> Plane:
    """Return a plane with a partition of five segments of four records, a second apart."""
    plane = Plane()
    plane.open(settings=SMALL_SEGMENTS, **options)
    for number in range(20):
        plane.append(batch(timestamp_ms=NOW_MS + number * 1000))
    assert [base for base, _ in plane.engine.segments(0)] == [0, 4, 8, 12, 16]
    return plane


def test_segments_go_by_their_newest_record() -> None:
    plane = full(retention_ms=10_000)
    assert plane.engine.apply_retention(NOW_MS + 13_000) == ()
    assert plane.engine.apply_retention(NOW_MS + 13_001) == (0,)
    assert plane.engine.offsets(0) == (4, 20, 20, 20)
    assert values(plane.read(4).records) == [b"v"] * 4


def test_the_active_segment_goes_too_and_offsets_go_on() -> None:
    plane = full(retention_ms=10_000)
    assert plane.engine.apply_retention(NOW_MS + 1_000_000) == (0,)
    assert plane.engine.segments(0) == [(20, 0)]
    assert plane.engine.stored_bytes == 0
    assert plane.append(batch()).base_offset == 20
    assert plane.append(batch()).log_start_offset == 20


def test_segments_go_while_more_is_left_than_the_size_allows() -> None:
    plane = full()
    size = plane.engine.segments(0)[0][1]
    plane.engine.configure(0, retention_bytes=3 * size + 1)
    assert plane.engine.apply_retention(NOW_MS) == (0,)
    assert [base for base, _ in plane.engine.segments(0)] == [4, 8, 12, 16]
    assert plane.engine.stored_bytes == 4 * size


def test_segments_below_the_log_start_go_even_of_a_compacted_topic() -> None:
    plane = full()
    plane.engine.configure(
        0, settings=TopicConfig(cleanup_policy="compact", segment_bytes=300), retention_ms=0
    )
    plane.engine.delete_records(0, 9)
    assert plane.engine.apply_retention(NOW_MS * 2) == ()
    assert [base for base, _ in plane.engine.segments(0)] == [8, 12, 16]
    assert plane.engine.offsets(0)[0] == 9


def test_what_is_not_replicated_is_kept() -> None:
    plane = full(retention_ms=0, in_sync_replicas=2)
    plane.engine.advance_high_watermark(0, 10)
    plane.engine.apply_retention(NOW_MS * 2)
    assert [base for base, _ in plane.engine.segments(0)] == [8, 12, 16]


def test_a_segment_is_rolled_by_the_time_of_its_records() -> None:
    plane = Plane()
    plane.open(segment_ms=1000)
    for offset_ms in (0, 1000, 1001, 1500, 2002):
        plane.append(batch(timestamp_ms=NOW_MS + offset_ms))
    assert [base for base, _ in plane.engine.segments(0)] == [0, 2, 4]


def test_a_follower_is_truncated_and_goes_on() -> None:
    plane = full()
    before = plane.engine.stored_bytes
    plane.engine.truncate(0, 10, now_ms=NOW_MS)
    assert plane.engine.offsets(0)[3] == 10
    assert plane.engine.stored_bytes < before
    assert plane.append(batch(b"new")).base_offset == 10
    assert values(plane.read(9).records) == [b"v", b"new"]


def test_what_coordinators_write_is_read_back() -> None:
    plane = Plane()
    handle = plane.open("__consumer_offsets", is_internal=True)
    for value in (b"a", b"b"):
        verdict = plane.engine.append(handle, batch(value), now_ms=NOW_MS)
        assert verdict.accepted
    one = len(batch(b"a"))
    assert values(plane.engine.read(handle, 0, 1)) == [b"a"]
    assert values(plane.engine.read(handle, 0, 2 * one)) == [b"a", b"b"]
    assert plane.engine.read(handle, 2, 1) == b""
    with pytest.raises(KafkaError):
        plane.engine.read(handle, 3, 1)


def test_a_follower_appends_what_the_leader_stored() -> None:
    leader, follower = full(), Plane()
    follower.open(settings=SMALL_SEGMENTS)
    offset = 0
    while records := leader.engine.read(0, offset, 1000):
        verdict = follower.engine.append(0, records, now_ms=NOW_MS, origin="replication")
        offset = verdict.last_offset + 1
    assert follower.engine.offsets(0) == leader.engine.offsets(0)
    assert follower.engine.read(0, 4, 1000) == leader.engine.read(0, 4, 1000)


def test_a_closed_partition_is_an_error_and_its_handle_is_not_used_again() -> None:
    plane = full()
    plane.engine.close(0)
    for call in (plane.engine.offsets, plane.engine.close, plane.engine.segments):
        with pytest.raises(ValueError, match="no partition has the handle 0"):
            call(0)
    assert plane.open() == 1


@pytest.mark.parametrize(
    ("topic", "topic_id", "partition"),
    [("t", UUID(int=1), 1), ("u", TOPIC_ID, 0), ("t", TOPIC_ID, 0)],
)
def test_a_topic_has_one_id_and_an_id_one_topic(topic: str, topic_id: UUID, partition: int) -> None:
    plane = Plane()
    plane.open()
    with pytest.raises(ValueError, match="is open already"):
        plane.open(topic, partition, topic_id=topic_id)


def test_counters_outlive_their_partition() -> None:
    plane = full()
    plane.engine.close(0)
    assert plane.engine.metrics()["MessagesInPerSec"] == 20


def test_producers_of_a_partition_are_seen_and_expire() -> None:
    plane = Plane()
    handle = plane.open(settings=TopicConfig(producer_id_expiration_ms=1000))
    plane.append(batch(producer_id=5, producer_epoch=1, base_sequence=0))
    (producer,) = plane.engine.producers(handle)
    assert (producer.producer_id, producer.last_sequence) == (5, 0)
    assert plane.engine.leader(handle).log_end_offset == 1
    plane.engine.expire_producers(NOW_MS + 1001)
    assert plane.engine.producers(handle) == ()


def test_records_are_replicated_once_nobody_else_is_in_sync() -> None:
    plane = Plane()
    handle = plane.open(in_sync_replicas=2)
    plane.append(batch())
    assert plane.engine.offsets(handle) == (0, 0, 0, 1)
    plane.engine.configure(handle, in_sync_replicas=1)
    assert plane.engine.offsets(handle) == (0, 1, 1, 1)


def test_an_epoch_whose_records_are_deleted_ends_where_the_log_begins() -> None:
    plane = Plane()
    handle = plane.open()
    for epoch in (0, 1, 2):
        plane.engine.configure(handle, leader_epoch=epoch)
        plane.append(batch())
        plane.append(batch())
    assert plane.engine.end_of_epoch(handle, 0) == (0, 2)
    plane.engine.delete_records(handle, 3)
    assert [plane.engine.end_of_epoch(handle, epoch) for epoch in (0, 1, 2)] == [
        (0, 3),
        (1, 4),
        (2, 6),
    ]


def test_an_epoch_without_records_is_known_and_one_that_is_cut_off_is_not() -> None:
    plane = Plane()
    handle = plane.open()
    plane.append(batch())
    plane.engine.configure(handle, leader_epoch=1)
    assert plane.engine.end_of_epoch(handle, 1) == (1, 1)
    plane.append(batch())
    plane.engine.configure(handle, leader_epoch=2)
    plane.append(batch())
    assert [plane.engine.end_of_epoch(handle, epoch) for epoch in (1, 2)] == [(1, 2), (2, 3)]
    plane.engine.truncate(handle, 1, now_ms=NOW_MS)
    assert plane.engine.end_of_epoch(handle, 0) == (0, 1)
    assert plane.engine.end_of_epoch(handle, 1) == (-1, -1)
