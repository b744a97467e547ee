"""Fetch through a data plane: what is read of each partition, and when."""

from typing import Any
from uuid import UUID

import pytest
from ottla import TopicConfig
from ottla._engine import DataPlane
from support.plane_frames import (
    CODE,
    FETCH_VERSIONS,
    Asked,
    Plane,
    batch,
    fetch_answer,
    values,
)

T = ("t", 0)


def sizes(answer: Any) -> list[int]:
    """Return how many bytes of records the partitions of an answer have."""
    return [len(found.records) for topic in answer.responses for found in topic.partitions]


@pytest.fixture
def plane() -> Plane:
    """Return a plane with a partition of three batches, of offsets 0 to 1, 2, and 3."""
    plane = Plane()
    plane.open()
    for records in (batch(b"a", b"b"), batch(b"c"), batch(b"d")):
        plane.append(records)
    return plane


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_whole_batches_from_the_one_that_holds_the_offset_in_every_version(
    plane: Plane, version: int
) -> None:
    read = {offset: values(plane.read(offset, version=version).records) for offset in range(5)}
    assert read == {
        0: [b"a", b"b", b"c", b"d"],
        1: [b"a", b"b", b"c", b"d"],
        2: [b"c", b"d"],
        3: [b"d"],
        4: [],
    }


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_offsets_of_the_partition_are_told_in_every_version(plane: Plane, version: int) -> None:
    plane.engine.delete_records(plane.handles[T], 2)
    found = plane.read(3, version=version)
    assert (found.high_watermark, found.last_stable_offset, found.error_code) == (4, 4, 0)
    if version >= 5:
        assert found.log_start_offset == 2
    if version >= 11:
        assert found.preferred_read_replica == -1


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_an_offset_outside_of_the_log_is_out_of_range(plane: Plane, version: int) -> None:
    plane.engine.delete_records(plane.handles[T], 2)
    for offset in (-1, 0, 1, 5):
        found = plane.read(offset, version=version)
        assert found.error_code == CODE.OFFSET_OUT_OF_RANGE
        assert (found.high_watermark, values(found.records)) == (-1, [])
        assert found.aborted_transactions is None


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_what_is_not_here_is_unknown_in_every_version(plane: Plane, version: int) -> None:
    unknown = CODE.UNKNOWN_TOPIC_OR_PARTITION
    assert plane.read(partition=1, version=version).error_code == unknown
    other = plane.read(topic="u", version=version, topic_id=UUID(int=9)).error_code
    assert other == (CODE.UNKNOWN_TOPIC_ID if version >= 13 else unknown)


def test_sizes_bound_what_is_read_but_never_cut_a_batch(plane: Plane) -> None:
    size = len(batch(b"c"))
    first = len(batch(b"a", b"b"))
    for limit in range(1, first + 3 * size):
        found = plane.read(Asked(0, max_bytes=limit))
        expected = 2 + sum(limit >= first + more * size for more in (1, 2))
        assert len(values(found.records)) == expected, limit
        whole = plane.read(0, max_bytes=limit)
        assert whole.records == found.records


def test_the_first_batch_of_an_answer_is_whole_even_if_larger(plane: Plane) -> None:
    """KIP-74: a consumer must get on, but one batch that is too large is enough."""
    plane.open(partition=1)
    plane.append(batch(b"x"), partition=1)
    answer = plane.fetch({T: Asked(4, max_bytes=1), ("t", 1): Asked(0, max_bytes=1)})
    assert sizes(answer) == [0, len(batch(b"x"))]
    answer = plane.fetch({T: Asked(0, max_bytes=1), ("t", 1): Asked(0, max_bytes=1)})
    assert sizes(answer) == [len(batch(b"a", b"b")), 0]


