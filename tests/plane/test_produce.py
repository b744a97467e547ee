"""Produce through a data plane: the verdict of each partition, in the layout of every version."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from ottla import NewRecord, TopicConfig, build_batch, validate
from ottla._engine import DataPlane
from support.plane_frames import (
    CODE,
    NOW_MS,
    PRODUCE_VERSIONS,
    Plane,
    batch,
    produce_frame,
    values,
)

COMPACTED = TopicConfig(cleanup_policy="compact")


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.open()
    return plane


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_batch_is_appended_and_read_back_in_every_version(plane: Plane, version: int) -> None:
    first = plane.append(batch(b"a", b"b"), version=version)
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, -1)
    second = plane.append(batch(b"c"), version=version)
    assert second.base_offset == 2
    assert values(plane.read().records) == [b"a", b"b", b"c"]
    assert plane.engine.offsets(plane.handles["t", 0]) == (0, 3, 3, 3)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_the_topic_comes_back_by_the_name_or_id_it_was_asked_by(plane: Plane, version: int) -> None:
    answer = plane.produce({("t", 0): batch()}, version=version)
    (topic,) = answer.responses
    assert (topic.name == "t") == (version < 13)
    assert answer.throttle_time_ms == 0


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_one_refused_partition_stops_no_other(plane: Plane, version: int) -> None:
    plane.open(partition=1)
    bad = bytearray(batch())
    bad[-1] ^= 1
    answer = plane.produce({("t", 0): bytes(bad), ("t", 1): batch()}, version=version)
    codes = [found.error_code for found in answer.responses[0].partition_responses]
    assert codes == [CODE.CORRUPT_MESSAGE, 0]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_records_to_blame_are_told_from_version_8_on(version: int) -> None:
    plane = Plane()
    plane.open(settings=COMPACTED)
    records = [NewRecord(key=b"k"), NewRecord(), NewRecord()]
    found = plane.append(build_batch(records), version=version)
    if version < 8:
        # The text of KIP-467: clients that do not know 87 get a general code.
        assert found.error_code == 42
        return
    assert found.error_code == 87
    assert [error.batch_index for error in found.record_errors] == [1, 2]
    messages = [error.batch_index_error_message for error in found.record_errors]
    assert messages == [f"record {i}: no key, but the topic is compacted" for i in (1, 2)]
    assert found.error_message.startswith("2 records refused: record 1:")
    assert found.base_offset == found.log_append_time_ms == -1


def test_the_log_is_unchanged_by_a_refusal() -> None:
    plane = Plane()
    handle = plane.open(settings=COMPACTED)
    produced = plane.produced({("t", 0): batch()})
    assert (produced.failed, produced.moved) == (True, ())
    assert plane.engine.offsets(handle) == (0, 0, 0, 0)


def test_a_partition_that_moved_is_told_once_for_each_append(plane: Plane) -> None:
    other = plane.open(partition=1)
    produced = plane.produced({("t", 0): batch(), ("t", 1): batch()})
    assert produced.moved == (plane.handles["t", 0], other)
    assert not produced.failed


def test_a_repeated_batch_gets_its_first_offset_and_is_stored_once(plane: Plane) -> None:
    plane.append(batch())
    again = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    assert [plane.append(again).base_offset for _ in range(2)] == [1, 1]
    produced = plane.produced({("t", 0): again})
    assert (produced.moved, produced.repeated) == ((), (plane.handles["t", 0],))
    assert len(values(plane.read().records)) == 2


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused_for_every_partition(plane: Plane, acks: int) -> None:
    plane.open(partition=1)
    answer = plane.produce({("t", 0): batch(), ("t", 1): batch()}, acks=acks)
    codes = [found.error_code for found in answer.responses[0].partition_responses]
    assert codes == [CODE.INVALID_REQUIRED_ACKS] * 2


def test_without_acks_there_is_no_answer_and_failure_is_told(plane: Plane) -> None:
    produced = plane.produced({("t", 0): batch()}, acks=0)
    assert (produced.answer, produced.failed) == (None, False)
    assert plane.engine.offsets(plane.handles["t", 0])[3] == 1
    assert plane.produced({("t", 9): batch()}, acks=0).failed


def test_too_few_replicas_refuse_those_who_wait_for_all(plane: Plane) -> None:
    handle = plane.handles["t", 0]
    plane.engine.configure(handle, min_insync_replicas=2)
    assert plane.append(batch(), acks=-1).error_code == CODE.NOT_ENOUGH_REPLICAS
    assert plane.append(batch(), acks=1).error_code == 0
    plane.engine.configure(handle, in_sync_replicas=2)
    assert plane.append(batch(), acks=-1).error_code == 0


def test_what_is_not_here_is_unknown_by_name_or_by_id(plane: Plane) -> None:
    assert plane.append(batch(), "u").error_code == CODE.UNKNOWN_TOPIC_OR_PARTITION
    assert plane.append(batch(), partition=1).error_code == CODE.UNKNOWN_TOPIC_OR_PARTITION
    by_id: dict[str, Any] = {"version": 13}
    unknown = plane.append(batch(), topic_id=UUID(int=9), **by_id)
    assert unknown.error_code == CODE.UNKNOWN_TOPIC_ID
    missing = plane.append(batch(), partition=1, **by_id)
    assert missing.error_code == CODE.UNKNOWN_TOPIC_OR_PARTITION


def test_internal_topics_are_for_those_who_are_allowed() -> None:
    plane = Plane()
    plane.open("__consumer_offsets", is_internal=True)
    refused = plane.append(batch(), "__consumer_offsets")
    assert refused.error_code == CODE.INVALID_TOPIC_EXCEPTION
    assert plane.append(batch(), "__consumer_offsets", allow_internal=True).error_code == 0


def test_a_refusal_from_outside_comes_before_any_work(plane: Plane) -> None:
    found = plane.append(batch(), refused={("t", 0): 29, ("t", 1): 6})
    assert found.error_code == 29
    assert plane.engine.offsets(plane.handles["t", 0])[3] == 0


def test_what_is_larger_than_the_topic_allows_is_too_large() -> None:
    plane = Plane()
    plane.open(settings=TopicConfig(max_message_bytes=200))
    assert plane.append(batch(b"x" * 200)).error_code == CODE.MESSAGE_TOO_LARGE
    assert plane.append(batch(b"x" * 100)).error_code == 0


def test_more_than_the_logs_may_hold_is_a_storage_error() -> None:
    plane = Plane(DataPlane(max_stored_bytes=200))
    plane.open()
    codes = [plane.append(batch(b"x" * 50)).error_code for _ in range(3)]
    assert codes == [0, CODE.KAFKA_STORAGE_ERROR, CODE.KAFKA_STORAGE_ERROR]
    plane.engine.close(plane.handles["t", 0])
    assert plane.engine.stored_bytes == 0


def test_logs_in_a_directory_are_bounded_by_the_disk_alone(tmp_path: Path) -> None:
    plane = Plane(DataPlane(max_stored_bytes=200))
    plane.open(directory=tmp_path / "t-0")
    assert [plane.append(batch(b"x" * 50)).error_code for _ in range(5)] == [0] * 5
    handle = plane.handles["t", 0]
    assert plane.engine.append(handle, batch(b"x" * 50), now_ms=NOW_MS).error == 0


def test_the_time_of_the_append_is_told_where_the_topic_stamps_it() -> None:
    plane = Plane()
    plane.open(settings=TopicConfig(message_timestamp_type="LogAppendTime"))
    assert plane.append(batch(timestamp_ms=5)).log_append_time_ms == NOW_MS


@pytest.mark.parametrize("profile", ["strict", "kafka"])
def test_the_log_start_is_in_every_answer_of_the_strict_profile(profile: str) -> None:
    """The follow-up of KIP-192: without it a producer cannot tell retention from loss."""
    plane = Plane(DataPlane(profile=profile))
    handle = plane.open()
    for _ in range(3):
        plane.append(batch())
    plane.engine.delete_records(handle, 2)
    hidden = 2 if profile == "strict" else -1
    bad = bytearray(batch())
    bad[-1] ^= 1
    assert plane.append(batch()).log_start_offset == 2
    assert plane.append(bytes(bad)).log_start_offset == hidden
    assert plane.append(batch(), acks=7).log_start_offset == hidden
    assert plane.append(batch(), partition=4).log_start_offset == -1
    gap = batch(producer_id=1, producer_epoch=0, base_sequence=0)
    plane.append(gap)
    later = batch(producer_id=1, producer_epoch=0, base_sequence=9)
    refused = plane.append(later)
    assert (refused.error_code, refused.log_start_offset) == (45, 2)


def test_kafka_sends_a_message_where_records_are_blamed_and_its_one_code_to_all() -> None:
    unordered = batch(producer_id=1, producer_epoch=0, base_sequence=9)
    for profile, has_message in (("kafka", False), ("strict", True)):
        plane = Plane(DataPlane(profile=profile, unknown_producer="accept"))
        plane.open(settings=COMPACTED)
        keyless = batch()
        assert plane.append(keyless).error_message.startswith("1 record refused")
        assert plane.append(keyless, version=7).error_code == (42 if has_message else 87)
        plane.open(partition=1)
        plane.append(batch(producer_id=1, producer_epoch=0, base_sequence=0), partition=1)
        found = plane.append(unordered, partition=1)
        assert found.error_code == CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (found.error_message is not None) == has_message


def test_kafka_fails_the_whole_request_where_it_cannot_be_read() -> None:
    damaged = batch()[:8] + (13).to_bytes(4, "big") + batch()[12:]
    for profile, codes in (("kafka", [2, 2]), ("strict", [0, 2])):
        plane = Plane(DataPlane(profile=profile))
        plane.open()
        plane.open(partition=1)
        answer = plane.produce({("t", 0): batch(), ("t", 1): damaged})
        found = [one.error_code for one in answer.responses[0].partition_responses]
        assert found == codes


def test_no_records_at_all_are_no_batch(plane: Plane) -> None:
    assert plane.append(None).error_code == 87
    assert plane.append(b"").error_code == 87


def test_a_verdict_over_the_wire_is_that_of_validate() -> None:
    for records in (batch(), batch() * 2, batch()[:-1], b"", batch(b"x", compression="gzip")):
        expected = validate(records, now_ms=NOW_MS, api_version=9)
        fresh = Plane()
        fresh.open()
        found = fresh.append(records)
        assert found.error_code == expected.error
        assert found.error_message == expected.error_message
        assert found.base_offset == expected.base_offset


def test_bytes_behind_a_request_are_ignored(plane: Plane) -> None:
    frame = produce_frame(9, {("t", 0): batch()}) + b"more"
    produced = plane.engine.produce(frame, 8, 9, now_ms=NOW_MS)
    assert not produced.failed


def test_kafka_fails_the_whole_request_where_a_partition_has_null_for_records() -> None:
    for profile, codes in (("kafka", [-1, -1]), ("strict", [0, 87])):
        plane = Plane(DataPlane(profile=profile))
        plane.open()
        plane.open(partition=1)
        answer = plane.produce({("t", 0): batch(), ("t", 1): None})
        found = answer.responses[0].partition_responses
        assert [one.error_code for one in found] == codes
        told = [one.error_message is not None for one in found]
        assert told == [False, profile == "strict"]


@pytest.mark.parametrize("first", [True, False])
def test_a_refused_partition_is_told_wherever_it_stands(plane: Plane, *, first: bool) -> None:
    """With acks=0 the connection is closed for it."""
    plane.open(partition=1)
    sets: dict[tuple[str, int], bytes | None] = {("t", 0): batch(), ("t", 1): batch()}
    sets["t", 0 if first else 1] = None
    assert plane.produced(sets, acks=0).failed


def test_logs_hold_as_much_as_they_may_and_no_byte_more() -> None:
    size = len(batch())
    for bound, codes in ((2 * size, [0, 0]), (2 * size - 1, [0, CODE.KAFKA_STORAGE_ERROR])):
        plane = Plane(DataPlane(max_stored_bytes=bound))
        plane.open()
        assert [plane.append(batch()).error_code for _ in range(2)] == codes


def test_a_refusal_from_outside_does_not_tell_whether_there_is_such_a_topic(plane: Plane) -> None:
    found = plane.append(batch(), "secret", refused={("secret", 0): 29})
    assert (found.error_code, found.log_start_offset) == (29, -1)


@pytest.mark.parametrize("profile", ["strict", "kafka"])
def test_what_a_version_does_not_allow_is_told_before_what_hinders_an_append(profile: str) -> None:
    for options, acks in (({}, 7), ({"is_internal": True}, 1), ({"min_insync_replicas": 2}, -1)):
        plane = Plane(DataPlane(profile=profile))
        plane.open(next_offset=5, **options)
        found = plane.append(batch() * 2, acks=acks)
        assert found.error_code == CODE.INVALID_RECORD
        # Kafka looks at the request alone then, and says nothing of the partition.
        is_told = profile == "strict"
        assert found.log_start_offset == (5 if is_told else -1)
        assert (found.error_message is not None) == is_told


@pytest.mark.parametrize("version", range(3, 13))
def test_each_of_several_topics_has_its_own_partitions(version: int) -> None:
    plane = Plane()
    sets = {("a", 0): batch(b"1"), ("b", 0): batch(b"2"), ("b", 1): batch(b"3")}
    for number, (topic, partition) in enumerate(sets):
        plane.open(topic, partition, topic_id=UUID(int=1 + (topic == "b")), next_offset=number)
    answer = plane.produce(sets, version=version)
    assert [
        (topic.name, [(each.index, each.base_offset) for each in topic.partition_responses])
        for topic in answer.responses
    ] == [("a", [(0, 0)]), ("b", [(0, 1), (1, 2)])]
