"""A group changes its protocol while its members are in it (KIP-848, online migration).

Up: the first member that speaks the consumer protocol makes a consumer group of a classic one. Its
members stay, with their assignments, and go on with the classic protocol (`mixed.py`).
Down: when the last member that speaks the consumer protocol is gone, the others are a classic group
again, which rebalances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.classic_group import CONSUMER_PROTOCOL_TYPE, STABLE, ClassicGroup, Member
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.records import (
    ClassicGroupRecord,
    ClassicProtocols,
    ConsumerGroupRecord,
    CurrentAssignment,
    CurrentRecord,
    GroupEpoch,
    MemberRecord,
    MemberState,
    Record,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.broker.groups.subscription import (
    assignment_bytes,
    read_assignment,
    read_subscription,
    version_of,
)
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.groups.config import GroupConfig
    from ottla.broker.groups.consumer_group import ConsumerGroup
    from ottla.broker.image import Image


def may_upgrade(group: ClassicGroup, config: GroupConfig) -> bool:
    """Whether a consumer group may be made of a classic one that somebody is in."""
    return (
        config.group_consumer_migration_policy in {"bidirectional", "upgrade"}
        and group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and len(group.members) <= config.group_consumer_max_size
    )


def may_downgrade(group: ConsumerGroup, config: GroupConfig) -> bool:
    """Whether a consumer group has members of the classic protocol alone, and may be theirs."""
    return (
        config.group_consumer_migration_policy in {"bidirectional", "downgrade"}
        and bool(group.members)
        and all(member.subscription.classic for member in group.members.values())
        and len(group.members) <= config.group_max_size
    )


def upgraded(group: ClassicGroup, image: Image) -> list[Record]:
    """Returns the records that make a consumer group of a classic one.

    Raises:
        GroupError: what a member says to the others cannot be read (69).
    """
    epoch = group.generation_id
    records: list[Record] = [ClassicGroupRecord(group.group_id, None)]
    records.append(ConsumerGroupRecord(group.group_id, GroupEpoch(epoch, 0)))
    taken: set[tuple[bytes, int]] = set()
    for member in group.members.values():
        subscription = read_subscription(member.protocols[0][1])
        partitions = read_assignment(member.assignment, image)
        if subscription is None or partitions is None:
            raise GroupError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group.group_id} to consumer group because the "
                "embedded consumer protocol is malformed.",
            )
        # The leader is a client: a partition that it gave to two is the first one's.
        mine = {
            topic_id: tuple(each for each in indexes if (topic_id, each) not in taken)
            for topic_id, indexes in partitions.items()
        }
        taken |= {(topic_id, each) for topic_id, indexes in mine.items() for each in indexes}
        mine = {topic_id: indexes for topic_id, indexes in mine.items() if indexes}
        said = Subscription(
            member.group_instance_id,
            subscription.rack_id,
            member.client_id,
            member.client_host,
            tuple(sorted(set(subscription.topics))),
            None,
            member.rebalance_timeout_ms,
            None,
            ClassicProtocols(member.session_timeout_ms, member.protocols),
        )
        current = CurrentAssignment(epoch, epoch, MemberState.STABLE, mine, {})
        records += [
            MemberRecord(group.group_id, member.member_id, said),
            TargetRecord(group.group_id, member.member_id, mine),
            CurrentRecord(group.group_id, member.member_id, current),
        ]
    return [*records, TargetEpochRecord(group.group_id, epoch)]


def downgraded(group: ConsumerGroup, image: Image, now_ms: int) -> ClassicGroup:
    """Returns the classic group of members that all speak its protocol."""
    classic = ClassicGroup(group.group_id, now_ms)
    for each in group.members.values():
        said = each.subscription
        if said.classic is None:
            continue
        protocols = said.classic.protocols
        member = Member(
            each.member_id,
            said.instance_id,
            client_id=said.client_id,
            client_host=said.client_host,
            rebalance_timeout_ms=said.rebalance_timeout_ms,
            session_timeout_ms=said.classic.session_timeout_ms,
            protocols=protocols,
            assignment=assignment_bytes(
                each.current.assigned, image, version_of(protocols[0][1]) if protocols else 0
            ),
        )
        classic.add(member, CONSUMER_PROTOCOL_TYPE)
    classic.generation_id = group.epoch
    classic.protocol_name = classic.chosen_protocol()
    classic.remember_topics()
    classic.transition(STABLE, now_ms)
    return classic
