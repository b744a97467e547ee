"""Calls about groups, and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.arguments import names
from ottla.client.admin.operation import (
    AGAIN,
    ByKey,
    CoordinatorOf,
    KeyType,
    OnNode,
    Outcome,
    Single,
)
from ottla.client.errors import error_of
from ottla.client.partitions import TopicPartition
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.client.admin.operation import Route
    from ottla.client.network.metadata import Node
    from ottla.protocol.wire import Message

__all__ = [
    "ChangedGroup",
    "DeleteGroups",
    "DescribeGroups",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "ListGroups",
]

_VERSION_BYTES = 2


class GroupListing(NamedTuple):
    """A group that there is.

    Attributes:
        group_id: the group.
        protocol_type: ``consumer`` for consumers; empty where nobody has joined.
        state: such as ``Stable``; empty where a broker does not tell.
        group_type: ``classic`` or ``consumer``; empty where a broker does not tell.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class GroupMember(NamedTuple):
    """A member of a group.

    Attributes:
        member_id: as the group knows it.
        group_instance_id: of a static member.
        client_id: of its client.
        client_host: where it connects from.
        assignment: its partitions.
        member_epoch: of a group of type ``consumer``; -1 elsewhere.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    member_epoch: int = -1


class GroupDescription(NamedTuple):
    """A group with its members, or why it is not described.

    Attributes:
        group_id: the group.
        group_type: ``classic`` or ``consumer``.
        state: such as ``Stable``.
        assignor: by which partitions are assigned; empty where they are not.
        members: of the group.
        error: why it is not described.
    """

    group_id: str
    group_type: str = ""
    state: str = ""
    assignor: str = ""
    members: tuple[GroupMember, ...] = ()
    error: Exception | None = None


class ChangedGroup(NamedTuple):
    """A group that was deleted, or why not."""

    group_id: str
    error: Exception | None = None


class ListGroups(Single[int, list[GroupListing]]):
    """Lists groups, of all brokers."""

    name = "list_groups"

    def __init__(self, states: Iterable[str], types: Iterable[str]) -> None:
        self._states = list(states)
        self._types = list(types)

    def keys(self, nodes: Mapping[int, Node]) -> Sequence[int] | None:
        return list(nodes) or None

    def route(self, key: int) -> Route:
        return OnNode(key)

    def request(self, _key: int) -> tuple[type[Message], range | None]:
        least = 5 if self._types else 4 if self._states else 0
        return ListGroupsRequest, range(least, 6)

    def fields(self, _keys: Sequence[int]) -> dict[str, Any]:
        return {"states_filter": self._states, "types_filter": self._types}

    def read(self, keys: Sequence[int], response: Any) -> Iterator[tuple[int, Outcome]]:
        failed = error_of(response.error_code) if response.error_code else None
        yield keys[0], failed or response.groups

    def value(self, outcomes: dict[int, Any]) -> list[GroupListing]:
        found = {
            one.group_id: GroupListing(
                one.group_id, one.protocol_type, one.group_state, one.group_type
            )
            for groups in outcomes.values()
            for one in groups
        }
        return [found[group_id] for group_id in sorted(found)]


class DescribeGroups(ByKey[str, GroupDescription]):
    """Describes groups of both types."""

    name = "describe_groups"

    def __init__(self, group_ids: Iterable[str]) -> None:
        self._group_ids = names(group_ids, "group_ids")
        self._classic: set[str] = set()

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._group_ids

    def route(self, key: str) -> Route:
        return CoordinatorOf(KeyType.GROUP, key)

    def request(self, key: str) -> tuple[type[Message], range | None]:
        if key in self._classic:
            return DescribeGroupsRequest, None
        return ConsumerGroupDescribeRequest, None

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {"groups": list(keys), "group_ids": list(keys)}

    def ask_otherwise(self, keys: Sequence[str]) -> bool:
        is_first = not self._classic.issuperset(keys)
        self._classic.update(keys)
        return is_first

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.groups:
            is_classic = one.group_id in self._classic
            if one.error_code in _NOT_OF_TYPE_CONSUMER and not is_classic:
                self._classic.add(one.group_id)
                yield one.group_id, AGAIN
            elif one.error_code:
                yield one.group_id, error_of(one.error_code, one.error_message)
            elif is_classic:
                yield one.group_id, _classic_group(one)
            else:
                yield one.group_id, _consumer_group(one)

    def failed(self, key: str, error: Exception) -> GroupDescription:
        return GroupDescription(key, error=error)


_NOT_OF_TYPE_CONSUMER = frozenset(
    {int(ErrorCode.GROUP_ID_NOT_FOUND), int(ErrorCode.UNSUPPORTED_VERSION)}
)


def _classic_group(one: Any) -> Outcome:
    # Before version 6, a group that is not there is one that is dead.
    if one.group_state == "Dead":
        return error_of(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {one.group_id}")
    members = tuple(
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _assigned(each.member_assignment) if one.protocol_type == "consumer" else (),
        )
        for each in one.members
    )
    return GroupDescription(one.group_id, "classic", one.group_state, one.protocol_data, members)


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Partitions as a leader wrote them; none where it wrote something else."""
    try:
        version = int.from_bytes(data[:_VERSION_BYTES], "big")
        assignment, _ = decode(ConsumerProtocolAssignment, min(version, 3))(data, _VERSION_BYTES)
    except MalformedFrameError:
        return ()
    return tuple(
        TopicPartition(one.topic, partition)
        for one in assignment.assigned_partitions
        for partition in one.partitions
    )


def _consumer_group(one: Any) -> GroupDescription:
    members = tuple(
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            tuple(
                TopicPartition(topic.topic_name, partition)
                for topic in each.assignment.topic_partitions
                for partition in topic.partitions
            ),
            each.member_epoch,
        )
        for each in one.members
    )
    return GroupDescription(one.group_id, "consumer", one.group_state, one.assignor_name, members)


class DeleteGroups(ByKey[str, ChangedGroup]):
    """Deletes groups that nobody is a member of."""

    name = "delete_groups"

    def __init__(self, group_ids: Iterable[str]) -> None:
        self._group_ids = names(group_ids, "group_ids")

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[str]:
        return self._group_ids

    def route(self, key: str) -> Route:
        return CoordinatorOf(KeyType.GROUP, key)

    def request(self, _key: str) -> tuple[type[Message], range | None]:
        return DeleteGroupsRequest, None

    def fields(self, keys: Sequence[str]) -> dict[str, Any]:
        return {"groups_names": list(keys)}

    def read(self, _keys: Sequence[str], response: Any) -> Iterator[tuple[str, Outcome]]:
        for one in response.results:
            if one.error_code:
                yield one.group_id, error_of(one.error_code, one.error_message)
            else:
                yield one.group_id, ChangedGroup(one.group_id)

    def failed(self, key: str, error: Exception) -> ChangedGroup:
        return ChangedGroup(key, error)
