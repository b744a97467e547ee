"""Metadata (key 3), versions 0 to 13: brokers, topics, and who leads their partitions.

Version 1 tells "all topics" (null) from "none" (empty); 0 has empty for all. 4 lets the client say
whether topics are to be created, 5 lists offline replicas, 7 leader epochs (KIP-320), 8 to 10 what
the client may do (KIP-430), 10 topic ids (KIP-516), 12 asks by topic id, 13 has an error of its own
(KIP-1102).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import NOT_ASKED, Operation
from ottla.broker.handlers.permission import (
    cluster_operations,
    creation_error,
    may,
    topic_error,
    topic_operations,
)
from ottla.broker.topics import INTERNAL_TOPICS, MAX_PARTITIONS, TopicError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.image import Topic
    from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

__all__ = ["handle", "refuse"]

_TELLS_ALL_FROM_NONE = 1
# Versions 10 and 11 have ids and null names in their requests, and Kafka refuses both.
_BY_ID = 12


def handle(broker: Broker, request: MetadataRequest, context: Context) -> MetadataResponse:
    """Answers from one image; topics that are to be created are in it."""
    asked = request.topics
    if context.version < _BY_ID and any(
        topic.name is None or topic.topic_id != NO_UUID for topic in asked or ()
    ):
        return refuse(request, context, ErrorCode.INVALID_REQUEST, None)
    if asked is None or (not asked and context.version < _TELLS_ALL_FROM_NONE):
        topics = [
            described(broker, topic, request, context)
            for name, topic in sorted(context.image.topics.items())
            if may(broker, context, Operation.DESCRIBE, name)
        ]
    else:
        if request.allow_auto_topic_creation and broker.config.flag("auto.create.topics.enable"):
            _create_missing(broker, asked, context)
        topics = [_of(broker, topic, request, context) for topic in asked]
    image = context.image
    listener = context.connection.listener
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=host, port=port, rack=node.rack)
            for node in image.brokers.values()
            for host, port in [node.endpoint(listener)]
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations(broker, context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def refuse(
    request: MetadataRequest, _context: Context, error: int, _message: str | None
) -> MetadataResponse:
    """Answers with an error for each topic that was asked for; from version 13 on as a whole."""
    return MetadataResponse(
        error_code=error,
        topics=[
            # A null name is not allowed in every version, and Kafka's is empty in all of them.
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
    )


def _create_missing(broker: Broker, asked: list[MetadataRequestTopic], context: Context) -> None:
    """Creates topics that are asked for by name, as far as that is allowed."""
    wanted = []
    left = MAX_PARTITIONS
    for name in dict.fromkeys(topic.name for topic in asked if topic.topic_id == NO_UUID):
        if not name or name in context.image.topics:
            continue
        if creation_error(broker, context, name):
            continue
        if name in INTERNAL_TOPICS:
            broker.topics.internal(name, context.now_ms)
            continue
        try:
            count, configs = broker.topics.check(name, -1, -1, {})
        except TopicError:
            continue
        left -= count
        if left < 0:
            # The client asks for the others again.
            break
        wanted.append((name, count, configs))
    if wanted:
        broker.topics.create_all(wanted, context.now_ms)
    context.image = broker.image


def _of(
    broker: Broker, asked: MetadataRequestTopic, request: MetadataRequest, context: Context
) -> MetadataResponseTopic:
    image = context.image
    if asked.topic_id != NO_UUID:
        topic = image.topics_by_id.get(asked.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = image.topics.get(asked.name or "")
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is not None:
        return described(broker, topic, request, context)
    if not may(broker, context, Operation.DESCRIBE, asked.name or ""):
        missing = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif asked.name is not None and asked.topic_id == NO_UUID:
        try:
            broker.topics.check(asked.name, -1, -1, {})
        except TopicError as error:
            if error.error == ErrorCode.INVALID_TOPIC_EXCEPTION:
                missing = error.error
    return MetadataResponseTopic(error_code=missing, name=asked.name, topic_id=asked.topic_id)


def described(
    broker: Broker, topic: Topic, request: MetadataRequest, context: Context
) -> MetadataResponseTopic:
    """Returns what the answer says of a topic."""
    error = topic_error(broker, context, Operation.DESCRIBE, topic.name)
    if error:
        return MetadataResponseTopic(error_code=error, name=topic.name, topic_id=topic.topic_id)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        topic_authorized_operations=topic_operations(broker, context, topic.name)
        if request.include_topic_authorized_operations
        else NOT_ASKED,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for partition in topic.partitions
        ],
    )
