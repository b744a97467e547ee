"""When a broker compacts, and what its clients see of it."""

from typing import Any

import ottla
import pytest
from ottla.broker.broker import Broker
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from support.failing_plane import failing
from support.wire_client import NOW_MS, WireClient, new_broker

BACKOFF_MS = 15_000
DAY_MS = 86_400_000
LARGE = b"x" * 400_000


@pytest.fixture
def client() -> WireClient:
    return WireClient(new_broker())


def create(broker: Broker, **configs: str) -> int:
    """A topic of one partition; returns its handle."""
    texts = {name.replace("_", "."): value for name, value in configs.items()}
    topic = broker.topics.create("prices", 1, {"cleanup.policy": "compact"} | texts, NOW_MS)
    return topic.partitions[0].handle


def append(broker: Broker, handle: int, key: bytes, value: bytes | None) -> None:
    data = ottla.build_batch([ottla.NewRecord(key=key, value=value, timestamp=NOW_MS)])
    assert broker.plane.append(handle, data, now_ms=NOW_MS).accepted


def fill(broker: Broker, handle: int) -> None:
    """Two segments of 1 MiB and the active one, of one key."""
    for _ in range(5):
        append(broker, handle, b"a", LARGE)


def offsets(broker: Broker, handle: int) -> list[int]:
    start, _, _, end = broker.plane.offsets(handle)
    found: list[int] = []
    while start < end and (data := broker.plane.read(handle, start, 1 << 30)):
        batches = list(ottla.read_batches(data))
        found += [record.offset for batch in batches for record in batch.records()]
        start = batches[-1].last_offset + 1
    return found


def test_logs_are_looked_at_from_time_to_time(client: WireClient) -> None:
    broker = client.broker
    handle = create(broker, segment_bytes="1048576")
    fill(broker, handle)
    client.advance(BACKOFF_MS - 1)
    assert offsets(broker, handle) == [0, 1, 2, 3, 4]
    client.advance(1)
    assert offsets(broker, handle) == [3, 4]
    assert broker.cleaner.done == 1
    client.advance(BACKOFF_MS * 3)
    assert broker.cleaner.done == 1


def test_what_only_time_makes_due_is_found_within_the_hour_and_days_pass_quickly() -> None:
    client = WireClient(new_broker())
    broker = client.broker
    handle = create(broker, segment_bytes="1048576", min_compaction_lag_ms=str(DAY_MS))
    fill(broker, handle)
    looks = 0
    compact = broker.cleaner._compact

    def counting(*arguments: Any, **options: Any) -> None:
        nonlocal looks
        looks += 1
        compact(*arguments, **options)

    broker.cleaner._compact = counting  # type: ignore[method-assign]
    client.advance(DAY_MS - BACKOFF_MS)
    assert offsets(broker, handle) == [0, 1, 2, 3, 4]
    client.advance(2 * 3_600_000)
    assert offsets(broker, handle) == [3, 4]
    client.advance(30 * DAY_MS)
    assert looks < 1000


def test_a_broker_without_a_cleaner_compacts_on_call_alone() -> None:
    client = WireClient(new_broker({"log.cleaner.enable": "false"}))
    handle = create(client.broker, segment_bytes="1048576")
    fill(client.broker, handle)
    client.advance(BACKOFF_MS * 2)
    assert offsets(client.broker, handle) == [0, 1, 2, 3, 4]
    client.broker.cleaner.compact(client.broker.image.topics.values(), client.now_ms)
    assert offsets(client.broker, handle) == [4]


def test_settings_of_a_topic_hold_from_the_next_look_on(client: WireClient) -> None:
    broker = client.broker
    handle = create(broker, segment_bytes="1048576", min_compaction_lag_ms="3600000")
    fill(broker, handle)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [0, 1, 2, 3, 4]
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    broker.topics.configure(broker.image.topics["prices"], configs)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [3, 4]


def test_what_is_compacted_and_deleted_is_both(client: WireClient) -> None:
    broker = client.broker
    handle = create(
        broker, cleanup_policy="compact,delete", segment_bytes="1048576", retention_ms="600000"
    )
    fill(broker, handle)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [3, 4]
    client.advance(900_001)
    assert offsets(broker, handle) == []
    assert broker.plane.offsets(handle)[0] == 5


