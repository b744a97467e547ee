"""EndTxn: commit and abort, their retries, and what a coordinator ends on its own."""

import pytest
from ottla.broker.transactions.metadata import TransactionMetadata
from ottla.broker.transactions.settings import MARKER_RETRY_MS
from ottla.protocol.error_code import ErrorCode
from support.coordinating import MINUTE_MS, ORDERS, PAYMENTS, Coordination

Producer = tuple[int, int]
LAST_EPOCH = 32766


@pytest.fixture
def world() -> Coordination:
    return Coordination()


@pytest.fixture
def producer(world: Coordination) -> Producer:
    return world.started()


@pytest.mark.parametrize("commit", [True, False])
def test_each_partition_takes_one_marker(
    world: Coordination, producer: Producer, *, commit: bool
) -> None:
    world.add(producer, ORDERS, PAYMENTS)
    assert world.end(producer, commit=commit).error_code == ErrorCode.NONE
    assert world.taken() == [(ORDERS, commit), (PAYMENTS, commit)]
    assert world.state == ("CompleteCommit" if commit else "CompleteAbort")
    world.advance(10 * MINUTE_MS)
    assert len(world.markers) == 2


def test_an_end_of_version_one_keeps_the_epoch(world: Coordination, producer: Producer) -> None:
    world.add(producer, ORDERS)
    assert world.end(producer) == (ErrorCode.NONE, *producer)
    assert world.markers[0].producer_epoch == producer[1]


