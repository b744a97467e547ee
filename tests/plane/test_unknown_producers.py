"""Producers of which a log knows something, nothing more, or nothing at all (KIP-98, KIP-192)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ottla import NewRecord, TopicConfig, build_batch
from ottla._engine import DataPlane
from support.plane_frames import CODE, NOW_MS, PRODUCE_VERSIONS, Plane, batch
from support.wire_verdicts import told_by

if TYPE_CHECKING:
    from pathlib import Path

TOLD_SINCE = 8
LOG_START_SINCE = 5
UNKNOWN = CODE.UNKNOWN_PRODUCER_ID
OUT_OF_ORDER = CODE.OUT_OF_ORDER_SEQUENCE_NUMBER


def data(sequence: int, *, epoch: int = 0, producer_id: int = 7, count: int = 1) -> bytes:
    return batch(
        *[b"v"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def opened(**options: Any) -> Plane:
    plane = Plane(DataPlane(**options))
    plane.open()
    return plane


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_sequences_and_epochs_are_judged_alike_in_every_version(version: int) -> None:
    plane = opened()
    answered = [
        (plane.append(records, version=version).error_code, plane.engine.offsets(0)[3])
        for records in (
            data(0, epoch=3, count=2),
            data(3, epoch=3),
            data(2, epoch=2),
            data(1, epoch=4),
            data(2, epoch=3),
            data(0, epoch=4),
            data(3, epoch=3),
        )
    ]
    assert answered == [
        (0, 2),
        (OUT_OF_ORDER, 2),
        (CODE.INVALID_PRODUCER_EPOCH, 2),
        (OUT_OF_ORDER, 2),
        (0, 3),
        (0, 4),
        (CODE.INVALID_PRODUCER_EPOCH, 4),
    ]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize(
    ("profile", "mode", "told_since"),
    [
        ("strict", "auto", TOLD_SINCE),
        ("strict", "unknown", 0),
        ("strict", "accept", 99),
        ("kafka", "auto", 99),
        ("kafka", "unknown", 0),
        ("kafka", "accept", 99),
    ],
)
def test_an_unknown_producer_is_told_so_or_taken_by_mode_and_version(
    profile: str, mode: str, told_since: int, version: int
) -> None:
    plane = opened(profile=profile, unknown_producer=mode)
    found = plane.append(data(5), version=version)
    if version >= told_since:
        assert (found.error_code, plane.engine.offsets(0)[3]) == (UNKNOWN, 0)
        # Whoever begins at 0 is known from then on.
        assert plane.append(data(0), version=version).error_code == 0
    else:
        assert (found.error_code, found.base_offset) == (0, 0)
        assert plane.append(data(6), version=version).error_code == 0
        assert plane.append(data(8), version=version).error_code == OUT_OF_ORDER


@pytest.mark.parametrize("version", range(TOLD_SINCE, 14))
def test_a_producer_that_has_expired_learns_that_its_records_are_deleted(version: int) -> None:
    """Its last offset is below the log start: a client sees that nothing else was lost."""
    plane = opened()
    last = plane.append(data(0, count=3), version=version).base_offset + 2
    plane.append(batch(), version=version)
    plane.engine.delete_records(0, 3)
    plane.engine.expire_producers(NOW_MS + 86_400_000)
    found = plane.append(data(3), version=version)
    assert (found.error_code, found.base_offset) == (UNKNOWN, -1)
    assert found.log_start_offset == 3 > last
    assert plane.append(data(0, epoch=1), version=version).error_code == 0


def test_a_producer_is_known_though_its_records_are_deleted() -> None:
    """As in Kafka since 2.4: a batch that is sent again is not stored twice."""
    plane = opened()
    plane.append(data(0))
    plane.append(data(1))
    plane.engine.delete_records(0, 2)
    assert plane.append(data(1)).base_offset == 1
    assert plane.append(data(3)).error_code == OUT_OF_ORDER
    assert plane.append(data(2)).base_offset == 2


NO_KEYS = TopicConfig(
    cleanup_policy="compact",
    max_message_bytes=500,
    segment_bytes=450,
    message_timestamp_before_max_ms=1000,
)


def keyed(*, value: bytes = b"v", timestamp: int = NOW_MS, **fields: Any) -> bytes:
    return build_batch([NewRecord(b"k", value, timestamp=timestamp)], **fields)


DAMAGED = keyed()[:-1] + b"\xff"
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3}
# What is sent, how, and the code it gets. The log begins at offset 2, the producer at sequence 1.
ANSWERS: list[tuple[bytes | None, dict[str, Any], int]] = [
    (keyed(), {}, 0),
    (keyed(), {"acks": 1}, 0),
    (keyed(base_sequence=0, **PRODUCER), {}, 0),
    (DAMAGED, {}, CODE.CORRUPT_MESSAGE),
    (keyed(value=b"v" * 500), {}, CODE.MESSAGE_TOO_LARGE),
    (keyed(value=b"v" * 400), {}, CODE.RECORD_LIST_TOO_LARGE),
    (keyed(timestamp=NOW_MS - 1001), {}, CODE.INVALID_TIMESTAMP),
    (batch(), {}, CODE.INVALID_RECORD),
    (None, {}, CODE.INVALID_RECORD),
    (keyed(base_sequence=9, **PRODUCER), {}, OUT_OF_ORDER),
    (
        keyed(base_sequence=0, producer_id=7, producer_epoch=1),
        {},
        CODE.INVALID_PRODUCER_EPOCH,
    ),
    (keyed(base_sequence=9, producer_id=8, producer_epoch=0), {}, UNKNOWN),
    (
        keyed(base_sequence=1, is_transactional=True, **PRODUCER),
        {},
        CODE.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    (keyed(), {"acks": 7}, CODE.INVALID_REQUIRED_ACKS),
    (keyed(), {"refused": {("t", 0): 29}}, CODE.TOPIC_AUTHORIZATION_FAILED),
]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize(("records", "call", "code"), ANSWERS, ids=lambda each: str(each)[:20])
def test_the_log_start_is_in_every_answer_of_every_version_that_has_it(
    records: bytes | None, call: dict[str, Any], code: int, version: int
) -> None:
    plane = opened(unknown_producer="unknown")
    for _ in range(2):
        assert plane.append(keyed()).error_code == 0
    plane.append(keyed(base_sequence=0, **PRODUCER))
    plane.engine.configure(0, settings=NO_KEYS)
    plane.engine.delete_records(0, 2)
    produced = plane.produced({("t", 0): records}, version=version, **call)
    assert produced.answer is not None
    found = told_by(version, b"".join(produced.answer))
    is_old = version < TOLD_SINCE and code == CODE.INVALID_RECORD
    assert found.code == (CODE.INVALID_REQUEST if is_old else code)
    assert found.log_start_offset == (2 if version >= LOG_START_SINCE else -1)


@pytest.mark.parametrize(
    ("options", "acks", "code"),
    [
        ({"is_internal": True}, 1, CODE.INVALID_TOPIC_EXCEPTION),
        ({"min_insync_replicas": 2}, -1, CODE.NOT_ENOUGH_REPLICAS),
    ],
)
def test_the_log_start_is_told_where_nothing_may_be_appended(
    options: dict[str, Any], acks: int, code: int
) -> None:
    plane = Plane()
    plane.open(next_offset=5, **options)
    found = plane.append(batch(), acks=acks)
    assert (found.error_code, found.log_start_offset) == (code, 5)


def test_the_log_start_is_told_where_there_is_no_room() -> None:
    plane = Plane(DataPlane(max_stored_bytes=10))
    plane.open(next_offset=5)
    found = plane.append(batch())
    assert (found.error_code, found.log_start_offset) == (CODE.KAFKA_STORAGE_ERROR, 5)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_the_log_start_of_what_is_not_here_is_unknown(version: int) -> None:
    plane = opened()
    found = plane.append(batch(), partition=9, version=version)
    assert (found.error_code, found.base_offset) == (CODE.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert found.log_start_offset == -1


@pytest.mark.parametrize("is_clean", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize(("profile", "answer"), [("strict", UNKNOWN), ("kafka", CODE.NONE)])
def test_a_start_on_a_log_that_retention_has_emptied_knows_no_producer(
    tmp_path: Path, profile: str, answer: int, is_clean: bool
) -> None:
    directory = tmp_path / "t-0"
    plane = Plane(DataPlane(profile=profile))
    handle = plane.open(directory=str(directory), retention_ms=1)
    assert [plane.append(data(sequence)).error_code for sequence in range(3)] == [0, 0, 0]
    plane.engine.apply_retention(NOW_MS + 10_000)
    # As long as it runs, it knows the producer: retention forgets nobody (`producer-state.md` §8).
    assert plane.engine.offsets(handle)[0] == 3
    assert plane.append(data(3)).error_code == 0
    plane.engine.apply_retention(NOW_MS + 20_000)
    assert plane.engine.offsets(handle)[0] == 4
    assert (directory / f"{4:020}.snapshot").exists()
    if is_clean:
        plane.engine.shut_down(handle)
    plane.engine.close(handle)
    # A start of Kafka deletes snapshots that are not above the log start, this one included.
    again = Plane(DataPlane(profile=profile))
    handle = again.open(
        directory=str(directory), retention_ms=1, is_clean=is_clean, log_start_offset=4
    )
    assert again.engine.offsets(handle) == (4, 4, 4, 4)
    assert not (directory / f"{4:020}.snapshot").exists()
    assert again.append(data(4)).error_code == answer
