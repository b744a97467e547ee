"""AddPartitionsToTxn (key 24), versions 0 to 5: what a transaction is going to write to (KIP-98).

Version 1 throttles after the answer, 2 knows PRODUCER_FENCED (KIP-588), 3 is flexible. From version
4 on brokers ask, for several transactions at once, and may only want to know what is in them
(KIP-890); 5 knows TRANSACTION_ABORTABLE.

All partitions of a transaction are added, or none: beside one that cannot be, the others have
OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import (
    cluster_error,
    topic_error,
    transactional_id_error,
)
from ottla.broker.transactions.error_codes import known_to
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.transactions.metadata import TopicPartition
    from ottla.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
    )

__all__ = ["handle", "refuse"]

_OF_BROKERS = 4
_VERSION_2 = 2


def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    """Adds or verifies partitions; answers with an error for each."""
    if context.version >= _OF_BROKERS:
        error = cluster_error(broker, context, Operation.CLUSTER_ACTION)
        if error:
            return refuse(request, context, error, None)
    return _response(
        context.version,
        [
            (transaction, _errors(broker, transaction, context))
            for transaction in _transactions(request, context.version)
        ],
    )


def refuse(
    request: AddPartitionsToTxnRequest, context: Context, error: int, _message: str | None
) -> AddPartitionsToTxnResponse:
    """Answers with an error for each partition."""
    response = _response(
        context.version,
        [
            (transaction, dict.fromkeys(_partitions(transaction.topics), error))
            for transaction in _transactions(request, context.version)
        ],
    )
    if context.version >= _OF_BROKERS:
        response.error_code = error
    return response


def _transactions(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    if version >= _OF_BROKERS:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _errors(
    broker: Broker, transaction: AddPartitionsToTxnTransaction, context: Context
) -> Mapping[TopicPartition, int]:
    name, is_of_client = transaction.transactional_id, context.version < _OF_BROKERS
    partitions = _partitions(transaction.topics)
    if is_of_client:
        error = transactional_id_error(broker, context, name)
    else:
        error = broker.faults.error(context, transactional_id=name) if broker.faults else 0
    if error:
        return dict.fromkeys(partitions, error)
    errors = {partition: _error_of(broker, partition, context) for partition in partitions}
    if any(errors.values()):
        return {
            partition: error or ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition, error in errors.items()
        }
    producer = name, transaction.producer_id, transaction.producer_epoch
    if transaction.verify_only:
        return broker.transactions.verify_partitions(*producer, partitions)
    error = broker.transactions.add_partitions(
        *producer,
        partitions,
        context.now_ms,
        transaction_version=0 if is_of_client else _VERSION_2,
    )
    return dict.fromkeys(partitions, error)


def _error_of(broker: Broker, partition: TopicPartition, context: Context) -> int:
    topic, index = partition
    if context.version < _OF_BROKERS:
        error = topic_error(broker, context, Operation.WRITE, topic, index)
    else:
        error = broker.faults.error(context, topic=topic, partition=index) if broker.faults else 0
    if error:
        return error
    is_there = context.image.partition(topic, index) is not None
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _response(
    version: int,
    errors: list[tuple[AddPartitionsToTxnTransaction, Mapping[TopicPartition, int]]],
) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=known_to(
                                ApiKey.ADD_PARTITIONS_TO_TXN, version, of_each[topic.name, index]
                            ),
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in transaction.topics
            ],
        )
        for transaction, of_each in errors
    ]
    if version >= _OF_BROKERS:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
