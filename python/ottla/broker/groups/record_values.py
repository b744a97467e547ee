"""Between what the coordinator keeps and the layouts of `__consumer_offsets`, value by value."""

from collections.abc import Iterable

from ottla.broker.groups.records import (
    ClassicGroupState,
    ClassicMemberState,
    ClassicProtocols,
    CommittedOffset,
    CurrentAssignment,
    Partitions,
    Subscription,
)
from ottla.protocol.messages import consumer_offsets as layouts


def offset_value(kept: CommittedOffset) -> layouts.OffsetCommitValue:
    """Returns the layout of a committed offset."""
    expire_timestamp_ms = kept.expire_timestamp_ms
    return layouts.OffsetCommitValue(
        offset=kept.offset,
        leader_epoch=kept.leader_epoch,
        metadata=kept.metadata,
        commit_timestamp=kept.commit_timestamp_ms,
        expire_timestamp=-1 if expire_timestamp_ms is None else expire_timestamp_ms,
    )


def offset(value: layouts.OffsetCommitValue) -> CommittedOffset:
    """Returns the committed offset of a layout."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp < 0 else value.expire_timestamp,
    )


def classic_group_value(kept: ClassicGroupState) -> layouts.GroupMetadataValue:
    """Returns the layout of a classic group."""
    return layouts.GroupMetadataValue(
        protocol_type=kept.protocol_type,
        generation=kept.generation_id,
        protocol=kept.protocol_name,
        leader=kept.leader,
        current_state_timestamp=kept.state_timestamp_ms,
        members=[
            layouts.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in kept.members
        ],
    )


def classic_group(value: layouts.GroupMetadataValue) -> ClassicGroupState:
    """Returns the classic group of a layout."""
    return ClassicGroupState(
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            ClassicMemberState(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                # Version 0 has one time-out for both.
                member.session_timeout
                if member.rebalance_timeout < 0
                else member.rebalance_timeout,
                member.session_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
    )


def subscription_value(kept: Subscription) -> layouts.ConsumerGroupMemberMetadataValue:
    """Returns the layout of what a member of a consumer group said."""
    classic = kept.classic
    return layouts.ConsumerGroupMemberMetadataValue(
        instance_id=kept.instance_id,
        rack_id=kept.rack_id,
        client_id=kept.client_id,
        client_host=kept.client_host,
        subscribed_topic_names=[*kept.topic_names],
        subscribed_topic_regex=kept.topic_regex,
        rebalance_timeout_ms=kept.rebalance_timeout_ms,
        server_assignor=kept.server_assignor,
        classic_member_metadata=None
        if classic is None
        else layouts.ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                layouts.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in classic.protocols
            ],
        ),
    )


def subscription(value: layouts.ConsumerGroupMemberMetadataValue) -> Subscription:
    """Returns what a member of a consumer group said, of a layout."""
    classic = value.classic_member_metadata
    return Subscription(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        tuple(value.subscribed_topic_names),
        value.subscribed_topic_regex,
        value.rebalance_timeout_ms,
        value.server_assignor,
        None
        if classic is None
        else ClassicProtocols(
            classic.session_timeout_ms,
            tuple((each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )


def target_value(kept: Partitions) -> layouts.ConsumerGroupTargetAssignmentMemberValue:
    """Returns the layout of a target assignment."""
    return layouts.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            layouts.TopicPartition(topic_id=topic_id, partitions=[*partitions])
            for topic_id, partitions in kept.items()
        ]
    )


def current_value(kept: CurrentAssignment) -> layouts.ConsumerGroupCurrentMemberAssignmentValue:
    """Returns the layout of a current assignment."""
    return layouts.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=kept.member_epoch,
        previous_member_epoch=kept.previous_member_epoch,
        state=kept.state,
        assigned_partitions=_topics(kept.assigned),
        partitions_pending_revocation=_topics(kept.pending_revocation),
    )


def current(value: layouts.ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """Returns the current assignment of a layout."""
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        partitions_of(value.assigned_partitions),
        partitions_of(value.partitions_pending_revocation),
    )


def partitions_of(
    topics: Iterable[layouts.TopicPartition | layouts.TopicPartitions],
) -> Partitions:
    """Returns the partitions of a layout."""
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics}


def _topics(partitions: Partitions) -> list[layouts.TopicPartitions]:
    return [
        layouts.TopicPartitions(topic_id=topic_id, partitions=[*indexes])
        for topic_id, indexes in partitions.items()
    ]
