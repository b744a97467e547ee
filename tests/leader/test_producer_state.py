"""What a partition lets producers append: rows of the guide to producer state, a test each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import ottla
import pytest
from support.broker_log import BrokerLog

NOW = 1_700_000_000_000
MAX = 2**31 - 1

INVALID_EPOCH, INVALID_TXN, OUT_OF_ORDER, UNKNOWN, FENCED = 47, 48, 45, 59, 52


def batch(
    epoch: int,
    first: int,
    count: int = 1,
    *,
    producer_id: int = 7,
    is_transactional: bool = False,
) -> bytes:
    return ottla.build_batch(
        [ottla.NewRecord(value=b"v", timestamp=NOW)] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first,
        is_transactional=is_transactional,
    )


def a_leader(**settings: Any) -> ottla.Leader:
    defaults: dict[str, Any] = {"profile": "kafka", "transaction_verification": False}
    return ottla.Leader(**defaults | settings)


def send(leader: ottla.Leader, records: bytes, **request: Any) -> ottla.Verdict:
    defaults: dict[str, Any] = {"now_ms": NOW, "api_version": 9, "transactional_id": "t"}
    return leader.append(records, **defaults | request)


def end(leader: ottla.Leader, epoch: int, *, commit: bool = True, **fields: Any) -> ottla.Verdict:
    fields = {"producer_id": 7, "coordinator_epoch": 0} | fields
    return leader.end_transaction(
        fields["producer_id"],
        epoch,
        coordinator_epoch=fields["coordinator_epoch"],
        commit=commit,
        now_ms=NOW,
    )


# (epoch, first sequence, count) of what is in the log, or ("marker", epoch); then what comes; then
# the error code. Answers of Apache Kafka 4.1.2.
ROWS: list[tuple[list[tuple[Any, ...]], tuple[int, int, int], int]] = [
    ([], (0, 17, 1), 0),
    ([], (3, MAX, 1), 0),
    ([(0, 0, 3)], (0, 3, 1), 0),
    ([(0, 0, 3)], (0, 4, 1), OUT_OF_ORDER),
    ([(0, 0, 3)], (0, 2, 2), OUT_OF_ORDER),
    ([(0, 0, 3)], (1, 0, 1), 0),
    ([(0, 0, 3)], (1, 3, 1), OUT_OF_ORDER),
    ([(1, 0, 3)], (0, 3, 1), INVALID_EPOCH),
    ([(0, MAX, 1)], (0, 0, 1), 0),
    ([(0, MAX, 1)], (0, 1, 1), OUT_OF_ORDER),
    ([(0, MAX - 1, 4)], (0, 2, 1), 0),
    ([("marker", 2)], (2, 5, 1), OUT_OF_ORDER),
    ([("marker", 2)], (2, 0, 1), 0),
    ([("marker", 2)], (0, 0, 1), INVALID_EPOCH),
    ([(0, 0, 3), ("marker", 0)], (0, 3, 1), 0),
    ([(0, 0, 3), ("marker", 1)], (1, 3, 1), OUT_OF_ORDER),
    ([(0, 0, 3), ("marker", 1)], (1, 0, 1), 0),
    ([(0, 0, 3), ("marker", 1)], (0, 3, 1), INVALID_EPOCH),
    ([(5, 0, 1)], (32767, 0, 1), 0),
]


@pytest.mark.parametrize(("before", "comes", "code"), ROWS)
def test_sequence_and_epoch_decide_as_in_kafka(
    before: list[tuple[Any, ...]], comes: tuple[int, int, int], code: int
) -> None:
    leader = a_leader()
    for step in before:
        verdict = end(leader, step[1]) if step[0] == "marker" else send(leader, batch(*step))
        assert verdict.accepted
    assert send(leader, batch(*comes)).error == code


def test_the_coordinator_itself_may_leave_gaps_but_not_go_back_an_epoch() -> None:
    leader = a_leader()
    send(leader, batch(1, 0))
    assert send(leader, batch(1, 5), origin="coordinator").accepted
    assert send(leader, batch(0, 6), origin="coordinator").error == INVALID_EPOCH


def test_duplicates_of_the_last_five_batches_are_answered_with_their_offsets() -> None:
    leader = a_leader()
    for sequence in range(6):
        send(leader, batch(0, sequence))
    again = send(leader, batch(0, 1))
    assert (again.accepted, again.is_duplicate, again.base_offset) == (True, True, 1)
    assert again.stored == b""
    assert again.log_append_time_ms == NOW
    assert send(leader, batch(0, 0)).error == OUT_OF_ORDER
    assert leader.log_end_offset == 6


def test_refusals_say_what_was_found_and_expected() -> None:
    leader = a_leader()
    send(leader, batch(1, 0, 3))
    message = send(leader, batch(1, 9)).error_message
    assert message == "producer 7 of epoch 1 sent sequence 9, expected 3"


@pytest.mark.parametrize(
    ("profile", "unknown_producer", "api_version", "code"),
    [
        ("strict", "auto", 8, UNKNOWN),
        ("strict", "auto", 7, 0),
        ("strict", "auto", None, 0),
        ("strict", "unknown", 7, UNKNOWN),
        ("strict", "accept", 11, 0),
        ("kafka", "auto", 11, 0),
        ("kafka", "unknown", 3, UNKNOWN),
    ],
)
def test_an_unknown_producer_is_taken_or_told_to_start_again(
    profile: str, unknown_producer: str, api_version: int | None, code: int
) -> None:
    leader = a_leader(profile=profile, unknown_producer=unknown_producer)
    leader.append(ottla.build_batch([ottla.NewRecord()] * 4), now_ms=NOW)
    leader.advance_high_watermark(4)
    leader.delete_records(3)
    verdict = send(leader, batch(0, 5), api_version=api_version)
    assert verdict.error == code
    assert verdict.log_start_offset == 3


def test_a_producer_of_which_a_marker_is_left_is_unknown_too() -> None:
    leader = a_leader(unknown_producer="unknown")
    end(leader, 2)
    assert send(leader, batch(2, 5)).error == UNKNOWN
    assert send(leader, batch(3, 5)).error == OUT_OF_ORDER


def test_plain_records_inside_a_transaction_are_refused() -> None:
    leader = a_leader()
    send(leader, batch(0, 0, is_transactional=True))
    assert send(leader, batch(0, 1)).error == INVALID_TXN


def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    leader = a_leader()
    end(leader, 0, coordinator_epoch=3)
    assert end(leader, 0, coordinator_epoch=2).error == FENCED


def test_an_aborted_transaction_holds_readers_until_it_is_replicated() -> None:
    leader = a_leader()
    send(leader, batch(0, 0, 2, is_transactional=True))
    leader.advance_high_watermark(2)
    assert (leader.last_stable_offset, leader.first_unstable_offset) == (0, 0)
    end(leader, 0, commit=False)
    assert leader.last_stable_offset == 0
    leader.advance_high_watermark(3)
    assert (leader.last_stable_offset, leader.first_unstable_offset) == (3, None)
    aborted = ottla.AbortedTransaction(7, first_offset=0, last_offset=2, last_stable_offset=3)
    assert leader.aborted_transactions == (aborted,)
    assert leader.aborted_between(2, 3) == (aborted,)
    assert leader.aborted_between(3, 9) == ()


def test_an_entry_of_the_transaction_index_has_34_bytes() -> None:
    entry = ottla.AbortedTransaction(1, first_offset=2, last_offset=3, last_stable_offset=4)
    assert entry.to_bytes().hex() == "0000" + "".join(f"{n:016x}" for n in (1, 2, 3, 4))


@pytest.mark.parametrize(("profile", "stable"), [("strict", 2), ("kafka", 1)])
def test_deleting_into_an_open_transaction_moves_the_stable_offset(
    profile: str, stable: int
) -> None:
    leader = a_leader(profile=profile)
    send(leader, batch(0, 0, is_transactional=True))
    send(leader, batch(0, 1, 3, is_transactional=True))
    leader.advance_high_watermark(4)
    leader.delete_records(2, batch_base_offset=1)
    assert leader.last_stable_offset == stable


def with_holes(**settings: Any) -> BrokerLog:
    """Offsets 0 to 4 of an open transaction, 10 to 14 and 20 to 24 of none, on a follower."""
    log = BrokerLog(leader_epoch=7, transaction_verification=False, **settings)
    for base in (0, 10, 20):
        producer: dict[str, Any] = (
            {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0} if base == 0 else {}
        )
        data = ottla.build_batch(
            [ottla.NewRecord(value=b"v", timestamp=NOW)] * 5,
            base_offset=base,
            partition_leader_epoch=3,
            **producer,
            is_transactional=base == 0,
        )
        log.store(log.leader.append_as_follower(data, now_ms=NOW))
    log.leader.advance_high_watermark(25)
    return log


# The log start, and the last stable offset that Apache Kafka 4.1.2 gives there.
STABLE_IN_HOLES = {0: 0, 3: 0, 4: 0, 5: 10, 7: 10, 10: 10, 12: 10, 15: 20, 17: 20, 22: 20, 25: 25}


@pytest.mark.parametrize("start", STABLE_IN_HOLES)
def test_a_log_start_between_batches_moves_the_stable_offset_of_kafka_to_the_next(
    start: int,
) -> None:
    log = with_holes(profile="kafka")
    log.delete_records(start)
    assert log.leader.last_stable_offset == STABLE_IN_HOLES[start]
    log = with_holes(profile="strict")
    log.delete_records(start)
    assert log.leader.last_stable_offset == start


@pytest.mark.parametrize(("profile", "stable"), [("kafka", 8), ("strict", 6)])
def test_a_log_start_that_no_batch_follows_is_stable_at_the_end_of_that_moment(
    profile: str, stable: int
) -> None:
    log = with_holes(profile=profile)
    log.truncate(8, NOW)
    assert log.leader.last_stable_offset == 0
    log.delete_records(6)
    assert log.leader.last_stable_offset == stable
    log.store(send(log.leader, ottla.build_batch([ottla.NewRecord(value=b"v", timestamp=NOW)])))
    log.leader.advance_high_watermark(9)
    assert log.leader.last_stable_offset == stable


def test_a_log_cut_between_batches_forgets_the_transaction_below_its_start() -> None:
    for profile in ("kafka", "strict"):
        log = with_holes(profile=profile)
        log.delete_records(6)
        log.truncate(8, NOW)
        assert (log.leader.last_stable_offset, log.leader.first_unstable_offset) == (8, None)


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_begins_with_the_guard_of_its_verification(version: Literal[1, 2]) -> None:
    verification: dict[str, Any] = {"now_ms": NOW, "transaction_version": version}
    leader = a_leader(transaction_verification=True)
    records = batch(0, 0, is_transactional=True)
    assert send(leader, records).error == INVALID_TXN
    guard = leader.begin_verification(7, 0, 0, **verification)
    assert guard is not None
    assert send(leader, records).error == INVALID_TXN
    other = a_leader(transaction_verification=True).begin_verification(7, 0, 0, **verification)
    assert send(leader, records, guard=other).error == INVALID_TXN
    assert send(leader, records, guard=guard).accepted
    assert leader.begin_verification(7, 0, 1, **verification) is None
    assert send(leader, batch(0, 1, is_transactional=True)).accepted


@pytest.mark.parametrize(("version", "error"), [(1, 0), (2, OUT_OF_ORDER)])
def test_only_a_bumped_epoch_must_begin_its_first_transaction_at_0(
    version: Literal[1, 2], error: int
) -> None:
    # Nothing is known of the producer: its records were deleted, or it has expired.
    leader = a_leader(transaction_verification=True)
    guard = leader.begin_verification(7, 0, 5, now_ms=NOW, transaction_version=version)
    assert send(leader, batch(0, 5, is_transactional=True), guard=guard).error == error


@pytest.mark.parametrize(("version", "error"), [(1, INVALID_TXN), (2, 0)])
def test_a_marker_uses_up_a_verification_unless_the_epoch_is_bumped(
    version: Literal[1, 2], error: int
) -> None:
    leader = a_leader(transaction_verification=True)
    guard = leader.begin_verification(7, 0, 0, now_ms=NOW, transaction_version=version)
    assert end(leader, 0).accepted
    assert send(leader, batch(0, 0, is_transactional=True), guard=guard).error == error


@pytest.mark.parametrize("version", [1, 2])
def test_no_batch_overtakes_the_lowest_one_that_was_verified(version: Literal[1, 2]) -> None:
    leader = a_leader(transaction_verification=True)
    for sequence in (1, 0, 2):
        guard = leader.begin_verification(7, 0, sequence, now_ms=NOW, transaction_version=version)
    assert send(leader, batch(0, 1, is_transactional=True), guard=guard).error == OUT_OF_ORDER
    assert send(leader, batch(0, 0, is_transactional=True), guard=guard).accepted


@pytest.mark.parametrize(("silent_ms", "error"), [(999, 0), (1000, INVALID_TXN)])
def test_a_verification_expires_with_producers(silent_ms: int, error: int) -> None:
    config = ottla.TopicConfig(producer_id_expiration_ms=1000)
    leader = a_leader(transaction_verification=True, config=config)
    guard = leader.begin_verification(7, 0, 0, now_ms=NOW)
    leader.expire_producers(NOW + silent_ms)
    assert send(leader, batch(0, 0, is_transactional=True), guard=guard).error == error


def test_a_stale_epoch_is_not_verified() -> None:
    leader = a_leader()
    send(leader, batch(5, 0))
    with pytest.raises(ottla.KafkaError, match="sent epoch 4, expected 5 or above") as caught:
        leader.begin_verification(7, 4, 0, now_ms=NOW)
    assert caught.value.error_code == INVALID_EPOCH


def test_a_producer_expires_unless_its_transaction_is_open() -> None:
    leader = a_leader(config=ottla.TopicConfig(producer_id_expiration_ms=1000))
    send(leader, batch(0, 0))
    send(leader, batch(0, 0, producer_id=8, is_transactional=True))
    leader.expire_producers(NOW + 999)
    assert [producer.producer_id for producer in leader.producers] == [7, 8]
    leader.expire_producers(NOW + 1000)
    assert [producer.producer_id for producer in leader.producers] == [8]


def test_records_above_the_high_watermark_are_not_deleted() -> None:
    leader = a_leader()
    send(leader, batch(0, 0, 3))
    with pytest.raises(ottla.KafkaError, match="offset 1, expected 0 to 0") as caught:
        leader.delete_records(1)
    assert caught.value.error_code == 1
    assert leader.log_start_offset == 0


def test_a_follower_takes_offsets_as_they_are_but_none_twice() -> None:
    leader = a_leader(next_offset=5)
    stored = ottla.build_batch([ottla.NewRecord()], base_offset=9)
    assert leader.append_as_follower(stored, now_ms=NOW).base_offset == 9
    assert leader.log_end_offset == 10
    assert leader.append_as_follower(stored, now_ms=NOW).error == -1


def test_a_follower_adopts_an_older_epoch() -> None:
    leader = a_leader()
    send(leader, batch(5, 0))
    older = ottla.build_batch(
        [ottla.NewRecord()], base_offset=1, producer_id=7, producer_epoch=2, base_sequence=9
    )
    assert leader.append_as_follower(older, now_ms=NOW).accepted
    assert leader.producers[0].producer_epoch == 2


# Written by Apache Kafka 4.1.2: producer 77, epoch 4, sequences 10 to 12 at offsets 100 to 102, a
# transaction open since 100.
GOLDEN = bytes.fromhex(
    "0001cc8e8b2300000001000000000000004d00040000000c0000000000000066000000020000018bcfe56800"
    "ffffffff0000000000000064"
)


def restored(snapshot: bytes | None, *batches: bytes, **given: Any) -> ottla.Leader:
    defaults: dict[str, Any] = {
        "now_ms": NOW,
        "profile": "kafka",
        "transaction_verification": False,
    }
    return ottla.Leader.restore(snapshot, batches, **defaults | given)


def test_a_snapshot_written_by_kafka_is_restored_and_written_byte_for_byte() -> None:
    leader = restored(GOLDEN, snapshot_offset=103)
    assert leader.log_end_offset == 103
    assert leader.snapshot() == GOLDEN
    (producer,) = leader.producers
    assert producer.transaction_first_offset == 100
    assert [(b.base_sequence, b.last_offset) for b in producer.batches] == [(10, 102)]
    goes_on = batch(4, 13, producer_id=77, is_transactional=True)
    assert send(leader, goes_on).base_offset == 103


def ids_in(snapshot: bytes) -> list[int]:
    return [int.from_bytes(snapshot[at : at + 8], "big") for at in range(10, len(snapshot), 46)]


# Java's own HashMap<Long, …> goes over its keys in these orders.
@pytest.mark.parametrize(
    ("come", "order"),
    [
        ([33, 1, 17, 2], [33, 1, 17, 2]),
        ([33, 1, 17, 2, *range(100, 108)], [33, 1, 17, 2, *range(100, 108)]),
        ([33, 1, 17, 2, *range(100, 109)], [33, 1, 2, *range(100, 109), 17]),
        ([65, 33, 1, *range(2, 23)], [65, 33, 1, *range(2, 23)]),
        ([65, 33, 1, *range(2, 24)], [65, 1, *range(2, 24), 33]),
        (list(range(128, -1, -16)), [128, 96, 64, 32, 0, 112, 80, 48, 16]),
        ([2**40 + 5, 5, 2**32, 3], [2**32, 3, 2**40 + 5, 5]),
    ],
)
def test_a_snapshot_orders_its_producers_as_kafkas_table_does(
    come: list[int], order: list[int]
) -> None:
    leader = a_leader()
    for producer_id in come:
        send(leader, batch(0, 0, producer_id=producer_id))
    assert ids_in(leader.snapshot()) == order


def test_the_producers_of_one_set_come_in_the_order_of_a_table_too() -> None:
    come = [49, 33, 2, 1, 17, 65]
    stored = [
        ottla.validate(batch(0, 0, producer_id=producer_id), now_ms=NOW, base_offset=offset).stored
        for offset, producer_id in enumerate(come)
    ]
    leader = a_leader()
    assert leader.append_as_follower(b"".join(stored), now_ms=NOW).accepted
    assert ids_in(leader.snapshot()) == [49, 33, 1, 17, 65, 2]


@pytest.mark.parametrize(
    ("snapshot", "kind", "message"),
    [
        (b"", "snapshot-cut", "of 0 bytes, expected 10"),
        (GOLDEN[:-1], "snapshot-cut", "of 55 bytes, expected 56"),
        (b"\0\2" + GOLDEN[2:], "snapshot-version", "of version 2, expected 1"),
        (GOLDEN[:-1] + b"\0", "snapshot-crc", "with checksum 0xcc8e8b23"),
    ],
)
def test_a_damaged_snapshot_says_what_is_wrong(snapshot: bytes, kind: str, message: str) -> None:
    with pytest.raises(ottla.ProducerSnapshotError, match=message) as caught:
        restored(snapshot, snapshot_offset=103)
    assert caught.value.kind == kind


def test_a_leader_is_unchanged_by_a_truncation_that_fails() -> None:
    leader = a_leader()
    send(leader, batch(0, 0, 3))
    before = (leader.log_end_offset, leader.snapshot(), leader.producers)
    with pytest.raises(ottla.ProducerSnapshotError):
        leader.truncate(1, GOLDEN[:-1], snapshot_offset=1, now_ms=NOW)
    with pytest.raises(ottla.CorruptRecordBatchError):
        leader.truncate(1, None, b"\xff" * 40, now_ms=NOW)
    assert (leader.log_end_offset, leader.snapshot(), leader.producers) == before


def test_truncation_brings_back_what_was_known_there() -> None:
    leader = a_leader()
    stored = [send(leader, batch(0, sequence)).stored for sequence in range(4)]
    leader.truncate(2, None, stored, now_ms=NOW)
    assert leader.log_end_offset == 2
    assert send(leader, batch(0, 3)).error == OUT_OF_ORDER
    assert send(leader, batch(0, 2)).base_offset == 2


def test_a_log_that_contradicts_its_transactions_is_not_restored() -> None:
    first = ottla.build_batch(
        [ottla.NewRecord()],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    plain = ottla.build_batch(
        [ottla.NewRecord()], base_offset=1, producer_id=7, producer_epoch=0, base_sequence=1
    )
    with pytest.raises(ottla.KafkaError, match="the stored batch at offset 1 contradicts the log"):
        restored(None, first + plain)


def test_after_an_unclean_stop_aborted_transactions_are_found_again() -> None:
    leader = a_leader()
    stored = [
        send(leader, batch(0, 0, is_transactional=True)).stored,
        end(leader, 0, commit=False).stored,
    ]
    again = restored(None, *stored, is_recovery=True)
    assert again.aborted_transactions == leader.aborted_transactions
    assert restored(None, *stored).aborted_transactions == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"now_ms": -1}, "now_ms is -1, expected 0 to"),
        ({"now_ms": 2**63}, "now_ms is beyond 64 bits"),
        ({"log_start_offset": 9, "log_end_offset": 3}, "log_start_offset is 9, expected 0 to 3"),
        ({"profile": "lax"}, "profile is"),
        ({"unknown_producer": "maybe"}, "unknown_producer is 'auto', 'unknown' or 'accept'"),
        ({"leader_epoch": -2}, "leader_epoch is -2"),
    ],
)
def test_wrong_settings_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        restored(None, **given)


@pytest.mark.parametrize("records", [None, "text", 5])
def test_what_is_no_bytes_is_refused_and_changes_nothing(records: Any) -> None:
    leader = a_leader()
    with pytest.raises(TypeError, match="expected a bytes-like object"):
        leader.append(records, now_ms=NOW)
    assert leader.log_end_offset == 0
    assert leader.metrics["TotalProduceRequestsPerSec"] == 0


def test_refused_sets_count_as_failed_and_bring_no_bytes_in() -> None:
    leader = a_leader()
    records = batch(0, 0)
    send(leader, records)
    send(leader, records)
    send(leader, batch(0, 9))
    metrics = leader.metrics
    assert metrics["TotalProduceRequestsPerSec"] == 3
    assert metrics["FailedProduceRequestsPerSec"] == 1
    # A duplicate is taken: Kafka counts its bytes and records again.
    assert metrics["BytesInPerSec"] == 2 * len(records)
    assert metrics["MessagesInPerSec"] == 2


def test_a_leader_serves_threads() -> None:
    leader = a_leader()
    records = ottla.build_batch([ottla.NewRecord(value=b"v" * 5000)])
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda _: leader.append(records, now_ms=NOW), range(200)))
    assert sorted(verdict.base_offset for verdict in verdicts) == list(range(200))
