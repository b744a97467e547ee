"""ConsumerGroupDescribe (key 69), versions 0 and 1: consumer groups with their members (KIP-848).

Version 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.groups.error import GroupError
from ottla.broker.handlers.group_calls import speaks_of_consumer_groups
from ottla.broker.handlers.permission import group_error, group_operations
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.groups.consumer_group import ConsumerGroup, ConsumerMember
    from ottla.broker.groups.records import Partitions
    from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

__all__ = ["handle", "refuse"]

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse:
    """Answers for each group."""
    if not speaks_of_consumer_groups(broker):
        return refuse(request, context, ErrorCode.UNSUPPORTED_VERSION, None)
    found = []
    for group_id in request.group_ids:
        error = group_error(broker, context, Operation.DESCRIBE, group_id)
        if error:
            found.append(_refused(group_id, error, None))
            continue
        try:
            described = _described(broker, broker.groups.consumer_group(group_id), context)
            if request.include_authorized_operations:
                described.authorized_operations = group_operations(broker, context, group_id)
            found.append(described)
        except GroupError as refusal:
            found.append(_refused(group_id, refusal.error_code, refusal.message))
    return ConsumerGroupDescribeResponse(groups=found)


def refuse(
    request: ConsumerGroupDescribeRequest, _context: Context, error: int, message: str | None
) -> ConsumerGroupDescribeResponse:
    """Answers with an error for each group."""
    return ConsumerGroupDescribeResponse(
        groups=[_refused(group_id, error, message) for group_id in request.group_ids]
    )


def _refused(group_id: str, error: int, message: str | None) -> DescribedGroup:
    return DescribedGroup(error_code=error, error_message=message, group_id=group_id)


def _described(broker: Broker, group: ConsumerGroup, context: Context) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(broker.groups.config.group_consumer_assignors[0]),
        members=[_member(member, context) for member in group.members.values()],
    )


def _member(member: ConsumerMember, context: Context) -> Member:
    said = member.subscription
    return Member(
        member_id=member.member_id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        member_epoch=member.epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=[*said.topic_names],
        subscribed_topic_regex=said.topic_regex,
        assignment=_assignment(member.current.assigned, context),
        target_assignment=_assignment(member.target, context),
        member_type=_CONSUMER_MEMBER if said.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, context: Context) -> Assignment:
    """Returns partitions by the names of their topics, those that are still there."""
    topics = context.image.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=topics[topic_id].name, partitions=[*indexes]
            )
            for topic_id, indexes in partitions.items()
            if topic_id in topics
        ]
    )
