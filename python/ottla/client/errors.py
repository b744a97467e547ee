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
from enum import Enum
from typing import ClassVar

from ottla.errors import KafkaError, OttlaError
from ottla.protocol.error_code import ErrorCode, is_retriable
from ottla.protocol.error_code import name_of as error_code_name

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
]


class Category(Enum):
    """What Kafka's own client calls a class of errors (KIP-1050)."""

    RETRIABLE = "RetriableException"
    REFRESH_RETRIABLE = "RefreshRetriableException"
    ABORTABLE = "TransactionAbortableException"
    RECOVERABLE = "ApplicationRecoverableException"
    CONFIGURATION = "InvalidConfigurationException"
    OTHER = "KafkaException"


class FailureType(Enum):
    """The three ways in which a record fails (KIP-691)."""

    MESSAGE_REJECTED = "message rejected"
    DELIVERY_FAILED = "delivery failed"
    TRANSACTION_ERROR = "transaction error"


class ApiError(KafkaError):
    """A broker answered with an error.

    Attributes:
        category: what Kafka's own client calls it.
        retriable: whether the same request may succeed.
        fatal: whether it ends a transactional producer, under the policy ``kip691``.
        restartable: whether a new client can go on where this one has to be closed.
    """

    code: ClassVar[int] = ErrorCode.UNKNOWN_SERVER_ERROR
    category: ClassVar[Category] = Category.OTHER
    retriable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False
    failure_type: ClassVar[FailureType] = FailureType.DELIVERY_FAILED

    def __init__(self, message: str = "", error_code: int | None = None, error: str = "") -> None:
        number = self.code if error_code is None else error_code
        name = error or error_code_name(number)
        super().__init__(message or name, number, name)


class RetriableError(ApiError):
    """The same request may succeed: clients send it again until their time is over."""

    category = Category.RETRIABLE
    retriable = True


class InvalidMetadataError(RetriableError):
    """What the client knows of the cluster is out of date: it looks again, then repeats."""

    category = Category.REFRESH_RETRIABLE


class AuthorizationError(ApiError):
    """An ACL is missing: a person has to change it."""

    category = Category.CONFIGURATION
    fatal = True


class _ConfigurationError(ApiError):
    category = Category.CONFIGURATION
    fatal = True


class _RecoverableError(ApiError):
    category = Category.RECOVERABLE
    fatal = True
    restartable = True
    failure_type = FailureType.TRANSACTION_ERROR


class CorruptRecordError(RetriableError):
    """A batch arrived with another checksum than it was sent with."""

    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartitionError(InvalidMetadataError):
    """The broker has no such topic or partition, or does not tell this client of it."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class LeaderNotAvailableError(InvalidMetadataError):
    """A partition has no leader for the moment."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollowerError(InvalidMetadataError):
    """Another broker leads the partition now."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOutError(RetriableError):
    """A broker gave up waiting; whether the request had an effect is not known."""

    code = ErrorCode.REQUEST_TIMED_OUT


class BrokerNotAvailableError(ApiError):
    """A broker is not there."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class NetworkError(InvalidMetadataError):
    """A connection broke before the answer came, or could not be made in time.

    Attributes:
        is_sent: whether the broker may have seen the request.
    """

    code = ErrorCode.NETWORK_EXCEPTION

    def __init__(
        self,
        message: str = "",
        error_code: int | None = None,
        error: str = "",
        *,
        is_sent: bool = True,
    ) -> None:
        super().__init__(message, error_code, error)
        self.is_sent = is_sent

    def __reduce__(self) -> tuple[object, ...]:
        return (_network_error, (type(self), str(self), self.is_sent))


def _network_error(kind: type[NetworkError], message: str, is_sent: bool) -> NetworkError:
    return kind(message, is_sent=is_sent)


class RecordTooLargeError(ApiError):
    """A record is larger than the topic's ``max.message.bytes``, or than the producer sends."""

    code = ErrorCode.MESSAGE_TOO_LARGE
    failure_type = FailureType.MESSAGE_REJECTED


class RecordBatchTooLargeError(ApiError):
    """A batch is larger than a segment of the topic."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE
    failure_type = FailureType.MESSAGE_REJECTED


class CoordinatorLoadInProgressError(RetriableError):
    """A coordinator reads its log and answers soon."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailableError(InvalidMetadataError):
    """No broker coordinates this group or transactional id for the moment."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinatorError(InvalidMetadataError):
    """Another broker coordinates this group or transactional id now."""

    code = ErrorCode.NOT_COORDINATOR


class InvalidTopicError(_ConfigurationError):
    """A topic cannot have this name, or clients must not write to it."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION
    fatal = False
    failure_type = FailureType.MESSAGE_REJECTED


class NotEnoughReplicasError(RetriableError):
    """Fewer replicas are in sync than ``min.insync.replicas``; nothing was appended."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppendError(RetriableError):
    """The batch was appended, then fewer replicas were in sync than ``min.insync.replicas``."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class InvalidRequiredAcksError(ApiError):
    """``acks`` is none of 0, 1 and -1."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class IllegalGenerationError(_RecoverableError):
    """The group has gone on to another generation without this member."""

    code = ErrorCode.ILLEGAL_GENERATION


class UnknownMemberIdError(_RecoverableError):
    """The group has no such member, any more."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class RebalanceInProgressError(ApiError):
    """The group assigns partitions anew: after the next ``poll()`` the same call may succeed."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class TopicAuthorizationError(AuthorizationError):
    """The user may not do this with the topic."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    failure_type = FailureType.MESSAGE_REJECTED


