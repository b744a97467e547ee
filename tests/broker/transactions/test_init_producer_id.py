"""InitProducerId: a producer starts, resumes, or takes over from one that is gone."""

import pytest
from ottla.broker.transactions.metadata import TransactionMetadata
from ottla.broker.transactions.settings import TransactionSettings
from ottla.protocol.error_code import ErrorCode
from support.coordinating import MINUTE_MS, ORDERS, Coordination

LAST_EPOCH = 32766


@pytest.fixture
def world() -> Coordination:
    return Coordination()


def exhausted(world: Coordination) -> tuple[int, int]:
    """A producer that has just resumed with the last epoch that is handed out."""
    before = TransactionMetadata("t", 7, producer_epoch=LAST_EPOCH - 1, timeout_ms=MINUTE_MS)
    answer = world.init(world.restore(before))
    assert answer == (ErrorCode.NONE, 7, LAST_EPOCH)
    return 7, LAST_EPOCH


def test_a_producer_without_transactional_id_gets_an_id_of_its_own_each_time(
    world: Coordination,
) -> None:
    first, second = world.init(name=None), world.init(name=None)
    assert first[::2] == second[::2] == (ErrorCode.NONE, 0)
    assert first.producer_id != second.producer_id
    assert world.log == {}


def test_an_empty_transactional_id_is_an_invalid_request(world: Coordination) -> None:
    assert world.init(name="").error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("producer", [(5, -1), (-1, 5)])
def test_an_id_without_epoch_is_an_invalid_request(
    world: Coordination, producer: tuple[int, int]
) -> None:
    assert world.init(producer).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (1, ErrorCode.NONE),
        (900_000, ErrorCode.NONE),
        (900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_a_transaction_takes_no_longer_than_the_broker_lets_it(
    world: Coordination, timeout_ms: int, error: int
) -> None:
    assert world.init(timeout_ms=timeout_ms).error_code == error


def test_another_producer_of_the_same_name_gets_the_next_epoch(world: Coordination) -> None:
    producer_id, epoch = world.started()
    assert world.started() == (producer_id, epoch + 1)


def test_a_producer_resumes_with_the_next_epoch(world: Coordination) -> None:
    producer_id, epoch = world.started()
    assert world.init((producer_id, epoch)) == (ErrorCode.NONE, producer_id, epoch + 1)


def test_a_retry_of_a_resumption_gets_the_same_epoch(world: Coordination) -> None:
    producer = world.started()
    answer = world.init(producer)
    assert world.init(producer) == answer


def test_a_producer_resumes_no_more_when_another_one_has_started(world: Coordination) -> None:
    old = world.started()
    world.started()
    assert world.init(old).error_code == ErrorCode.PRODUCER_FENCED


def test_a_retry_across_another_resumption_is_fenced(world: Coordination) -> None:
    producer_id, epoch = world.started()
    world.init((producer_id, epoch))
    world.init((producer_id, epoch + 1))
    assert world.init((producer_id, epoch)).error_code == ErrorCode.PRODUCER_FENCED


def test_an_id_that_was_never_given_out_is_fenced(world: Coordination) -> None:
    producer_id, epoch = world.started()
    assert world.init((producer_id + 1, epoch)).error_code == ErrorCode.PRODUCER_FENCED


def test_a_name_that_the_coordinator_has_forgotten_starts_anew(world: Coordination) -> None:
    answer = world.init((77, 5))
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != 77


@pytest.mark.parametrize(("version", "steps"), [(0, 1), (2, 2)])
def test_an_open_transaction_is_aborted_before_its_successor_starts(
    version: int, steps: int
) -> None:
    world = Coordination(TransactionSettings(transaction_version=version))
    old = world.started()
    world.add(old, ORDERS)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.taken() == [(ORDERS, False)]
    assert world.markers[0].producer_epoch == old[1] + steps
    assert world.init() == (ErrorCode.NONE, old[0], old[1] + steps + 1)


def test_nobody_starts_while_markers_are_missing(world: Coordination) -> None:
    producer = world.started()
    world.add(producer, ORDERS)
    world.marker_errors[ORDERS] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end(producer)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.init(producer).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state == "PrepareCommit"


def test_another_id_follows_the_last_epoch(world: Coordination) -> None:
    producer_id, epoch = exhausted(world)
    answer = world.init((producer_id, epoch))
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != producer_id


def test_a_retry_across_a_change_of_id_gets_the_same_id(world: Coordination) -> None:
    producer = exhausted(world)
    answer = world.init(producer)
    assert world.init(producer) == answer


def test_the_epoch_before_the_last_resumes_as_a_retry(world: Coordination) -> None:
    producer_id, epoch = exhausted(world)
    assert world.init((producer_id, epoch - 1)) == (ErrorCode.NONE, producer_id, epoch)


def test_a_fenced_producer_with_the_last_epoch_stays_fenced(world: Coordination) -> None:
    producer = exhausted(world)
    world.add(producer, ORDERS)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.known().producer_epoch == LAST_EPOCH + 1
    assert world.init(producer).error_code == ErrorCode.PRODUCER_FENCED
    answer = world.init()
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != producer[0]


def test_a_start_that_the_log_did_not_take_has_not_happened(world: Coordination) -> None:
    producer_id, epoch = world.started()
    world.log_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log_error = 0
    assert world.started() == (producer_id, epoch + 1)


def test_a_fencing_that_the_log_did_not_take_raises_the_epoch_once(world: Coordination) -> None:
    producer = world.started()
    world.add(producer, ORDERS)
    world.log_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert world.init().error_code == ErrorCode.NOT_COORDINATOR
    assert world.init().error_code == ErrorCode.NOT_COORDINATOR
    world.log_error = 0
    world.init()
    assert world.known().producer_epoch == producer[1] + 2


def test_a_name_belongs_to_the_coordinator_of_its_partition(world: Coordination) -> None:
    world.started()
    world.coordinator.give_up(world.coordinator.partitions.of("t"))
    assert world.init().error_code == ErrorCode.NOT_COORDINATOR
    assert world.coordinator.describe("t") == ErrorCode.NOT_COORDINATOR


def test_a_start_sets_the_time_that_a_transaction_may_take(world: Coordination) -> None:
    producer = world.started(timeout_ms=MINUTE_MS)
    world.init(producer, timeout_ms=2 * MINUTE_MS)
    assert world.known().timeout_ms == 2 * MINUTE_MS
