"""A client of Kafka whose errors say what to do.

    from ottla.client import Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("orders", b"three apples", key=b"alice").result()

Each client there is twice: `Producer` for threads, `AsyncProducer` for asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import (
    AbortableError,
    ApiError,
    AuthenticationError,
    AuthorizationError,
    BrokerNotAvailableError,
    Category,
    ClusterAuthorizationError,
    CommitFailedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorrelationIdMismatchError,
    CorruptRecordError,
    FailureType,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalArgumentError,
    IllegalGenerationError,
    IllegalStateError,
    InvalidConfigurationError,
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
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MalformedResponseError,
    NetworkError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetCommitFailedError,
    OutOfOrderSequenceError,
    PollIntervalExceededError,
    ProduceFailedError,
    ProducerClosedError,
    ProducerFencedError,
    RebalanceInProgressError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RequestTimedOutError,
    RetriableError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationError,
    UnknownMemberIdError,
    UnknownProducerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)
from ottla.client.partitions import (
    GroupMetadata,
    OffsetAndMetadata,
    TopicPartition,
)

if TYPE_CHECKING:
    from ottla.client.admin.configs import (
        ConfigChange,
        ConfigChangeKind,
        ConfigResource,
        ResourceType,
    )
    from ottla.client.admin.offsets import (
        OffsetSpec,
    )
    from ottla.client.admin.topics import (
        NewTopic,
    )
    from ottla.client.options.config import (
        IgnoredOptionWarning,
    )
    from ottla.client.processing.runner import (
        AsyncProcessingRunner,
        ProcessingRunner,
        TaskMigratedError,
        TxnCorruptedError,
    )
    from ottla.client.processing.transaction import (
        run_transaction,
        run_transaction_async,
    )
    from ottla.client.producer.receipt import (
        Receipt,
    )
    from ottla.client.producer.record_metadata import (
        RecordMetadata,
    )
    from ottla.net.client.admin import (
        Admin,
        AsyncAdmin,
    )
    from ottla.net.client.async_producer import (
        AsyncProducer,
    )
    from ottla.net.client.producer import (
        Producer,
    )
else:
    from ottla.on_demand import on_demand

    # The shells bring asyncio and ssl along.
    __getattr__ = on_demand(
        __name__,
        {
            "Admin": "ottla.net.client.admin",
            "AsyncAdmin": "ottla.net.client.admin",
            "NewTopic": "ottla.client.admin.topics",
            "ConfigChange": "ottla.client.admin.configs",
            "ConfigChangeKind": "ottla.client.admin.configs",
            "ConfigResource": "ottla.client.admin.configs",
            "ResourceType": "ottla.client.admin.configs",
            "OffsetSpec": "ottla.client.admin.offsets",
            "IgnoredOptionWarning": "ottla.client.options.config",
            "AsyncProcessingRunner": "ottla.client.processing.runner",
            "ProcessingRunner": "ottla.client.processing.runner",
            "TaskMigratedError": "ottla.client.processing.runner",
            "TxnCorruptedError": "ottla.client.processing.runner",
            "run_transaction": "ottla.client.processing.transaction",
            "run_transaction_async": "ottla.client.processing.transaction",
            "Receipt": "ottla.client.producer.receipt",
            "RecordMetadata": "ottla.client.producer.record_metadata",
            "AsyncProducer": "ottla.net.client.async_producer",
            "Producer": "ottla.net.client.producer",
        },
    )

__all__ = [
    "AbortableError",
    "Admin",
    "ApiError",
    "AsyncAdmin",
    "AsyncProcessingRunner",
    "AsyncProducer",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerNotAvailableError",
    "Category",
    "ClusterAuthorizationError",
    "CommitFailedError",
    "ConfigChange",
    "ConfigChangeKind",
    "ConfigResource",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorrelationIdMismatchError",
    "CorruptRecordError",
    "FailureType",
    "FencedInstanceIdError",
    "GroupAuthorizationError",
    "GroupMetadata",
    "IgnoredOptionWarning",
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
    "NewTopic",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetAndMetadata",
    "OffsetCommitFailedError",
    "OffsetSpec",
    "OutOfOrderSequenceError",
    "PollIntervalExceededError",
    "ProcessingRunner",
    "ProduceFailedError",
    "Producer",
    "ProducerClosedError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "Receipt",
    "RecordBatchTooLargeError",
    "RecordMetadata",
    "RecordTooLargeError",
    "RequestTimedOutError",
    "ResourceType",
    "RetriableError",
    "TaskMigratedError",
    "TopicAuthorizationError",
    "TopicPartition",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionalIdAuthorizationError",
    "TxnCorruptedError",
    "UnknownMemberIdError",
    "UnknownProducerIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedVersionError",
    "run_transaction",
    "run_transaction_async",
]