def test_jobs_run_one_after_the_other_wherever_they_run(client: WireClient) -> None:
    broker = client.broker
    waiting: list[Any] = []
    broker.cleaner.submit = lambda job, then: waiting.append((job, then))
    handle = create(broker)
    broker.topics.grow(broker.image.topics["prices"], 3, NOW_MS)
    handles = [each.handle for each in broker.image.topics["prices"].partitions]
    for each in handles:
        append(broker, each, b"a", b"1")
        append(broker, each, b"a", b"2")
    broker.cleaner.compact(broker.image.topics.values(), NOW_MS)
    for count in range(3):
        ((job, then),) = waiting
        waiting.clear()
        # A look meanwhile adds nothing, and appends are no obstacle.
        broker.cleaner.look(NOW_MS)
        append(broker, handle, b"b", b"%d" % count)
        job()
        then(None)
    assert waiting == []
    assert broker.cleaner.done == 3
    assert offsets(broker, handles[1]) == [1]
    assert offsets(broker, handle) == [1, 2, 3, 4]


def test_a_broker_that_stops_has_its_compaction_end_early_and_begins_none(
    client: WireClient,
) -> None:
    broker = client.broker
    jobs: list[Any] = []
    broker.cleaner.submit = lambda job, then: jobs.append((job, then))
    handle = create(broker, segment_bytes="1048576")
    fill(broker, handle)
    broker.cleaner.compact(broker.image.topics.values(), NOW_MS)
    ((job, then),) = jobs
    broker.resign(NOW_MS)
    job()
    then(None)
    assert offsets(broker, handle) == [0, 1, 2, 3, 4]
    broker.cleaner.compact(broker.image.topics.values(), NOW_MS)
    client.advance(BACKOFF_MS)
    assert (len(jobs), broker.cleaner.done, broker.cleaner.is_idle) == (1, 0, True)


@pytest.mark.parametrize("ends", ["stop", "deletion"])
def test_what_is_due_when_the_broker_stops_or_the_topic_is_deleted_is_not_begun(
    client: WireClient, ends: str
) -> None:
    broker = client.broker
    jobs: list[Any] = []
    broker.cleaner.submit = lambda job, then: jobs.append((job, then))
    fill(broker, create(broker, segment_bytes="1048576"))
    other = broker.topics.create("costs", 1, {"cleanup.policy": "compact"}, NOW_MS)
    fill(broker, other.partitions[0].handle)
    broker.cleaner.compact(broker.image.topics.values(), NOW_MS)
    ((job, then),) = jobs
    if ends == "stop":
        broker.resign(NOW_MS)
    else:
        broker.topics.delete(["costs"])
    job()
    then(None)
    assert (len(jobs), broker.cleaner.is_idle) == (1, True)


def test_a_topic_that_is_deleted_while_it_is_compacted_is_no_fault(client: WireClient) -> None:
    broker = client.broker
    waiting: list[Any] = []
    broker.cleaner.submit = lambda job, then: waiting.append((job, then))
    handle = create(broker)
    append(broker, handle, b"a", b"1")
    broker.cleaner.compact(broker.image.topics.values(), NOW_MS)
    broker.topics.delete(["prices"])
    ((job, then),) = waiting
    job()
    then(None)
    assert broker.cleaner.done == 0
    assert broker.cleaner.uncleanable == {}


def test_a_busy_group_is_the_same_behind_a_compaction_and_a_load(client: WireClient) -> None:
    broker = client.broker
    broker.topics.create("orders", 3, {}, NOW_MS)

    def commit(group: str, partition: int, offset: int) -> None:
        committed = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="m"
        )
        topic = OffsetCommitRequestTopic(name="orders", partitions=[committed])
        answer = client.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
        assert answer.topics[0].partitions[0].error_code == 0

    def fetched(group: str) -> dict[int, int]:
        asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        topics = client.ask(asked, 8).groups[0].topics
        return {
            each.partition_index: each.committed_offset for t in topics for each in t.partitions
        }

    for offset in range(50):
        for group in ("g", "h"):
            commit(group, offset % 3, offset)
    expected = {0: 48, 1: 49, 2: 47}
    assert fetched("g") == fetched("h") == expected
    before = broker.plane.stored_bytes
    broker.cleaner.compact(broker.image.topics.values(), client.now_ms)
    assert broker.plane.stored_bytes < before / 5
    # Loaded again from the log.
    del broker.groups
    assert fetched("g") == fetched("h") == expected


