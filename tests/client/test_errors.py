"""What a client raises: a class for every code, one wrapper at most, and all of it told."""

import pickle

import pytest
from ottla import client
from ottla.client import errors
from ottla.client.errors import (
    AbortableError,
    ApiError,
    Category,
    CommitFailedError,
    CorruptRecordError,
    FailureType,
    IllegalArgumentError,
    InvalidRecordError,
    KafkaTimeoutError,
    OutOfOrderSequenceError,
    ProduceFailedError,
    RetriableError,
    TransactionAbortedError,
    error_class,
    error_of,
    failure_type,
)
from ottla.errors import KafkaError, OttlaError
from ottla.protocol.error_code import ErrorCode, is_retriable, name_of

CODES = [code for name, code in vars(ErrorCode).items() if name.isupper() and code != 0]
CLASSES = [
    one
    for one in map(vars(errors).get, errors.__all__)
    if isinstance(one, type) and issubclass(one, BaseException)
]


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_retriable_exactly_where_its_class_is(code: int) -> None:
    error = error_of(code)
    assert error.retriable is is_retriable(code)
    assert (error.error_code, error.error, str(error)) == (code, name_of(code), name_of(code))
    assert not (error.retriable and error.fatal)
    assert error.retriable == (error.category in (Category.RETRIABLE, Category.REFRESH_RETRIABLE))


def test_a_code_that_nobody_knows_is_told_by_its_number() -> None:
    error = error_of(999)
    assert (type(error), error.error_code, str(error)) == (ApiError, 999, "999")


def test_what_the_broker_says_is_what_the_error_says() -> None:
    assert str(error_of(87, "record 3 has no key")) == "record 3 has no key"


def test_an_error_of_the_exactly_once_promises_is_under_the_one_that_users_catch() -> None:
    assert issubclass(error_class(59), OutOfOrderSequenceError)
    assert issubclass(error_class(59), KafkaError)
    assert not issubclass(error_class(87), error_class(2))
    assert issubclass(AbortableError, KafkaError)
    assert issubclass(CommitFailedError, AbortableError)
    assert not issubclass(errors.IllegalStateError, KafkaError)
    assert all(issubclass(one, OttlaError) for one in CLASSES)


@pytest.mark.parametrize("wrapper", [AbortableError, CommitFailedError])
def test_a_wrapper_has_one_root_and_no_wrapper_in_it(wrapper: type[AbortableError]) -> None:
    root = InvalidRecordError("no key")
    error = wrapper(root)
    assert error.root is root
    assert error.__cause__ is root
    assert (error.error_code, error.error) == (87, "INVALID_RECORD")
    for inner in (error, ProduceFailedError(FailureType.MESSAGE_REJECTED, root)):
        with pytest.raises(IllegalArgumentError, match="is a wrapper"):
            wrapper(inner)
        with pytest.raises(IllegalArgumentError, match="is a wrapper"):
            ProduceFailedError(FailureType.DELIVERY_FAILED, inner)


def test_every_error_survives_pickling() -> None:
    root = error_of(87, "no key")
    made = [
        *(error_of(code, "why") for code in CODES),
        AbortableError(root),
        CommitFailedError(root),
        ProduceFailedError(FailureType.MESSAGE_REJECTED, root),
        KafkaTimeoutError("late"),
        TransactionAbortedError("gone"),
        errors.CorrelationIdMismatchError(1, 2),
        errors.IllegalStateError("no"),
    ]
    for error in made:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(again), str(again)) == (type(error), str(error))
        assert getattr(again, "error_code", None) == getattr(error, "error_code", None)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("is_transactional", [False, True])
def test_every_code_fails_a_record_in_one_of_three_ways(code: int, is_transactional: bool) -> None:
    found = failure_type(error_of(code), is_transactional=is_transactional)
    rejected = {10, 17, 18, 29, 32, 43, 76, 87}
    of_transactions = {22, 25, 30, 31, 47, 48, 49, 50, 53, 82, 90, 120}
    if is_transactional:
        of_transactions |= {45, 59}
    expected = FailureType.DELIVERY_FAILED
    if code in rejected:
        expected = FailureType.MESSAGE_REJECTED
    elif code in of_transactions:
        expected = FailureType.TRANSACTION_ERROR
    assert found is expected


def test_what_has_no_code_fails_a_record_in_one_of_three_ways_too() -> None:
    assert failure_type(TransactionAbortedError("gone")) is FailureType.TRANSACTION_ERROR
    assert failure_type(KafkaTimeoutError("late")) is FailureType.DELIVERY_FAILED
    assert failure_type(ValueError("not ours")) is FailureType.DELIVERY_FAILED


def test_classes_tell_what_kafkas_own_client_puts_them_under() -> None:
    assert error_class(90).category is Category.RECOVERABLE
    assert error_class(90).restartable
    assert error_class(29).category is Category.CONFIGURATION
    assert not error_class(29).restartable
    assert error_class(3).category is Category.REFRESH_RETRIABLE
    assert error_class(14).category is Category.RETRIABLE
    assert error_class(120).category is Category.ABORTABLE
    assert error_class(87).category is Category.OTHER


def test_every_class_says_what_it_means() -> None:
    assert all(one.__doc__ for one in CLASSES)


def test_an_invalid_record_is_public_and_neither_a_corrupt_one_nor_retriable() -> None:
    assert client.InvalidRecordError is InvalidRecordError
    assert type(error_of(ErrorCode.INVALID_RECORD)) is InvalidRecordError
    assert not issubclass(InvalidRecordError, (CorruptRecordError, RetriableError))
    assert not InvalidRecordError.retriable
    assert CorruptRecordError.retriable
