"""The coordinator's log: its layouts, what a restart makes of it, and ids that nobody uses."""

import struct

import ottla
import pytest
from ottla.broker.transactions.log import (
    key_of,
    read_record,
    value_of,
)
from ottla.broker.transactions.metadata import TransactionMetadata, TransactionState
from ottla.broker.transactions.settings import MAX_TRANSACTIONAL_IDS, TransactionSettings
from ottla.protocol.error_code import ErrorCode
from support.coordinating import MINUTE_MS, ORDERS, PAYMENTS, Coordination, by_id

DAY_MS = 24 * 60 * MINUTE_MS
WEEK_MS = 7 * DAY_MS

PREPARED = TransactionMetadata(
    "pay",
    producer_id=7,
    previous_producer_id=7,
    next_producer_id=8000,
    producer_epoch=32767,
    timeout_ms=MINUTE_MS,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({("b", 2), ("a", 1), ("b", 0)}),
    start_ms=5,
    last_update_ms=6,
    transaction_version=2,
)


@pytest.fixture
def world() -> Coordination:
    return Coordination()


def test_a_record_of_version_one_has_these_bytes() -> None:
    # Kafka's layout of TransactionLogValue 1: compact arrays and strings, tags 0 to 2 at the end.
    assert key_of("pay") == bytes.fromhex("0000 0003 706179")
    assert value_of(PREPARED, 2) == bytes.fromhex(
        "0001"  # version
        "0000000000000007 7fff 0000ea60 02"  # producer, epoch, time-out, PrepareCommit
        "03 02 61 02 00000001 00"  # two topics: a, with 1
        "   02 62 03 00000000 00000002 00"  # b, with 0 and 2
        "0000000000000006 0000000000000005"  # last update, start
        "03 00 08 0000000000000007 01 08 0000000000001f40 02 02 0002"
    )


def test_a_record_of_version_zero_has_no_tags() -> None:
    assert value_of(PREPARED, 0) == bytes.fromhex(
        "0000 0000000000000007 7fff 0000ea60 02 00000002"
        "0001 61 00000001 00000001 0001 62 00000002 00000000 00000002"
        "0000000000000006 0000000000000005"
    )


def test_an_id_without_transaction_has_null_for_partitions() -> None:
    empty = TransactionMetadata("pay", 7, producer_epoch=0)
    assert value_of(empty, 0)[17:21] == b"\xff\xff\xff\xff"


def test_the_audit_reads_what_the_coordinator_writes() -> None:
    decoded = ottla.decode_record("__transaction_state", key_of("pay"), value_of(PREPARED, 2))
    assert decoded is not None
    assert decoded["key"]["transactional_id"] == "pay"
    value = decoded["value"]
    assert value["producer_id"] == 7
    assert value["next_producer_id"] == 8000
    assert value["transaction_partitions"] == [
        {"topic": "a", "partition_ids": [1]},
        {"topic": "b", "partition_ids": [0, 2]},
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_record_reads_as_it_was_written(version: int) -> None:
    assert read_record(key_of("pay"), value_of(PREPARED, version)) == ("pay", PREPARED)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\0", None),
        (struct.pack(">hh", 1, 0), None),
        (struct.pack(">hh", 0, 5) + b"abc", None),
        (key_of("t"), b"\0"),
        (key_of("t"), b"\0\2" + bytes(40)),
        (key_of("t"), b"\0\0" + bytes(20)),
        (key_of("t"), value_of(PREPARED, 2)[:-1]),
        (key_of("t"), value_of(PREPARED, 2)[:16] + b"\x08" + value_of(PREPARED, 2)[17:]),
    ],
)
def test_a_record_that_cannot_be_read_is_left_alone(
    world: Coordination, key: bytes | None, value: bytes | None
) -> None:
    partition = world.coordinator.partitions.of("t")
    world.started()
    records = [*world.log[partition], (key, value)]
    world.coordinator.load(partition, 9, records, world.now_ms)
    assert world.state == "Empty"


def test_a_restart_knows_what_the_log_says(world: Coordination) -> None:
    first, second, third = (world.started(name=name) for name in "abc")
    world.add(first, ORDERS, name="a")
    world.end(first, name="a", version=2)
    world.add(second, PAYMENTS, name="b", version=2)
    world.init(third, name="c")
    before = by_id(world.coordinator.transactions())
    world.start()
    assert by_id(world.coordinator.transactions()) == before


