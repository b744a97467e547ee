"""CreateTopics (key 19), versions 2 to 7.

Version 4 takes -1 for the broker's default of partitions and replicas (KIP-464), 5 returns what was
created with its settings (KIP-525) and is flexible, 6 may answer that a quota is exceeded
(KIP-599), 7 returns the topic's id (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.configs.topic import TOPIC_SETTINGS
from ottla.broker.handlers.permission import creation_error
from ottla.broker.repeated import repeated
from ottla.broker.topics import TopicError, check_partitions_of_request
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

__all__ = ["handle", "refuse"]

_TOPIC_CONFIG, _BROKER_CONFIG, _DEFAULT_CONFIG = 1, 4, 5


def handle(broker: Broker, request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    """Creates each topic that can be; a name that is there twice is created not at all."""
    twice = repeated(topic.name for topic in request.topics)
    results: list[CreatableTopicResult] = []
    wanted: list[tuple[str, int, Mapping[str, str]]] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        if topic.name in twice:
            results.append(_failed(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
            continue
        error = creation_error(broker, context, topic.name)
        if error:
            results.append(_failed(topic.name, error, None))
            continue
        try:
            count, configs = broker.topics.check(
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                {config.name: config.value for config in topic.configs},
                {each.partition_index: each.broker_ids for each in topic.assignments},
            )
        except TopicError as refusal:
            results.append(_failed(topic.name, refusal.error, refusal.message))
            continue
        results.append(_created(broker, topic, count, configs))
        wanted.append((topic.name, count, configs))
    try:
        check_partitions_of_request(sum(count for _, count, _ in wanted))
    except TopicError as refusal:
        return refuse(request, context, refusal.error, refusal.message)
    if not request.validate_only:
        ids = {t.name: t.topic_id for t in broker.topics.create_all(wanted, context.now_ms)}
        for result in results:
            result.topic_id = ids.get(result.name, result.topic_id)
    return CreateTopicsResponse(topics=results)


def refuse(
    request: CreateTopicsRequest, _context: Context, error: int, message: str | None
) -> CreateTopicsResponse:
    """Answers with an error for each topic."""
    return CreateTopicsResponse(
        topics=[_failed(topic.name, error, message) for topic in request.topics]
    )


def _failed(name: str, error: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=message, configs=[])


def _created(
    broker: Broker, topic: CreatableTopic, count: int, configs: Mapping[str, str]
) -> CreatableTopicResult:
    replicas = max((len(each.broker_ids) for each in topic.assignments), default=0)
    default = broker.config.number("default.replication.factor")
    asked = default if topic.replication_factor == -1 else topic.replication_factor
    return CreatableTopicResult(
        name=topic.name,
        error_message=None,
        num_partitions=count,
        replication_factor=replicas or asked,
        configs=[
            CreatableTopicConfigs(
                name=name,
                value=value,
                config_source=source_of(broker, name, configs),
                read_only=False,
                is_sensitive=False,
            )
            for name, value in broker.topics.settings_of(configs).items()
        ],
    )


def source_of(broker: Broker, name: str, configs: Mapping[str, str]) -> int:
    """Returns where the value of a topic's setting comes from, as DescribeConfigs says it."""
    if name in configs:
        return _TOPIC_CONFIG
    synonym = TOPIC_SETTINGS[name].synonym
    return _BROKER_CONFIG if synonym and broker.config.is_set(synonym) else _DEFAULT_CONFIG
