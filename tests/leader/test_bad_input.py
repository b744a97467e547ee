"""What is no record set, no setting, no clock and no snapshot: an error that says which and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ottla
import pytest
from leader.test_producer_state import GOLDEN, NOW, a_leader, batch, end, send

if TYPE_CHECKING:
    from collections.abc import Callable


def told(leader: ottla.Leader) -> Any:
    """Return everything that a leader tells of itself."""
    return (
        leader.snapshot(),
        [(state, state.batches) for state in leader.producers],
        leader.aborted_transactions,
        leader.log_start_offset,
        leader.log_end_offset,
        leader.high_watermark,
        leader.last_stable_offset,
        leader.first_unstable_offset,
        leader.producer_end_offset,
        leader.metrics,
    )


@pytest.fixture
def leader() -> ottla.Leader:
    """Return a leader in the middle of everything: duplicates, an abort, an open transaction."""
    leader = a_leader(profile="strict")
    send(leader, batch(0, 0, 2, is_transactional=True))
    end(leader, 0, commit=False)
    send(leader, batch(0, 2, is_transactional=True))
    leader.advance_high_watermark(2)
    return leader


@pytest.mark.parametrize("empty", [b"", bytearray(), memoryview(b"")])
def test_nothing_at_all_is_refused_in_a_request_and_no_append_without_one(empty: Any) -> None:
    refused = ottla.validate(empty, now_ms=NOW)
    assert (refused.error, refused.error_message) == (87, "no whole record batch, expected one")
    nothing = ottla.validate(empty, now_ms=NOW, api_version=None)
    assert (nothing.accepted, nothing.base_offset, nothing.stored) == (True, -1, b"")


@pytest.mark.parametrize(
    ("records", "name"), [(None, "None"), ("text", "str"), (5, "int"), ([b"a"], "list")]
)
def test_what_is_no_bytes_is_named(records: Any, name: str) -> None:
    with pytest.raises(TypeError, match="expected a bytes-like object") as caught:
        ottla.validate(records, now_ms=NOW)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_mesage_bytes": 1}, "unknown topic setting max_mesage_bytes; did you mean max_mess"),
        ({"max_message_bytes": -1}, "max.message.bytes is '-1', expected a whole number from 0"),
        ({"max_message_bytes": 2**31}, "max.message.bytes is '2147483648', expected a whole"),
        ({"cleanup_policy": "shred"}, "cleanup.policy is 'shred', expected"),
        ({"compression_type": "rar"}, "compression.type is 'rar', expected"),
        ({"message_timestamp_type": "Now"}, "message.timestamp.type is 'Now', expected"),
    ],
)
def test_a_wrong_setting_of_the_topic_is_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ottla.TopicConfig(**setting)


WRONG: dict[str, Callable[[ottla.Leader, Any], Any]] = {
    "append": lambda leader, now: leader.append(batch(0, 3), now_ms=now),
    "append_as_follower": lambda leader, now: leader.append_as_follower(batch(0, 3), now_ms=now),
    "begin_verification": lambda leader, now: leader.begin_verification(9, 0, 0, now_ms=now),
    "end_transaction": lambda leader, now: leader.end_transaction(
        7, 0, coordinator_epoch=0, commit=True, now_ms=now
    ),
    "expire_producers": lambda leader, now: leader.expire_producers(now),
    "truncate": lambda leader, now: leader.truncate(1, now_ms=now),
}


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.parametrize(
    ("now_ms", "message"),
    [
        (-1, "now_ms is -1, expected 0 to 9223372036854775807"),
        (-(2**70), "now_ms is beyond 64 bits, expected 0 to 9223372036854775807"),
        (2**63, "now_ms is beyond 64 bits, expected 0 to 9223372036854775807"),
    ],
)
def test_a_clock_out_of_range_is_named_and_changes_nothing(
    leader: ottla.Leader, call: str, now_ms: int, message: str
) -> None:
    before = told(leader)
    with pytest.raises(ValueError, match=message):
        WRONG[call](leader, now_ms)
    assert told(leader) == before


@pytest.mark.parametrize(
    ("snapshot", "kind"),
    [
        (b"", "snapshot-cut"),
        (GOLDEN[:-1], "snapshot-cut"),
        (b"\0\2" + GOLDEN[2:], "snapshot-version"),
        (GOLDEN[:6] + b"\xff" + GOLDEN[7:], "snapshot-count"),
        (GOLDEN[:-1] + b"\0", "snapshot-crc"),
    ],
)
def test_a_damaged_snapshot_changes_nothing(
    leader: ottla.Leader, snapshot: bytes, kind: str
) -> None:
    before = told(leader)
    with pytest.raises(ottla.ProducerSnapshotError) as caught:
        leader.truncate(1, snapshot, now_ms=NOW)
    assert caught.value.kind == kind
    assert told(leader) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda leader: leader.append(None, now_ms=NOW),
        lambda leader: leader.append(batch(0, 3), now_ms=NOW, api_version=99),
        lambda leader: leader.append(batch(0, 3), now_ms=NOW, origin="stranger"),
        lambda leader: leader.append(batch(0, 3), now_ms="soon"),
        lambda leader: leader.delete_records(99),
        lambda leader: leader.begin_verification(7, -1, 0, now_ms=NOW),
        lambda leader: leader.end_transaction(-1, 0, coordinator_epoch=0, commit=True, now_ms=NOW),
        lambda leader: leader.truncate(1, None, b"\0" * 100, now_ms=NOW),
    ],
)
def test_every_error_leaves_a_leader_as_it_was(
    leader: ottla.Leader, call: Callable[[ottla.Leader], Any]
) -> None:
    before = told(leader)
    with pytest.raises((TypeError, ValueError, ottla.KafkaError)):
        call(leader)
    assert told(leader) == before