def test_a_log_without_room_is_compacted_once_there_is_and_meanwhile_seldom_tried(
    client: WireClient,
) -> None:
    broker = client.broker
    lines: list[str] = []
    broker.cleaner.say = lines.append
    plane = failing(broker)
    plane.compact_error = ErrorCode.KAFKA_STORAGE_ERROR
    handle = create(broker, segment_bytes="1048576")
    fill(broker, handle)
    client.advance(20 * BACKOFF_MS)
    assert lines == ["prices-0 could not be compacted: a failure that was set"]
    assert offsets(broker, handle) == [0, 1, 2, 3, 4]
    plane.compact_error = 0
    client.advance(40 * BACKOFF_MS)
    assert offsets(broker, handle) == [3, 4]


def test_a_topic_of_the_same_name_is_another_one(client: WireClient) -> None:
    broker = client.broker
    plane = failing(broker)
    plane.compact_error = ErrorCode.CORRUPT_MESSAGE
    fill(broker, create(broker, segment_bytes="1048576"))
    client.advance(BACKOFF_MS)
    assert list(broker.cleaner.uncleanable.values()) == ["a failure that was set"]
    plane.compact_error = 0
    broker.topics.delete(["prices"])
    handle = create(broker, segment_bytes="1048576")
    fill(broker, handle)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [3, 4]
    assert broker.cleaner.uncleanable == {}


def test_what_begins_within_a_segment_is_compacted_from_there_on(client: WireClient) -> None:
    broker = client.broker
    handle = create(broker, cleanup_policy="compact,delete", segment_bytes="1048576")
    for key in (b"a", b"b", b"a", b"b", b"c"):
        append(broker, handle, key, LARGE)
    broker.plane.delete_records(handle, 1)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [2, 3, 4]
    append(broker, handle, b"a", LARGE)
    broker.cleaner.compact(broker.image.topics.values(), client.now_ms)
    assert offsets(broker, handle) == [3, 4, 5]
    # What was compacted lies below the log now.
    broker.plane.delete_records(handle, 5)
    append(broker, handle, b"d", LARGE)
    broker.cleaner.compact(broker.image.topics.values(), client.now_ms)
    assert offsets(broker, handle) == [5, 6]
    assert broker.plane.cleaner_offsets() == [("prices", 0, 7)]


def test_the_active_segment_ends_where_a_record_has_waited_long_enough(client: WireClient) -> None:
    broker = client.broker
    handle = create(broker, max_compaction_lag_ms="60000", min_cleanable_dirty_ratio="1")

    def append_at(key: bytes, timestamp: int) -> None:
        data = ottla.build_batch([ottla.NewRecord(key=key, value=b"v", timestamp=timestamp)])
        assert broker.plane.append(handle, data, now_ms=client.now_ms).accepted

    append_at(b"a", NOW_MS)
    append_at(b"a", NOW_MS + 60_000)
    client.advance(120_000)
    assert offsets(broker, handle) == [0, 1]
    append_at(b"b", NOW_MS + 60_001)
    client.advance(BACKOFF_MS)
    assert offsets(broker, handle) == [1, 2]


def test_a_log_of_more_keys_than_there_is_room_for_is_compacted_in_several_passes() -> None:
    client = WireClient(new_broker({"log.cleaner.dedupe.buffer.size": "1024"}))
    broker = client.broker
    handle = create(broker)
    for _ in range(2):
        for key in range(100):
            append(broker, handle, b"%d" % key, b"v")
    broker.cleaner.compact(broker.image.topics.values(), client.now_ms)
    assert offsets(broker, handle) == list(range(100, 200))
    assert broker.plane.cleaner_offsets() == [("prices", 0, 200)]
    assert broker.cleaner.done > 3
