"""Transactions through a data plane: what the coordinator is asked before a Produce (KIP-890)."""

from typing import Any

import pytest
from ottla import KafkaError
from ottla._engine import DataPlane, Verification
from records import crafting
from support.plane_frames import CODE, NOW_MS, PRODUCE_VERSIONS, Plane, batch

T, U = ("t", 0), ("t", 1)


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.open()
    plane.open(partition=1)
    return plane


def data(
    sequence: int = 0, *, producer_id: int = 5, epoch: int = 0, is_transactional: bool = True
) -> bytes:
    return batch(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def asked(plane: Plane, *partitions: tuple[str, int], version: int = 12) -> Verification:
    """Return what the coordinator is asked before these partitions are written to."""
    sets = dict.fromkeys(partitions, data())
    produced = plane.produced(sets, version=version, transactional_id="x")
    assert produced.answer is None
    assert (produced.moved, produced.failed) == ((), False)
    assert produced.to_verify is not None
    return produced.to_verify


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_the_coordinator_is_asked_before_anything_is_done(plane: Plane, version: int) -> None:
    found = asked(plane, T, U, version=version)
    assert (found.transactional_id, found.producer_id, found.producer_epoch) == ("x", 5, 0)
    assert found.partitions == (T, U)
    assert found.adds_partitions == (version >= 12)
    assert plane.engine.offsets(0)[3] == 0


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_what_the_coordinator_allows_is_appended_and_not_asked_again(
    plane: Plane, version: int
) -> None:
    verified = asked(plane, T, version=version)
    call: dict[str, Any] = {"transactional_id": "x", "version": version}
    first = plane.append(data(), verified=verified, **call)
    assert (first.error_code, first.base_offset) == (0, 0)
    second = plane.append(data(1), **call)
    assert (second.error_code, second.base_offset) == (0, 1)
    assert plane.engine.offsets(0) == (0, 0, 2, 2)


def test_what_the_coordinator_refuses_is_refused_alone(plane: Plane) -> None:
    verified = asked(plane, T, U)
    answer = plane.produce(
        {T: data(), U: data()},
        version=12,
        transactional_id="x",
        verified=verified,
        refused={U: CODE.INVALID_TXN_STATE},
    )
    codes = [found.error_code for found in answer.responses[0].partition_responses]
    assert codes == [0, CODE.INVALID_TXN_STATE]


def test_a_partition_that_is_refused_or_unknown_is_not_asked_about(plane: Plane) -> None:
    sets = {T: data(), U: data(), ("u", 0): data()}
    produced = plane.produced(sets, version=9, transactional_id="x", refused={U: 29})
    assert produced.to_verify is not None
    assert produced.to_verify.partitions == (T,)


def test_a_guard_is_used_up_by_the_batch_it_is_for(plane: Plane) -> None:
    verified = asked(plane, T)
    call: dict[str, Any] = {"transactional_id": "x", "version": 12, "verified": verified}
    assert plane.append(data(), **call).error_code == 0
    plane.engine.end_transaction(
        0, producer_id=5, producer_epoch=1, coordinator_epoch=0, commit=True, now_ms=0
    )
    again = plane.append(data(epoch=1), **call)
    assert again.error_code == CODE.INVALID_TXN_STATE


def test_an_epoch_that_is_fenced_is_not_asked_about(plane: Plane) -> None:
    plane.engine.end_transaction(
        0, producer_id=5, producer_epoch=3, coordinator_epoch=0, commit=False, now_ms=0
    )
    found = plane.append(data(epoch=2), transactional_id="x")
    assert found.error_code == CODE.INVALID_PRODUCER_EPOCH


def test_a_transaction_needs_a_transactional_id(plane: Plane) -> None:
    found = plane.append(data())
    assert found.error_code == CODE.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_idempotent_batches_are_nobodys_question(plane: Plane) -> None:
    found = plane.append(data(is_transactional=False), transactional_id="x")
    assert found.error_code == 0


@pytest.mark.parametrize("other", [data(producer_id=6), data(epoch=1)])
def test_several_producers_in_one_request_fail_all_of_it(plane: Plane, other: bytes) -> None:
    answer = plane.produce({T: data(), U: other}, transactional_id="x")
    codes = [found.error_code for found in answer.responses[0].partition_responses]
    assert codes == [CODE.INVALID_PRODUCER_ID_MAPPING] * 2
    assert plane.engine.offsets(0)[3] == 0


def test_without_verification_only_new_versions_ask() -> None:
    plane = Plane(DataPlane(transaction_verification=False))
    plane.open()
    plane.open(partition=1)
    assert plane.append(data(), transactional_id="x", version=11).error_code == 0
    assert asked(plane, U, version=12).partitions == (U,)


def test_a_marker_moves_the_last_stable_offset(plane: Plane) -> None:
    plane.append(data(), transactional_id="x", version=12, verified=asked(plane, T))
    assert plane.engine.offsets(0) == (0, 0, 1, 1)
    verdict = plane.engine.end_transaction(
        0, producer_id=5, producer_epoch=0, coordinator_epoch=0, commit=True, now_ms=NOW_MS
    )
    assert verdict.base_offset == 1
    assert plane.engine.offsets(0) == (0, 2, 2, 2)
    assert plane.engine.leader(0).first_unstable_offset is None
    older = plane.engine.end_transaction(
        0, producer_id=5, producer_epoch=0, coordinator_epoch=-1, commit=True, now_ms=NOW_MS
    )
    assert older.error == CODE.TRANSACTION_COORDINATOR_FENCED


def test_what_a_coordinator_appends_to_a_transaction_carries_a_guard(plane: Plane) -> None:
    refused = plane.engine.append(0, data(), now_ms=NOW_MS)
    assert refused.error == CODE.INVALID_TXN_STATE
    guard = plane.engine.begin_verification(0, 5, 0, 0, now_ms=NOW_MS)
    assert plane.engine.append(0, data(), now_ms=NOW_MS, guard=guard).accepted
    assert plane.engine.begin_verification(0, 5, 0, 1, now_ms=NOW_MS) is None
    plane.engine.end_transaction(
        0, producer_id=5, producer_epoch=4, coordinator_epoch=0, commit=True, now_ms=NOW_MS
    )
    with pytest.raises(KafkaError) as raised:
        plane.engine.begin_verification(0, 5, 0, 1, now_ms=NOW_MS)
    assert raised.value.error_code == CODE.INVALID_PRODUCER_EPOCH


def test_nobody_is_asked_about_a_request_that_is_refused_as_a_whole() -> None:
    """As Kafka does: beside a batch that cannot be read nothing joins a transaction."""
    plane = Plane(DataPlane(profile="kafka"))
    plane.open()
    plane.open(partition=1)
    damaged = data()[:8] + (13).to_bytes(4, "big") + data()[12:]
    answer = plane.produce({T: data(), U: damaged}, version=12, transactional_id="x")
    codes = [found.error_code for found in answer.responses[0].partition_responses]
    assert codes == [CODE.CORRUPT_MESSAGE] * 2


def test_a_batch_without_a_producer_and_records_of_old_formats_are_nobodys_question(
    plane: Plane,
) -> None:
    transactional = crafting.batch(crafting.record(), attributes=crafting.TRANSACTIONAL)
    old = data()[:16] + b"\1" + data()[17:]
    for records in (transactional, old):
        for version in (11, 12):
            produced = plane.produced({T: records}, version=version, transactional_id="x")
            assert (produced.to_verify, produced.failed) == (None, True)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_since_version_12_a_producer_of_which_nothing_is_known_begins_at_0(version: int) -> None:
    """Its epoch was raised at the end of its last transaction: something before it is lost."""
    plane = Plane(DataPlane(unknown_producer="accept"))
    plane.open()
    call: dict[str, Any] = {"version": version, "transactional_id": "x"}
    verified = plane.produced({T: data(5)}, **call).to_verify
    found = plane.append(data(5), verified=verified, **call)
    assert found.error_code == (CODE.OUT_OF_ORDER_SEQUENCE_NUMBER if version >= 12 else 0)
