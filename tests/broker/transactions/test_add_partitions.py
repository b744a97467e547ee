"""AddPartitionsToTxn and AddOffsetsToTxn: what joins a transaction, and what is verified of it."""

import pytest
from ottla.protocol.error_code import ErrorCode
from support.coordinating import ORDERS, PAYMENTS, Coordination


@pytest.fixture
def world() -> Coordination:
    return Coordination()


@pytest.fixture
def producer(world: Coordination) -> tuple[int, int]:
    return world.started()


def test_the_first_partition_begins_the_transaction(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.advance(500)
    assert world.add(producer, ORDERS) == ErrorCode.NONE
    assert world.state == "Ongoing"
    assert world.known().start_ms == world.now_ms


def test_a_further_partition_joins_what_has_begun(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.add(producer, ORDERS)
    begun_ms = world.now_ms
    world.advance(500)
    assert world.add(producer, PAYMENTS) == ErrorCode.NONE
    assert world.known().partitions == {ORDERS, PAYMENTS}
    assert world.known().start_ms == begun_ms


def test_what_is_in_the_transaction_is_not_written_again(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.add(producer, ORDERS, PAYMENTS)
    before = sum(map(len, world.log.values()))
    assert world.add(producer, PAYMENTS) == ErrorCode.NONE
    assert sum(map(len, world.log.values())) == before


def test_the_partitions_of_the_last_transaction_are_not_those_of_the_next(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.add(producer, ORDERS)
    world.end(producer)
    world.add(producer, PAYMENTS)
    assert world.known().partitions == {PAYMENTS}


@pytest.mark.parametrize(
    ("id_step", "epoch_step", "error"),
    [
        (1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (0, -1, ErrorCode.PRODUCER_FENCED),
        (0, 1, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_producer_adds_nothing(
    world: Coordination, producer: tuple[int, int], id_step: int, epoch_step: int, error: int
) -> None:
    other = producer[0] + id_step, producer[1] + epoch_step
    assert world.add(other, ORDERS) == error
    assert world.verify(other, ORDERS) == {ORDERS: error}
    assert world.state == "Empty"


def test_a_name_that_never_started_has_no_producer(world: Coordination) -> None:
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add((1, 0), ORDERS, name="other") == error
    assert world.verify((1, 0), ORDERS, name="other") == {ORDERS: error}


def test_a_request_without_name_is_invalid(world: Coordination) -> None:
    assert world.add((1, 0), ORDERS, name="") == ErrorCode.INVALID_REQUEST
    assert world.verify((1, 0), ORDERS, name="") == {ORDERS: ErrorCode.INVALID_REQUEST}


def test_nothing_is_added_while_markers_are_missing(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.add(producer, ORDERS)
    world.marker_errors[ORDERS] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end(producer)
    assert world.add(producer, PAYMENTS) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.verify(producer, ORDERS) == {ORDERS: ErrorCode.CONCURRENT_TRANSACTIONS}


def test_verification_tells_what_is_in_the_transaction(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.add(producer, ORDERS)
    assert world.verify(producer, ORDERS, PAYMENTS) == {
        ORDERS: ErrorCode.NONE,
        PAYMENTS: ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_an_addition_that_the_log_did_not_take_has_not_happened(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.log_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.add(producer, ORDERS) == ErrorCode.NOT_COORDINATOR
    assert world.state == "Empty"
    assert world.verify(producer, ORDERS) == {ORDERS: ErrorCode.TRANSACTION_ABORTABLE}


def test_too_many_partitions_for_a_record_are_an_error_of_the_server(
    world: Coordination, producer: tuple[int, int]
) -> None:
    world.log_error = ErrorCode.MESSAGE_TOO_LARGE
    assert world.add(producer, ORDERS) == ErrorCode.UNKNOWN_SERVER_ERROR
