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
    from ottla.client.consumer.errors import (
        CorruptFetchError,
        InvalidPartitionEpochError,
        LogTruncationError,
        NoOffsetForPartitionError,
        OffsetOutOfRangeError,
        PositionError,
        RecordDeserializationError,
        WakeupError,
    )
    from ottla.client.consumer.listener import (
        RebalanceListener,
    )
    from ottla.client.consumer.position import (
        OffsetAndOffsetEpoch,
        OffsetAndTimestamp,
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
    from ottla.net.client.async_consumer import (
        AsyncConsumer,
    )
    from ottla.net.client.async_producer import (
        AsyncProducer,
    )
    from ottla.net.client.consumer import (
        Consumer,
    )
    from ottla.net.client.producer import (
        Producer,
    )
    from ottla.records import (
        ConsumerRecord,
    )
else:
    from ottla.on_demand import on_demand

    # The shells bring asyncio and ssl along.
    __getattr__ = on_demand(
        __name__,
        {
            "ConfigChange": "ottla.client.admin.configs",
            "ConfigChangeKind": "ottla.client.admin.configs",
            "ConfigResource": "ottla.client.admin.configs",
            "ResourceType": "ottla.client.admin.configs",
            "OffsetSpec": "ottla.client.admin.offsets",
            "NewTopic": "ottla.client.admin.topics",
            "CorruptFetchError": "ottla.client.consumer.errors",
            "InvalidPartitionEpochError": "ottla.client.consumer.errors",
            "LogTruncationError": "ottla.client.consumer.errors",
            "NoOffsetForPartitionError": "ottla.client.consumer.errors",
            "OffsetOutOfRangeError": "ottla.client.consumer.errors",
            "PositionError": "ottla.client.consumer.errors",
            "RecordDeserializationError": "ottla.client.consumer.errors",
            "WakeupError": "ottla.client.consumer.errors",
            "RebalanceListener": "ottla.client.consumer.listener",
            "OffsetAndOffsetEpoch": "ottla.client.consumer.position",
            "OffsetAndTimestamp": "ottla.client.consumer.position",
            "IgnoredOptionWarning": "ottla.client.options.config",
            "AsyncProcessingRunner": "ottla.client.processing.runner",
            "ProcessingRunner": "ottla.client.processing.runner",
            "TaskMigratedError": "ottla.client.processing.runner",
            "TxnCorruptedError": "ottla.client.processing.runner",
            "run_transaction": "ottla.client.processing.transaction",
            "run_transaction_async": "ottla.client.processing.transaction",
            "Receipt": "ottla.client.producer.receipt",
            "RecordMetadata": "ottla.client.producer.record_metadata",
            "Admin": "ottla.net.client.admin",
            "AsyncAdmin": "ottla.net.client.admin",
            "AsyncConsumer": "ottla.net.client.async_consumer",
            "AsyncProducer": "ottla.net.client.async_producer",
            "Consumer": "ottla.net.client.consumer",
            "Producer": "ottla.net.client.producer",
            "ConsumerRecord": "ottla.records",
        },
    )

__all__ = [
    "AbortableError",
    "Admin",
    "ApiError",
    "AsyncAdmin",
    "AsyncConsumer",
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
    "Consumer",
    "ConsumerRecord",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorrelationIdMismatchError",
    "CorruptFetchError",
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
    "InvalidPartitionEpochError",
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
    "LogTruncationError",
    "MalformedResponseError",
    "NetworkError",
    "NewTopic",
    "NoOffsetForPartitionError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetAndMetadata",
    "OffsetAndOffsetEpoch",
    "OffsetAndTimestamp",
    "OffsetCommitFailedError",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "OutOfOrderSequenceError",
    "PollIntervalExceededError",
    "PositionError",
    "ProcessingRunner",
    "ProduceFailedError",
    "Producer",
    "ProducerClosedError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RebalanceListener",
    "Receipt",
    "RecordBatchTooLargeError",
    "RecordDeserializationError",
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
    "WakeupError",
    "run_transaction",
    "run_transaction_async",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