@pytest.mark.parametrize("commit", [True, False])
def test_a_restart_completes_what_was_decided(world: Coordination, *, commit: bool) -> None:
    producer = world.started()
    world.add(producer, ORDERS, PAYMENTS)
    world.marker_errors = dict.fromkeys((ORDERS, PAYMENTS), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.end(producer, commit=commit)
    world.marker_errors.clear()
    world.start()
    assert world.taken() == [(ORDERS, commit), (PAYMENTS, commit)]
    assert {marker.coordinator_epoch for marker in world.markers} == {world.coordinator_epoch}
    world.start()
    world.advance(MINUTE_MS)
    assert len(world.markers) == 2


def test_a_transaction_times_out_across_a_restart(world: Coordination) -> None:
    producer = world.started()
    world.add(producer, ORDERS)
    world.advance(MINUTE_MS - 1)
    world.start()
    assert world.state == "Ongoing"
    world.advance(1)
    assert (world.state, world.taken()) == ("CompleteAbort", [(ORDERS, False)])


def test_a_retry_of_an_end_succeeds_across_a_restart(world: Coordination) -> None:
    producer = world.started()
    world.add(producer, ORDERS, version=2)
    answer = world.end(producer, version=2)
    world.start()
    assert world.end(producer, version=2) == answer


def test_a_change_of_id_at_the_end_survives_a_restart_in_between(world: Coordination) -> None:
    world.restore(PREPARED._replace(transactional_id="t"))
    assert (world.known().producer_id, world.known().producer_epoch) == (8000, 0)
    assert {marker.producer_epoch for marker in world.markers} == {32767}


def test_a_partition_that_is_given_up_is_forgotten_with_its_timers(world: Coordination) -> None:
    producer = world.started()
    world.add(producer, ORDERS)
    world.coordinator.give_up(world.coordinator.partitions.of("t"))
    world.advance(10 * MINUTE_MS)
    assert list(world.coordinator.transactions()) == []
    assert (world.markers, world.add(producer, ORDERS)) == ([], ErrorCode.NOT_COORDINATOR)


def test_an_id_expires_a_week_after_its_last_change(world: Coordination) -> None:
    world.started(name="old")
    world.advance(DAY_MS)
    world.started(name="new")
    world.advance(WEEK_MS - DAY_MS - 1)
    assert set(by_id(world.coordinator.transactions())) == {"old", "new"}
    world.advance(1)
    assert set(by_id(world.coordinator.transactions())) == {"new"}
    partition = world.coordinator.partitions.of("old")
    assert world.log[partition][-1] == (key_of("old"), None)
    world.advance(DAY_MS)
    assert set(by_id(world.coordinator.transactions())) == set()
    world.start()
    assert world.coordinator.describe("old") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_that_is_used_does_not_expire(world: Coordination) -> None:
    producer = world.started()
    world.advance(WEEK_MS - 1)
    world.add(producer, ORDERS)
    world.advance(MINUTE_MS)
    world.advance(WEEK_MS - 1)
    assert world.state == "CompleteAbort"
    world.advance(1)
    assert world.coordinator.describe("t") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_whose_tombstone_was_not_written_expires_later(world: Coordination) -> None:
    world.started()
    world.log_error = ErrorCode.KAFKA_STORAGE_ERROR
    world.advance(WEEK_MS)
    assert world.state == "Empty"
    world.log_error = 0
    world.advance(MINUTE_MS)
    assert world.coordinator.describe("t") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_ids_of_an_older_log_expire_after_a_restart(world: Coordination) -> None:
    world.started()
    world.started(name="other")
    world.advance(WEEK_MS - MINUTE_MS)
    world.start()
    world.started(name="new")
    world.advance(MINUTE_MS)
    assert set(by_id(world.coordinator.transactions())) == {"new"}


def test_there_is_a_bound_to_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TRANSACTIONAL_IDS == 100_000
    monkeypatch.setattr("ottla.broker.transactions.coordinator.MAX_TRANSACTIONAL_IDS", 2)
    world = Coordination(TransactionSettings(partition_count=1))
    world.started(name="a")
    world.started(name="b")
    assert world.init(name="c").error_code == ErrorCode.POLICY_VIOLATION
    assert world.init(name="b").error_code == ErrorCode.NONE