def test_an_end_of_version_two_raises_the_epoch_before_its_markers(
    world: Coordination, producer: Producer
) -> None:
    producer_id, epoch = producer
    world.add(producer, ORDERS, version=2)
    assert world.end(producer, version=2) == (ErrorCode.NONE, producer_id, epoch + 1)
    assert world.markers[0].producer_epoch == epoch + 1
    assert world.add(producer, ORDERS, version=2) == ErrorCode.PRODUCER_FENCED
    assert world.add((producer_id, epoch + 1), ORDERS, version=2) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("commit", "again", "error"),
    [
        (True, True, ErrorCode.NONE),
        (True, False, ErrorCode.INVALID_TXN_STATE),
        (False, False, ErrorCode.NONE),
        (False, True, ErrorCode.INVALID_TXN_STATE),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_a_retry_succeeds_where_it_asks_for_what_has_happened(
    world: Coordination,
    producer: Producer,
    version: int,
    error: int,
    *,
    commit: bool,
    again: bool,
) -> None:
    world.add(producer, ORDERS, version=version)
    first = world.end(producer, commit=commit, version=version)
    retried = world.end(producer, commit=again, version=version)
    assert retried.error_code == error
    assert retried == first or error != ErrorCode.NONE
    assert len(world.markers) == 1


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("commit", "again", "error"),
    [
        (True, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (True, False, ErrorCode.INVALID_TXN_STATE),
        (False, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (False, True, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_a_retry_waits_for_the_markers(
    world: Coordination,
    producer: Producer,
    version: int,
    error: int,
    *,
    commit: bool,
    again: bool,
) -> None:
    world.add(producer, ORDERS, version=version)
    world.marker_errors[ORDERS] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end(producer, commit=commit, version=version)
    assert world.end(producer, commit=again, version=version).error_code == error


@pytest.mark.parametrize(
    ("before", "commit", "is_retry", "error"),
    [
        ("Empty", False, True, ErrorCode.PRODUCER_FENCED),
        ("Empty", False, False, ErrorCode.NONE),
        ("Empty", True, True, ErrorCode.PRODUCER_FENCED),
        ("Empty", True, False, ErrorCode.INVALID_TXN_STATE),
        ("CompleteAbort", False, True, ErrorCode.NONE),
        ("CompleteAbort", False, False, ErrorCode.NONE),
        ("CompleteAbort", True, True, ErrorCode.INVALID_TXN_STATE),
        ("CompleteAbort", True, False, ErrorCode.INVALID_TXN_STATE),
        ("CompleteCommit", False, True, ErrorCode.INVALID_TXN_STATE),
        ("CompleteCommit", False, False, ErrorCode.NONE),
        ("CompleteCommit", True, True, ErrorCode.NONE),
        ("CompleteCommit", True, False, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_version_two_tells_a_retry_from_the_next_end_by_the_epoch(
    world: Coordination, before: str, error: int, *, commit: bool, is_retry: bool
) -> None:
    world.started()
    producer = world.started()
    if before != "Empty":
        world.add(producer, ORDERS, version=2)
        answer = world.end(producer, commit=before == "CompleteCommit", version=2)
        producer = answer.producer_id, answer.producer_epoch
    assert world.state == before
    asking = producer[0], producer[1] - is_retry
    answer = world.end(asking, commit=commit, version=2)
    assert answer.error_code == error
    if error == ErrorCode.NONE:
        assert answer.producer_epoch == producer[1] + (not is_retry)


def test_version_one_ends_no_transaction_that_has_not_begun(
    world: Coordination, producer: Producer
) -> None:
    assert world.end(producer, commit=True).error_code == ErrorCode.INVALID_TXN_STATE
    assert world.end(producer, commit=False).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("id_step", "epoch_step", "error"),
    [
        (1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (0, -1, ErrorCode.PRODUCER_FENCED),
        (0, 1, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_producer_ends_nothing(
    world: Coordination, version: int, id_step: int, epoch_step: int, error: int
) -> None:
    world.started()
    producer = world.started()
    world.add(producer, ORDERS)
    other = producer[0] + id_step, producer[1] + epoch_step
    assert world.end(other, version=version).error_code == error
    assert world.state == "Ongoing"


def test_a_request_without_name_or_of_an_unknown_one_is_refused(world: Coordination) -> None:
    assert world.end((1, 0), name="").error_code == ErrorCode.INVALID_REQUEST
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.end((1, 0), name="other").error_code == error


def test_a_commit_at_the_last_epoch_goes_on_with_another_id(world: Coordination) -> None:
    producer = world.restore(TransactionMetadata("t", 7, producer_epoch=LAST_EPOCH))
    world.add(producer, ORDERS, version=2)
    answer = world.end(producer, version=2)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != producer[0]
    marker = world.markers[0]
    assert (marker.producer_id, marker.producer_epoch) == (producer[0], LAST_EPOCH + 1)
    assert world.end(producer, version=2) == answer


def test_an_end_that_the_log_did_not_take_writes_no_marker(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.log_error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert world.end(producer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (world.state, world.markers) == ("Ongoing", [])
    world.log_error = 0
    assert world.end(producer).error_code == ErrorCode.NONE


def test_only_the_markers_that_are_missing_are_written_again(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS, PAYMENTS)
    world.marker_errors[ORDERS] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer).error_code == ErrorCode.NONE
    world.advance(3 * MARKER_RETRY_MS)
    assert (world.state, world.taken()) == ("PrepareCommit", [(PAYMENTS, True)])
    world.marker_errors.clear()
    world.advance(MARKER_RETRY_MS)
    assert (world.state, world.taken()) == ("CompleteCommit", [(PAYMENTS, True), (ORDERS, True)])


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
def test_a_partition_where_nothing_can_be_open_needs_no_marker(
    world: Coordination, producer: Producer, error: int
) -> None:
    world.add(producer, ORDERS)
    world.marker_errors[ORDERS] = error
    world.end(producer)
    assert world.state == "CompleteCommit"


def test_a_coordinator_that_another_one_has_followed_writes_no_more(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.marker_errors[ORDERS] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.end(producer)
    world.marker_errors.clear()
    world.advance(MINUTE_MS)
    assert (world.state, world.markers) == ("PrepareCommit", [])


def test_a_completion_that_the_log_did_not_take_writes_no_second_marker(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.marker_errors[ORDERS] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end(producer)
    world.marker_errors.clear()
    world.log_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.advance(3 * MARKER_RETRY_MS)
    assert (world.state, len(world.markers)) == ("PrepareCommit", 1)
    world.log_error = 0
    world.advance(MARKER_RETRY_MS)
    assert (world.state, len(world.markers)) == ("CompleteCommit", 1)


def test_a_transaction_is_aborted_at_its_time_out_and_its_producer_fenced(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.advance(MINUTE_MS - 1)
    world.add(producer, PAYMENTS)
    assert world.state == "Ongoing"
    world.advance(1)
    assert (world.state, world.taken()) == ("CompleteAbort", [(ORDERS, False), (PAYMENTS, False)])
    assert world.add(producer, ORDERS) == ErrorCode.PRODUCER_FENCED
    assert world.end(producer).error_code == ErrorCode.PRODUCER_FENCED
    assert world.end(producer, version=2).error_code == ErrorCode.PRODUCER_FENCED
    assert world.init(producer).error_code == ErrorCode.PRODUCER_FENCED


def test_a_time_out_that_the_log_did_not_take_comes_again(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.log_error = ErrorCode.KAFKA_STORAGE_ERROR
    world.advance(MINUTE_MS)
    assert world.state == "Ongoing"
    world.log_error = 0
    world.advance(MARKER_RETRY_MS)
    assert world.state == "CompleteAbort"


def test_a_transaction_that_has_ended_has_no_time_out(
    world: Coordination, producer: Producer
) -> None:
    world.add(producer, ORDERS)
    world.advance(MINUTE_MS // 2)
    world.end(producer)
    world.add(producer, ORDERS)
    world.advance(MINUTE_MS - 1)
    assert world.state == "Ongoing"
