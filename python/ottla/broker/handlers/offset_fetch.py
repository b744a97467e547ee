"""OffsetFetch (key 9), versions 1 to 10: how far a group has read.

Version 2 may ask for everything, 3 has a throttle time, 5 leader epochs (KIP-320), 6 is flexible, 7
may require that no transaction is about to change an offset (KIP-447), 8 asks for many groups at
once (KIP-709), 9 names the member (KIP-848), 10 names topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.groups.commits import Fetched, FetchedTopic
from ottla.broker.groups.error import GroupError
from ottla.broker.handlers.permission import group_error, may, topic_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.offset_fetch import OffsetFetchRequest

__all__ = ["handle", "refuse"]

_ERROR_OF_GROUP, _MANY_GROUPS, _TOPIC_IDS = 2, 8, 10


def handle(broker: Broker, request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    """Answers for each group by itself."""
    groups = []
    for asked in _groups(request, context):
        error = group_error(broker, context, Operation.DESCRIBE, asked.group_id)
        try:
            if not error:
                broker.groups.commits.validate_fetch(
                    asked.group_id, asked.member_id, asked.member_epoch
                )
        except GroupError as refusal:
            error = refusal.error_code
        if error:
            groups.append(_refused(asked, error))
            continue
        topics = _fetched(broker, asked, context, require_stable=request.require_stable)
        groups.append(_group(asked.group_id, topics))
    return _response(groups, context)


def refuse(
    request: OffsetFetchRequest, context: Context, error: int, _message: str | None
) -> OffsetFetchResponse:
    """Answers with an error for each group, and in version 1 for each partition."""
    return _response([_refused(asked, error) for asked in _groups(request, context)], context)


def _groups(request: OffsetFetchRequest, context: Context) -> list[OffsetFetchRequestGroup]:
    """Returns what is asked of each group, whatever the version."""
    if context.version >= _MANY_GROUPS:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _fetched(
    broker: Broker, asked: OffsetFetchRequestGroup, context: Context, *, require_stable: bool
) -> list[FetchedTopic]:
    commits = broker.groups.commits
    if asked.topics is None:
        everything = commits.fetch_all(asked.group_id, require_stable=require_stable)
        # A topic that is gone has no id to be named by.
        by_id = context.version >= _TOPIC_IDS
        return [
            topic
            for topic in everything
            if (not by_id or topic.topic_id != NO_UUID)
            and may(broker, context, Operation.DESCRIBE, topic.name)
        ]
    found = []
    for topic in asked.topics:
        name = topic.name
        if context.version >= _TOPIC_IDS:
            known = context.image.topics_by_id.get(topic.topic_id)
            if known is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                refused = [Fetched(each, error_code=code) for each in topic.partition_indexes]
                found.append(FetchedTopic("", topic.topic_id, refused))
                continue
            name = known.name
        found.append(
            FetchedTopic(
                name,
                topic.topic_id,
                _partitions(
                    broker,
                    context,
                    name,
                    topic.partition_indexes,
                    commits.fetch(
                        asked.group_id, name, topic.partition_indexes, require_stable=require_stable
                    ),
                ),
            )
        )
    return found


def _partitions(
    broker: Broker, context: Context, topic: str, indexes: list[int], fetched: list[Fetched]
) -> list[Fetched]:
    """Returns what was fetched, with errors where the client may not know, or a fault is set."""
    if not broker.faults and not broker.authorizer.is_enabled:
        return fetched
    errors = [topic_error(broker, context, Operation.DESCRIBE, topic, each) for each in indexes]
    return [
        Fetched(each.partition, error_code=error) if error else each
        for each, error in zip(fetched, errors, strict=True)
    ]


def _refused(asked: OffsetFetchRequestGroup, error: int) -> OffsetFetchResponseGroup:
    topics = [
        FetchedTopic(
            topic.name,
            topic.topic_id,
            [Fetched(each, error_code=error) for each in topic.partition_indexes],
        )
        for topic in asked.topics or ()
    ]
    return _group(asked.group_id, topics, error)


def _group(group_id: str, topics: list[FetchedTopic], error: int = 0) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group_id,
        error_code=error,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=each.partition,
                        committed_offset=each.offset,
                        committed_leader_epoch=each.leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _response(groups: list[OffsetFetchResponseGroup], context: Context) -> OffsetFetchResponse:
    if context.version >= _MANY_GROUPS:
        for group in groups:
            if group.error_code:
                group.topics = []
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    if group.error_code and context.version >= _ERROR_OF_GROUP:
        return OffsetFetchResponse(error_code=group.error_code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ]
    )
