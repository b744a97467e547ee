"""`Leader.to_bytes` and `from_bytes`: a leader that goes on in another process."""

from random import Random
from typing import Any

import ottla
import pytest
from crc32c import crc32c
from support.histories import producer_of
from support.producing import captured_sets

SETTINGS: dict[str, Any] = {"unknown_producer": "accept", "transaction_verification": False}


def answer(leader: ottla.Leader, one: Any) -> tuple[Any, ...]:
    verdict = leader.append(one.records, now_ms=one.now_ms, origin=one.origin, transactional_id="t")
    return (
        verdict.accepted, verdict.error, verdict.error_message, verdict.base_offset,
        verdict.last_offset, verdict.is_duplicate, verdict.stored,
    )  # fmt: skip


def known(leader: ottla.Leader) -> tuple[Any, ...]:
    return (
        leader.log_start_offset, leader.high_watermark, leader.log_end_offset,
        leader.last_stable_offset, leader.first_unstable_offset, leader.producer_end_offset,
        leader.snapshot(), [producer_of(producer) for producer in leader.producers],
        leader.aborted_transactions,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_a_leader_that_is_written_and_read_decides_as_one_that_lives_on(seed: int) -> None:
    random = Random(seed)
    leader, again = ottla.Leader(**SETTINGS), ottla.Leader(**SETTINGS)
    kinds = set()
    for one in captured_sets(seed):
        if random.random() < 0.1:
            leader.expire_producers(one.now_ms)
            again.expire_producers(one.now_ms)
        if random.random() < 0.2:
            mark = random.randrange(leader.log_end_offset + 1)
            leader.advance_high_watermark(mark)
            again.advance_high_watermark(mark)
        if random.random() < 0.6:
            again = ottla.Leader.from_bytes(again.to_bytes(), **SETTINGS)
        expected = answer(leader, one)
        assert answer(again, one) == expected
        kinds.add(expected[1])
    assert len(kinds) > 1
    assert known(again) == known(leader)
    assert again.to_bytes() == leader.to_bytes()


def a_state() -> bytes:
    leader = ottla.Leader(**SETTINGS)
    for one in captured_sets(3):
        answer(leader, one)
    return leader.to_bytes()


def test_bytes_that_are_cut_changed_or_of_another_version_are_refused() -> None:
    state = a_state()
    for end in range(len(state)):
        with pytest.raises(ValueError, match="state"):
            ottla.Leader.from_bytes(state[:end])
    for position in range(len(state)):
        changed = bytearray(state)
        changed[position] ^= 1 << position % 8
        with pytest.raises(ValueError, match="state"):
            ottla.Leader.from_bytes(changed)
    with pytest.raises(ValueError, match="version 2, expected 1"):
        ottla.Leader.from_bytes(state[:4] + b"\0\2" + state[6:])


def test_hostile_bytes_with_a_right_checksum_neither_panic_nor_take_memory() -> None:
    state, random = a_state(), Random(5)
    refused = 0
    for _ in range(3_000):
        body = bytearray(state[10:])
        for _ in range(random.randrange(1, 4)):
            position = random.randrange(len(body))
            body[position : position + 4] = random.choice(
                [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0" * 4]
            )
        hostile = state[:6] + crc32c(bytes(body)).to_bytes(4, "big") + bytes(body)
        try:
            leader = ottla.Leader.from_bytes(hostile, **SETTINGS)
        except ValueError:
            refused += 1
            continue
        for one in captured_sets(3, 5):
            answer(leader, one)
    assert refused
