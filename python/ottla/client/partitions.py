"""Partitions, and where a group goes on in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ottla.client.errors import IllegalArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AnyPartition",
    "GroupMetadata",
    "OffsetAndMetadata",
    "TopicPartition",
    "offsets_to_commit",
]

AnyPartition = TypeVar("AnyPartition", bound="tuple[str, int]")
"""A partition as a pair, or as a `TopicPartition`."""


class TopicPartition(NamedTuple):
    """A partition by the name of its topic; it equals a tuple of both."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """Where a group goes on in a partition.

    Attributes:
        offset: of the next record.
        metadata: of the application's own.
        leader_epoch: of the last record read (KIP-320); -1 where it is not known.
        offset_epoch: what tells this partition from an earlier one of the same name (KIP-232), by
            `ottla.client.offset_epoch`; empty where it is not known.
    """

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1
    offset_epoch: bytes = b""


class GroupMetadata(NamedTuple):
    """A consumer as its group knows it (KIP-447).

    Attributes:
        group_id: the group.
        generation_id: of a classic group, or the member's epoch; -1 for neither.
        member_id: as the group gave it.
        group_instance_id: of a static member.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def offsets_to_commit(
    given: Mapping[AnyPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Returns offsets as applications give them, a number or more, in one form.

    Raises:
        IllegalArgumentError: something else was given.

    >>> offsets_to_commit({("orders", 0): 5})[TopicPartition("orders", 0)].offset
    5
    """
    offsets = {}
    for partition, one in given.items():
        if isinstance(one, bool) or not isinstance(one, (int, OffsetAndMetadata)):
            raise IllegalArgumentError(
                f"the offset of {partition} is {one!r}; expected an int or an OffsetAndMetadata"
            )
        whole = OffsetAndMetadata(one) if isinstance(one, int) else one
        offsets[TopicPartition(*partition)] = whole
    return offsets