class GroupAuthorizationError(AuthorizationError):
    """The user may not read the group."""

    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    failure_type = FailureType.TRANSACTION_ERROR


class ClusterAuthorizationError(AuthorizationError):
    """The user may not do this with the cluster."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    failure_type = FailureType.TRANSACTION_ERROR


class TransactionalIdAuthorizationError(AuthorizationError):
    """The user may not use the transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    failure_type = FailureType.TRANSACTION_ERROR


class InvalidTimestampError(ApiError):
    """The timestamp of a record is outside of what its topic allows (KIP-467)."""

    code = ErrorCode.INVALID_TIMESTAMP
    failure_type = FailureType.MESSAGE_REJECTED


class UnsupportedVersionError(_ConfigurationError):
    """The broker is too old or too new for a request."""

    code = ErrorCode.UNSUPPORTED_VERSION


class InvalidRequestError(ApiError):
    """The broker finds the request itself wrong."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedForMessageFormatError(_ConfigurationError):
    """The topic keeps a record format that cannot hold this."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    failure_type = FailureType.MESSAGE_REJECTED


class OutOfOrderSequenceError(ApiError):
    """Records of this producer are missing before these: acknowledged ones may be lost."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class UnknownProducerIdError(OutOfOrderSequenceError):
    """The leader no longer knows the producer: its records were deleted, or lost (KIP-192)."""

    code = ErrorCode.UNKNOWN_PRODUCER_ID


class InvalidProducerEpochError(ApiError):
    """A newer epoch of this producer is known; of a produce request, where it may be its own."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH
    category = Category.RECOVERABLE
    restartable = True
    failure_type = FailureType.TRANSACTION_ERROR


class InvalidTxnStateError(ApiError):
    """The coordinator's transaction is in a state in which the request makes no sense."""

    code = ErrorCode.INVALID_TXN_STATE
    category = Category.ABORTABLE
    fatal = True
    failure_type = FailureType.TRANSACTION_ERROR


class InvalidPidMappingError(ApiError):
    """The coordinator knows the transactional id with another producer id, or not at all."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    category = Category.RECOVERABLE
    restartable = True
    failure_type = FailureType.TRANSACTION_ERROR


class InvalidTransactionTimeoutError(_ConfigurationError):
    """``transaction_timeout_ms`` is above the broker's ``transaction.max.timeout.ms``."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    failure_type = FailureType.TRANSACTION_ERROR


class AuthenticationError(_ConfigurationError):
    """The broker does not take the user's credentials, or there are none."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class UnsupportedCompressionTypeError(ApiError):
    """The request's version cannot carry the codec."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    failure_type = FailureType.MESSAGE_REJECTED


class FencedInstanceIdError(_RecoverableError):
    """Another member has the same ``group_instance_id`` now."""

    code = ErrorCode.FENCED_INSTANCE_ID


class InvalidRecordError(ApiError):
    """A record violates the rules of its topic, such as a missing key (KIP-467)."""

    code = ErrorCode.INVALID_RECORD
    failure_type = FailureType.MESSAGE_REJECTED


class ProducerFencedError(_RecoverableError):
    """Another producer has the same transactional id, or this one's transaction timed out."""

    code = ErrorCode.PRODUCER_FENCED


class TransactionAbortableError(ApiError):
    """The coordinator asks for an abort (KIP-890)."""

    code = ErrorCode.TRANSACTION_ABORTABLE
    category = Category.ABORTABLE
    failure_type = FailureType.TRANSACTION_ERROR


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


# More codes that a client answers by looking at the cluster again, and more of one meaning.
_REFRESH = (
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NOT_CONTROLLER,
)
_AUTHENTICATION = (
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ErrorCode.ILLEGAL_SASL_STATE,
)


def _classes(base: type[ApiError]) -> dict[int, type[ApiError]]:
    found: dict[int, type[ApiError]] = {}
    for one in base.__subclasses__():
        if "code" in vars(one):
            found[one.code] = one
        found.update(_classes(one))
    return found


_BY_CODE: dict[int, type[ApiError]] = {
    **dict.fromkeys(_REFRESH, InvalidMetadataError),
    **dict.fromkeys(_AUTHENTICATION, AuthenticationError),
    **_classes(ApiError),
}


def error_class(code: int) -> type[ApiError]:
    """Returns the class of Kafka's error code.

    Codes without a class of their own are a `RetriableError` where Kafka says so, and an
    `ApiError` elsewhere, also where nobody knows them.

    >>> error_class(87).__name__, error_class(89).__name__, error_class(-1).__name__
    ('InvalidRecordError', 'RetriableError', 'ApiError')
    """
    known = _BY_CODE.get(code)
    if known is not None:
        return known
    return RetriableError if is_retriable(code) else ApiError


def error_of(code: int, message: str | None = None) -> ApiError:
    """Returns the error of an answer.

    Args:
        code: Kafka's error code; not 0.
        message: what the broker says about it, if anything.

    >>> error_of(87, "record 3 has no key")
    InvalidRecordError('record 3 has no key')
    """
    return error_class(code)(message or "", code)


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
