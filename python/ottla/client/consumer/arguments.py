"""What applications pass to a consumer, as its core takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.position import OffsetAndOffsetEpoch, Position
from ottla.client.consumer.positions import position_of
from ottla.client.errors import IllegalArgumentError
from ottla.client.offset_epoch import epochs_in
from ottla.client.partitions import OffsetAndMetadata, TopicPartition, offsets_to_commit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    from ottla.client.consumer.position import OffsetAndTimestamp
    from ottla.client.partitions import AnyPartition

    Value = TypeVar("Value")

__all__ = ["committable", "list_of", "map_of", "offsets_of", "partition_of", "position_to_seek"]


def partition_of(given: tuple[str, int]) -> TopicPartition:
    """Returns a partition that is given as a pair.

    Raises:
        IllegalArgumentError: it is none.

    >>> partition_of(("orders", 0))
    TopicPartition(topic='orders', partition=0)
    """
    match given:
        case (str() as topic, int() as number) if topic and number >= 0:
            return TopicPartition(topic, number)
    raise IllegalArgumentError(
        f"{given!r} is no partition: expected a pair of a topic and a number, as ('orders', 0)"
    )


def list_of(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Returns partitions that are given as pairs."""
    return [partition_of(one) for one in partitions]


def map_of(given: Mapping[AnyPartition, Value]) -> dict[TopicPartition, Value]:
    """Returns what is given by partition."""
    return {partition_of(one): value for one, value in given.items()}


def committable(
    offsets: Mapping[AnyPartition, int | OffsetAndMetadata] | None,
) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """Returns offsets to commit."""
    return None if offsets is None else offsets_to_commit(offsets)


def offsets_of(found: Mapping[TopicPartition, OffsetAndTimestamp]) -> dict[TopicPartition, int]:
    """Returns the offsets alone."""
    return {one: each.offset for one, each in found.items()}


def position_to_seek(
    offset: int | OffsetAndMetadata | OffsetAndOffsetEpoch, offset_epoch: bytes | None
) -> Position:
    """Returns where to go on.

    Raises:
        IllegalArgumentError: a negative offset, or an epoch that is none.
    """
    if isinstance(offset, OffsetAndMetadata):
        position = position_of(offset)
    elif isinstance(offset, OffsetAndOffsetEpoch):
        position = Position(offset.offset, *epochs_in(offset.offset_epoch))
    else:
        position = Position(offset, *epochs_in(offset_epoch or b""))
    if position.offset < 0:
        raise IllegalArgumentError(f"no record has offset {position.offset}")
    return position
