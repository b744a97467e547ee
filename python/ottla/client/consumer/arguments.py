"""What applications pass to a consumer, as its core takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.consumer.position import OffsetAndOffsetEpoch, Position
from ottla.client.consumer.positions import position_of
from ottla.client.errors import IllegalArgumentError
from ottla.client.offset_epoch import epochs_in
from ottla.client.partitions import (
    OffsetAndMetadata,
    TopicPartition,
    offset_of,
    offsets_to_commit,
    partition_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    from ottla.client.consumer.position import OffsetAndTimestamp
    from ottla.client.partitions import AnyPartition

    Value = TypeVar("Value")

__all__ = [
    "committable",
    "list_of",
    "map_of",
    "offsets_of",
    "partition_of",
    "position_to_seek",
    "times_of",
]


def list_of(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Returns partitions that are given as pairs."""
    return [partition_of(one) for one in partitions]


def map_of(given: Mapping[AnyPartition, Value]) -> dict[TopicPartition, Value]:
    """Returns what is given by partition."""
    return {partition_of(one): value for one, value in given.items()}


def timeout_of(given: Any, name: str = "timeout_ms") -> int:
    """Returns how long to wait, or how many records to return.

    Raises:
        IllegalArgumentError: something else was given, such as seconds.
    """
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise IllegalArgumentError(
        f"{name} is {given!r}; expected an int, 0 or more, as timeout_ms=1000 for a second"
    )


def times_of(given: Mapping[AnyPartition, int]) -> dict[TopicPartition, int]:
    """Returns times that are given by partition.

    Raises:
        IllegalArgumentError: one is no time.
    """
    times = map_of(given)
    for one, timestamp_ms in times.items():
        offset_of(timestamp_ms, f"the time of {one.topic}-{one.partition}")
    return times


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
        IllegalArgumentError: no offset, or an epoch that is none.
    """
    if isinstance(offset, OffsetAndMetadata):
        position = position_of(offset)
    elif isinstance(offset, OffsetAndOffsetEpoch):
        position = Position(offset.offset, *epochs_in(offset.offset_epoch))
    else:
        position = Position(offset, *epochs_in(offset_epoch or b""))
    offset_of(position.offset)
    return position
