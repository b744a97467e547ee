"""What a broker answers, as errors: a class each for Kafka's error codes that clients meet.

A code without a class of its own is a `RetriableError` where Kafka calls it retriable, and an
`ApiError` elsewhere.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode, is_retriable
from ottla.protocol.error_code import name_of as error_code_name

__all__ = [
    "ApiError",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerNotAvailableError",
    "Category",
    "ClusterAuthorizationError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptRecordError",
    "FailureType",
    "FencedInstanceIdError",
    "GroupAuthorizationError",
    "IllegalGenerationError",
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
    "LeaderNotAvailableError",
    "NetworkError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OutOfOrderSequenceError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordBatchTooLargeError",
    "RecordTooLargeError",
    "RequestTimedOutError",
    "RetriableError",
    "TopicAuthorizationError",
    "TransactionAbortableError",
    "TransactionalIdAuthorizationError",
    "UnknownMemberIdError",
    "UnknownProducerIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedVersionError",
    "error_class",
    "error_of",
    "topic_error",
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


def topic_error(code: int, topic: str) -> ApiError:
    """Returns the error that brokers have for a topic.

    >>> topic_error(17, "all orders").args[0]
    "topic 'all orders' cannot have this name: letters, digits, '.', '_' and '-' are allowed"
    >>> topic_error(29, "orders").args[0]
    "topic 'orders': TOPIC_AUTHORIZATION_FAILED"
    """
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        allowed = "letters, digits, '.', '_' and '-' are allowed"
        return error_of(code, f"topic {topic!r} cannot have this name: {allowed}")
    return error_of(code, f"topic {topic!r}: {error_code_name(code)}")
