"""What members of classic groups say to each other in bytes: subscriptions and assignments.

Version 3 is written, which older members read as far as they know it: fields are added at the end.
A higher one is read as version 3.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from ottla.client.errors import ApiError, error_of
from ottla.client.groups.assignors import Subscription
from ottla.client.partitions import TopicPartition
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages import consumer_protocol
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.protocol.wire import Message

    M = TypeVar("M", bound=Message)

__all__ = [
    "PROTOCOL_TYPE",
    "assignment_bytes",
    "partitions_by_topic",
    "read_assignment",
    "read_subscription",
    "subscription_bytes",
]

PROTOCOL_TYPE = "consumer"

_VERSION = struct.Struct(">h")
_HIGHEST = 3


def subscription_bytes(subscription: Subscription) -> bytes:
    """Returns what a member says of itself when it joins."""
    return _written(
        ConsumerProtocolSubscription(
            topics=sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=_by_topic(subscription.owned),
            generation_id=subscription.generation_id,
            rack_id=subscription.rack_id,
        )
    )


def read_subscription(data: bytes, member_id: str) -> Subscription:
    """Returns what a member says of itself.

    Raises:
        ApiError: that cannot be read.
    """
    read = _read(ConsumerProtocolSubscription, data, f"the subscription of member {member_id}")
    return Subscription(
        topics=frozenset(read.topics),
        owned=frozenset(_partitions(read.owned_partitions)),
        generation_id=read.generation_id,
        rack_id=read.rack_id,
        user_data=read.user_data,
    )


def assignment_bytes(partitions: Iterable[TopicPartition], user_data: bytes | None) -> bytes:
    """Returns what the leader has for a member."""
    return _written(
        ConsumerProtocolAssignment(assigned_partitions=_by_topic(partitions), user_data=user_data)
    )


def read_assignment(data: bytes) -> tuple[frozenset[TopicPartition], bytes | None]:
    """Returns the partitions of an assignment, and what its assignor added; none of no bytes.

    Raises:
        ApiError: that cannot be read.
    """
    if not data:
        return frozenset(), None
    read = _read(ConsumerProtocolAssignment, data, "the assignment of the group's leader")
    return frozenset(_partitions(read.assigned_partitions)), read.user_data


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Returns the numbers of partitions by topic, all in order."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> list[consumer_protocol.TopicPartition]:
    return [
        consumer_protocol.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in partitions_by_topic(partitions).items()
    ]


def _partitions(topics: list[consumer_protocol.TopicPartition]) -> Iterable[TopicPartition]:
    return (TopicPartition(each.topic, number) for each in topics for number in each.partitions)


def _written(message: Message) -> bytes:
    return b"".join((_VERSION.pack(_HIGHEST), *encode(type(message), _HIGHEST)(message)))


def _read(message: type[M], data: bytes, what: str) -> M:
    version = int(_VERSION.unpack_from(data)[0]) if len(data) >= _VERSION.size else -1
    if version >= 0:
        try:
            return decode(message, min(version, _HIGHEST))(data, _VERSION.size)[0]
        except MalformedFrameError as error:
            raise _unreadable(what, str(error)) from error
    raise _unreadable(what, f"{len(data)} bytes of version {version}")


def _unreadable(what: str, found: str) -> ApiError:
    return error_of(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"{what} cannot be read, {found}: have only consumers with the same strategies of "
        "partition_assignment_strategy in one group",
    )
