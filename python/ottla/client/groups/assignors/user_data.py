"""What members of the sticky assignor say they had; from version 1 on, in which generation."""

from __future__ import annotations

from ottla.client.groups.assignors.ownership import Claim
from ottla.client.partitions import TopicPartition
from ottla.errors import MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.wire import Message, Struct, array, int32, string

__all__ = ["previous_assignment", "previous_assignment_bytes"]

_NOTHING = Claim(frozenset())


class TopicAssignment(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class StickyAssignorUserData(Message, versions="0-1", flexible="none"):
    previous_assignment: list[TopicAssignment] = array(TopicAssignment, "0+")
    generation: int = int32("1+", default=-1, ignorable=True)


def previous_assignment_bytes(had: Claim) -> bytes:
    """Returns it as Java's clients read it, without a number of its version."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(had.partitions):
        by_topic.setdefault(topic, []).append(number)
    data = StickyAssignorUserData(
        previous_assignment=[
            TopicAssignment(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()
        ],
        generation=had.generation_id,
    )
    return b"".join(encode(StickyAssignorUserData, 1)(data))


def previous_assignment(data: bytes | None) -> Claim:
    """Returns what a member had; nothing where the bytes are none of either version."""
    if data is None:
        return _NOTHING
    for version in (1, 0):
        try:
            read = decode(StickyAssignorUserData, version)(data, 0)[0]
        except MalformedFrameError:
            continue
        return Claim(
            frozenset(
                TopicPartition(each.topic, number)
                for each in read.previous_assignment
                for number in each.partitions
            ),
            read.generation,
        )
    return _NOTHING
