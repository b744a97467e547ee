"""What a client raises, by what there is to do about it.

Three kinds of error come from a call:

- a *fatal* one is raised as it is: the client has to be closed;
- an *abortable* one is the root of an `AbortableError`, the only wrapper there is: the open
  transaction has to be aborted, and the producer goes on;
- a fault of the program, an `IllegalStateError` or `IllegalArgumentError`, is raised as it is.

A retriable error is not seen until the client gives up on it. A future of a record always has the
root, never a wrapper.

    KafkaError
    ├─ ApiError               a broker's error code; a class each, by `error_of`
    │   └─ RetriableError     the same request may succeed
    │       └─ InvalidMetadataError   … once metadata or a coordinator was looked up again
    ├─ AbortableError         of a call: abort the transaction (root in `root`)
    │   └─ CommitFailedError  of `commit_transaction`: it did not commit, abort and go on
    │       └─ OffsetCommitFailedError   of a consumer's `commit`: it is out of its group
    ├─ PollIntervalExceededError   of a consumer's `poll`: it had to leave its group
    ├─ ProduceFailedError     of `produce`: which of three ways a record failed
    ├─ TransactionAbortedError   of a record that was never sent, as its transaction was aborted
    └─ KafkaTimeoutError      the client's own time is over; the same call may be made again

The classes have Kafka's names (KIP-467, KIP-691), and `category` has the name of the class that
Kafka's own client puts it under since KIP-1050.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar

from ottla.client.api_errors import (
    ApiError,
    AuthenticationError,
    AuthorizationError,
    BrokerNotAvailableError,
    Category,
    ClusterAuthorizationError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptRecordError,
    FailureType,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalGenerationError,
    InvalidMetadataError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    LeaderNotAvailableError,
    NetworkError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RebalanceInProgressError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RequestTimedOutError,
    RetriableError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownMemberIdError,
    UnknownProducerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
    error_class,
    error_of,
    topic_error,
)
from ottla.errors import KafkaError, OttlaError
from ottla.protocol.error_code import ErrorCode

__all__ = [
    "AbortableError",
    "ApiError",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerNotAvailableError",
    "Category",
    "ClusterAuthorizationError",
    "CommitFailedError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorrelationIdMismatchError",
    "CorruptRecordError",
    "FailureType",
    "FencedInstanceIdError",
    "GroupAuthorizationError",
    "IllegalArgumentError",
    "IllegalGenerationError",
    "IllegalStateError",
    "InvalidConfigurationError",
    "InvalidMetadataError",
    "InvalidPidMappingError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "KafkaError",
    "KafkaTimeoutError",
    "LeaderNotAvailableError",
    "MalformedResponseError",
    "NetworkError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetCommitFailedError",
    "OutOfOrderSequenceError",
    "PollIntervalExceededError",
    "ProduceFailedError",
    "ProducerClosedError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordBatchTooLargeError",
    "RecordTooLargeError",
    "RequestTimedOutError",
    "RetriableError",
    "TopicAuthorizationError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionalIdAuthorizationError",
    "UnknownMemberIdError",
    "UnknownProducerIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedVersionError",
    "error_class",
    "error_of",
    "failure_type",
    "fresh",
    "root_of",
    "topic_error",
]


class AbortableError(KafkaError):
    """The open transaction cannot commit: call ``abort_transaction()``, then begin another.

    Attributes:
        root: why; also its ``__cause__``.
    """

    category: Category = Category.ABORTABLE
    retriable: ClassVar[bool] = False
    fatal: bool = False
    restartable: bool = False

    def __init__(self, root: BaseException) -> None:
        if isinstance(root, (AbortableError, ProduceFailedError)):
            raise IllegalArgumentError(
                f"{type(root).__name__} is a wrapper; the root of an error is none"
            )
        super().__init__(
            f"{self._said}: {root}",
            getattr(root, "error_code", ErrorCode.UNKNOWN_SERVER_ERROR),
            getattr(root, "error", ""),
        )
        self.root = root
        self.__cause__ = root

    _said: ClassVar[str] = "the transaction has to be aborted"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.root,))


class CommitFailedError(AbortableError):
    """The transaction did not commit: abort it, go back to the last committed positions, go on.

    Where it is `fatal`, the consumer is no member of its group any more: other members have its
    partitions, and the producer has to be closed.

    Args:
        root: why.
        is_fatal: whether it is.
    """

    _said = "the transaction was not committed"

    def __init__(self, root: BaseException, *, is_fatal: bool = False) -> None:
        super().__init__(root)
        if is_fatal:
            self.category = Category.RECOVERABLE
            self.fatal = self.restartable = True

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.root,), vars(self))


class OffsetCommitFailedError(CommitFailedError):
    """A consumer's offsets were not committed, as it is no member of its group any more.

    Others have its partitions, and read again what it did not commit; it joins with ``poll()``.
    """

    _said = (
        "the offsets were not committed, as the group has gone on without this consumer: poll() "
        "joins it again, and records that were not committed are read again; to stay a member, "
        "call poll() more often than each max_poll_interval_ms, or set max_poll_records lower"
    )


class PollIntervalExceededError(KafkaError):
    """The consumer left its group, as ``poll()`` was not called for ``max_poll_interval_ms``.

    The next ``poll()`` joins again.
    """

    category: ClassVar[Category] = Category.RECOVERABLE
    retriable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self),))


class ProduceFailedError(KafkaError):
    """A record was not delivered.

    Attributes:
        failure_type: in which of the three ways.
        root: why; also its ``__cause__``.
    """

    def __init__(self, failure_type: FailureType, root: BaseException) -> None:
        if isinstance(root, (AbortableError, ProduceFailedError)):
            raise IllegalArgumentError(
                f"{type(root).__name__} is a wrapper; the root of an error is none"
            )
        super().__init__(
            f"{failure_type.value}: {root}",
            getattr(root, "error_code", ErrorCode.UNKNOWN_SERVER_ERROR),
            getattr(root, "error", ""),
        )
        self.failure_type = failure_type
        self.root = root
        self.__cause__ = root

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.failure_type, self.root))


class TransactionAbortedError(KafkaError):
    """The record was never sent, as its transaction was aborted; only its future has this."""


class KafkaTimeoutError(KafkaError, TimeoutError):
    """The client's time for a call is over.

    The same call may be made again: it goes on waiting for the same. What a ``commit_transaction``
    that timed out came to is not known, so it must not be followed by an abort.
    """

    category: ClassVar[Category] = Category.RETRIABLE
    retriable: ClassVar[bool] = True
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self),))


class InvalidConfigurationError(KafkaError, ValueError):
    """An option is not known, or has a value that it cannot have."""


class IllegalStateError(OttlaError, RuntimeError):
    """The call makes no sense now: a fault of the program, or of the client itself."""


class ProducerClosedError(IllegalStateError):
    """The producer is closed."""


class CorrelationIdMismatchError(IllegalStateError):
    """An answer belongs to another request than the oldest that is open.

    Attributes:
        request_id: the correlation id that was expected.
        response_id: the one that came.
    """

    def __init__(self, request_id: int, response_id: int) -> None:
        super().__init__(
            f"a response of correlation id {response_id} where that of request {request_id} was "
            "expected"
        )
        self.request_id = request_id
        self.response_id = response_id

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.request_id, self.response_id))


class MalformedResponseError(IllegalStateError):
    """Bytes came that are no answer of Kafka's protocol: no broker is there, or a faulty one."""


