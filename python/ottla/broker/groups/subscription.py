"""What consumers of the classic protocol tell each other: subscriptions and assignments.

The coordinator passes both on unread (KIP-62). It reads them only to know which committed offsets
are of topics that nobody reads any more (KIP-496), and where members of both protocols are in one
group (KIP-848).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

if TYPE_CHECKING:
    from ottla.broker.groups.records import Partitions
    from ottla.broker.image import Image
    from ottla.protocol.wire import Message

    M = TypeVar("M", bound=Message)

_VERSION = struct.Struct(">h")
# A higher one is read as this one: its fields are at the end.
_HIGHEST = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """Returns a subscription, `None` where it is none."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(data: bytes, image: Image) -> Partitions | None:
    """Returns the partitions of an assignment by topic ids, `None` where it is none.

    A member that has not synced yet has an empty one; topics that are gone are left out.
    """
    if not data:
        return {}
    assignment = _read(ConsumerProtocolAssignment, data)
    if assignment is None:
        return None
    return {
        image.topics[each.topic].topic_id: tuple(sorted(set(each.partitions)))
        for each in assignment.assigned_partitions
        if each.topic in image.topics and each.partitions
    }


def assignment_bytes(partitions: Partitions, image: Image, version: int) -> bytes:
    """Returns an assignment as consumers of a version read it."""
    version = max(0, min(version, _HIGHEST))
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=image.topics_by_id[topic_id].name, partitions=[*indexes])
            for topic_id, indexes in partitions.items()
            if topic_id in image.topics_by_id
        ]
    )
    parts = encode(ConsumerProtocolAssignment, version)(assignment)
    return b"".join((_VERSION.pack(version), *parts))


def version_of(metadata: bytes) -> int:
    """Returns the version that a consumer writes."""
    return int(_VERSION.unpack_from(metadata)[0]) if len(metadata) >= _VERSION.size else 0


def _read(message: type[M], data: bytes) -> M | None:
    version = version_of(data)
    if version < 0 or len(data) < _VERSION.size:
        return None
    try:
        return decode(message, min(version, _HIGHEST))(data, _VERSION.size)[0]
    except MalformedFrameError:
        return None
