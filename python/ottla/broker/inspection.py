"""What a broker knows of groups, transactional ids and producers, as plain values for a test.

Everything here is a copy: it does not change when the broker does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.topics import TRANSACTION_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.groups.classic_group import ClassicGroup
    from ottla.broker.groups.consumer_group import ConsumerGroup
    from ottla.broker.groups.records import Partitions
    from ottla.broker.image import Image, Partition

__all__ = [
    "Group",
    "GroupMember",
    "GroupOffset",
    "Producer",
    "Transaction",
    "groups",
    "producers",
    "transactions",
]


class GroupMember(NamedTuple):
    """A member of a group.

    Attributes:
        group_instance_id: of a static member (KIP-345).
        client_host: its address.
        assignment: topics and partitions that it has; empty while that is being decided.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[tuple[str, int], ...]


class GroupOffset(NamedTuple):
    """What a group has committed of a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int


class Group(NamedTuple):
    """A group of consumers.

    Attributes:
        type: ``classic``, or ``consumer`` (KIP-848).
        state: Kafka's name of it, as in ``Stable``.
        protocol: the assignor that is in force; empty where there is none.
        generation_id: of a classic group; the epoch of a consumer group.
        members: in the order in which they came.
        offsets: by topic and partition.
    """

    group_id: str
    type: str
    state: str
    protocol: str
    generation_id: int
    members: tuple[GroupMember, ...]
    offsets: tuple[GroupOffset, ...]


class Transaction(NamedTuple):
    """A transactional id.

    Attributes:
        state: Kafka's name of it, as in ``Ongoing``.
        timeout_ms: how long a transaction may take.
        start_ms: when the transaction began, -1 before the first.
        partitions: topics and partitions of the transaction under way.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[tuple[str, int], ...]


class Producer(NamedTuple):
    """An idempotent producer, as a partition knows it.

    Attributes:
        current_txn_start_offset: the first offset of its open transaction, if it has one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int | None


def groups(broker: Broker) -> dict[str, Group]:
    """Returns all groups by id."""
    from ottla.broker.groups.classic_group import ClassicGroup  # noqa: PLC0415 - as `broker.groups`

    coordinator = broker.groups
    found = {}
    for group_id, group in sorted(coordinator.store.groups.items()):
        if isinstance(group, ClassicGroup):
            members = tuple(_classic_members(group, broker.image))
            described = ("classic", group.state, group.protocol_name or "", group.generation_id)
        else:
            members = tuple(_consumer_members(group, broker.image))
            assignor = group.assignor(coordinator.config.group_consumer_assignors[0])
            described = ("consumer", group.state, assignor, group.epoch)
        offsets = tuple(
            GroupOffset(
                topic,
                partition,
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp_ms,
            )
            for topic, partition, value in sorted(coordinator.store.offsets.of_group(group_id))
        )
        found[group_id] = Group(group_id, *described, members, offsets)
    return found


def _classic_members(group: ClassicGroup, image: Image) -> Iterator[GroupMember]:
    from ottla.broker.groups.subscription import read_assignment  # noqa: PLC0415 - as above

    for member in group.members.values():
        # What others than consumers are assigned is for them alone to read.
        is_known = group.protocol_type == "consumer"
        assigned = read_assignment(member.assignment, image) if is_known else None
        yield GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _named(assigned or {}, image),
        )


def _consumer_members(group: ConsumerGroup, image: Image) -> Iterator[GroupMember]:
    for member in group.members.values():
        said = member.subscription
        yield GroupMember(
            member.member_id,
            said.instance_id,
            said.client_id,
            said.client_host,
            _named(member.current.assigned, image),
        )


def _named(partitions: Partitions, image: Image) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted(
            (image.topics_by_id[topic_id].name, index)
            for topic_id, indexes in partitions.items()
            if topic_id in image.topics_by_id
            for index in indexes
        )
    )


def transactions(broker: Broker, now_ms: int) -> dict[str, Transaction]:
    """Returns all transactional ids."""
    if TRANSACTION_STATE not in broker.image.topics:
        # Nobody has asked for one, and looking creates no topic.
        return {}
    coordinator = broker.transactions
    coordinator.ensure_log(now_ms)
    return {
        known.transactional_id: Transaction(
            known.transactional_id,
            known.state_name,
            known.producer_id,
            known.producer_epoch,
            known.timeout_ms,
            known.start_ms,
            tuple(sorted(known.partitions)),
        )
        for known in sorted(coordinator.transactions(), key=lambda each: each.transactional_id)
    }


def producers(broker: Broker, partition: Partition) -> tuple[Producer, ...]:
    """Returns the producers that a partition knows, by id."""
    return tuple(
        Producer(
            known.producer_id,
            known.producer_epoch,
            known.last_sequence,
            known.last_timestamp_ms,
            known.coordinator_epoch,
            known.transaction_first_offset,
        )
        for known in sorted(
            broker.plane.producers(partition.handle), key=lambda each: each.producer_id
        )
    )