class IllegalArgumentError(OttlaError, ValueError):
    """An argument has a value that it cannot have."""


def root_of(error: BaseException) -> BaseException:
    """Returns what is wrong, without what says whose concern it is.

    >>> root_of(AbortableError(error_of(87, "no key")))
    InvalidRecordError('no key')
    """
    return error.root if isinstance(error, (AbortableError, ProduceFailedError)) else error


def fresh(error: BaseException) -> BaseException:
    """Returns an error like one that is kept, to raise: the traceback of that one does not grow."""
    again = copy(error)
    if again.__cause__ is None:
        again.__cause__ = error.__cause__ or error
    return again


def failure_type(error: BaseException, *, is_transactional: bool = False) -> FailureType:
    """Returns in which of three ways a record failed (KIP-691).

    Args:
        error: what its future has.
        is_transactional: whether the producer is.

    >>> failure_type(error_of(17))
    <FailureType.MESSAGE_REJECTED: 'message rejected'>
    """
    if isinstance(error, TransactionAbortedError):
        return FailureType.TRANSACTION_ERROR
    if isinstance(error, OutOfOrderSequenceError) and is_transactional:
        return FailureType.TRANSACTION_ERROR
    if isinstance(error, ApiError):
        return error.failure_type
    return FailureType.DELIVERY_FAILED