def test_a_fetch_waits_for_its_bytes_and_its_time(plane: Plane) -> None:
    asked = {T: 4}
    waiting = plane.fetched(asked, max_wait_ms=500, min_bytes=1)
    assert (waiting.answer, waiting.max_wait_ms) == (None, 500)
    assert waiting.handles == (plane.handles[T],)
    produced = plane.produced({T: batch(b"e")})
    assert produced.moved == waiting.handles
    again = fetch_answer(12, plane.fetched(asked, max_wait_ms=500, min_bytes=1))
    assert values(again.responses[0].partitions[0].records) == [b"e"]
    size = len(batch(b"e"))
    assert plane.fetched(asked, max_wait_ms=500, min_bytes=size).answer is not None
    assert plane.fetched(asked, max_wait_ms=500, min_bytes=size + 1).answer is None
    due = plane.fetched(asked, max_wait_ms=500, min_bytes=size + 1, must_answer=True)
    assert due.answer is not None


def test_nobody_waits_where_there_is_an_error_or_no_time(plane: Plane) -> None:
    assert plane.fetched({T: 9}, max_wait_ms=500).answer is not None
    assert plane.fetched({T: 4}, max_wait_ms=0).answer is not None
    assert plane.fetched({T: 4}, max_wait_ms=500, min_bytes=0).answer is not None
    assert plane.fetched({}, max_wait_ms=500).answer is not None
    refused = plane.fetched({T: 4}, max_wait_ms=500, refused={T: 29})
    assert fetch_answer(12, refused).responses[0].partitions[0].error_code == 29


def test_a_leader_epoch_that_is_another_is_told_apart(plane: Plane) -> None:
    plane.engine.configure(plane.handles[T], leader_epoch=5)
    codes = [plane.read(Asked(0, current_leader_epoch=epoch)).error_code for epoch in (-1, 4, 5, 6)]
    assert codes == [0, CODE.FENCED_LEADER_EPOCH, 0, CODE.UNKNOWN_LEADER_EPOCH]


def test_logs_that_diverge_are_told_where(plane: Plane) -> None:
    """KIP-595: epoch 0 ends at offset 4, epoch 5 goes on to the end."""
    plane.engine.configure(plane.handles[T], leader_epoch=5)
    plane.append(batch(b"e"))
    found = plane.read(Asked(5, last_fetched_epoch=0))
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 4)
    assert (found.error_code, found.records) == (0, b"")
    same = plane.read(Asked(4, last_fetched_epoch=0))
    assert (same.diverging_epoch, values(same.records)) == (None, [b"e"])
    between = plane.read(Asked(4, last_fetched_epoch=3))
    assert (between.diverging_epoch.epoch, between.diverging_epoch.end_offset) == (0, 4)
    above = plane.read(Asked(4, last_fetched_epoch=6))
    assert above.error_code == CODE.OFFSET_OUT_OF_RANGE


def test_consumers_read_what_is_replicated_and_followers_all(plane: Plane) -> None:
    handle = plane.handles[T]
    plane.engine.configure(handle, in_sync_replicas=2)
    plane.append(batch(b"e"))
    assert values(plane.read(3).records) == [b"d"]
    assert values(plane.read(3, replica_id=2).records) == [b"d", b"e"]
    assert values(plane.read(3, replica_id=2, version=15).records) == [b"d", b"e"]
    assert (plane.read(4).error_code, plane.read(4).records) == (0, b"")
    plane.engine.advance_high_watermark(handle, 5)
    assert values(plane.read(4).records) == [b"e"]


def test_large_answers_come_in_parts_and_small_ones_in_one() -> None:
    plane = Plane()
    plane.open()
    for _ in range(40):
        plane.append(batch(b"x" * 9000))
    fetched = plane.fetched({T: 0})
    assert fetched.answer is not None
    assert len(fetched.answer) > 2
    records = fetch_answer(12, fetched).responses[0].partitions[0].records
    assert values(records) == [b"x" * 9000] * 40
    small = plane.fetched({T: 39}).answer
    assert small is not None
    assert len(small) == 1


def test_segments_are_read_one_after_the_other() -> None:
    plane = Plane()
    handle = plane.open(settings=TopicConfig(segment_bytes=400))
    for number in range(20):
        plane.append(batch(b"%d" % number))
    segments = plane.engine.segments(handle)
    assert [base for base, _ in segments] == [0, 5, 10, 15]
    assert sum(size for _, size in segments) == plane.engine.stored_bytes
    offset, found = 0, []
    while records := plane.read(offset).records:
        found += values(records)
        offset = len(found)
    assert found == [b"%d" % number for number in range(20)]


def test_aborted_transactions_are_named_for_readers_of_committed_records() -> None:
    plane = Plane(DataPlane(transaction_verification=False))
    handle = plane.open()
    call: dict[str, Any] = {"transactional_id": "x", "version": 9}

    def write(producer_id: int, sequence: int) -> None:
        data = batch(
            is_transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        found = plane.append(data, **call)
        assert found.error_code == 0

    def end(producer_id: int, *, commit: bool) -> None:
        verdict = plane.engine.end_transaction(
            handle,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            commit=commit,
            now_ms=0,
        )
        assert verdict.accepted

    write(1, 0)
    write(2, 0)
    plane.append(batch(b"plain"))
    assert plane.engine.offsets(handle) == (0, 0, 3, 3)
    waiting = plane.read(0, isolation_level=1)
    assert (waiting.records, waiting.aborted_transactions) == (b"", [])
    end(2, commit=False)
    assert plane.read(0, isolation_level=1).last_stable_offset == 0
    end(1, commit=False)
    found = plane.read(0, isolation_level=1)
    aborted = [(one.producer_id, one.first_offset) for one in found.aborted_transactions]
    assert aborted == [(1, 0), (2, 1)]
    assert plane.read(0).aborted_transactions is None
    write(1, 1)
    end(1, commit=True)
    assert plane.read(5, isolation_level=1).aborted_transactions == []


def test_two_isolation_levels_end_at_different_offsets() -> None:
    plane = Plane(DataPlane(transaction_verification=False))
    plane.open()
    plane.append(batch(b"a"))
    fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    open_one = batch(b"b", is_transactional=True, **fields)
    plane.append(open_one, transactional_id="x")
    assert values(plane.read(0).records) == [b"a", b"b"]
    assert values(plane.read(0, isolation_level=1).records) == [b"a"]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_errors_of_an_answer_are_told_beside_it_in_every_version(
    plane: Plane, version: int
) -> None:
    for number in (1, 2, 3):
        plane.open(partition=number)
    asked: dict[tuple[str, int], Asked | int] = {T: 0, ("t", 1): 9, ("t", 2): -7, ("t", 3): 0}
    refused = {("t", 3): int(CODE.TOPIC_AUTHORIZATION_FAILED)}
    found = plane.fetched(asked, version=version, refused=refused)
    assert found.errors == (CODE.OFFSET_OUT_OF_RANGE, CODE.TOPIC_AUTHORIZATION_FAILED)
    assert plane.fetched({T: 0}, version=version).errors == ()
    waiting = plane.fetched({T: 4}, version=version, max_wait_ms=500)
    assert (waiting.answer, waiting.errors) == (None, ())


def test_the_error_of_a_session_is_told_beside_its_answer(plane: Plane) -> None:
    found = plane.fetched({}, session=(77, 1))
    assert found.errors == (CODE.FETCH_SESSION_ID_NOT_FOUND,)
    # Each answer has the error of a partition until it is over.
    session = plane.fetch({T: 0, ("t", 1): 0}, session=(0, 0)).session_id
    epochs = (plane.fetched({T: 4}, session=(session, epoch)) for epoch in (1, 2))
    assert [each.errors for each in epochs] == [(CODE.UNKNOWN_TOPIC_OR_PARTITION,)] * 2
