"""Partitions, and where a group goes on in them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ottla.client.errors import IllegalArgumentError
from ottla.text import shortened, visible

__all__ = [
    "AnyPartition",
    "GroupMetadata",
    "OffsetAndMetadata",
    "TopicPartition",
    "group_of",
    "is_sendable",
    "offset_of",
    "offsets_to_commit",
    "partition_number_of",
    "partition_of",
    "topic_of",
]

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
_MOST_BYTES: Final = 2**15 - 1
"""Of text in a request."""
_MOST_CHARACTERS: Final = 249
"""Of a topic's name."""
_MOST_SHOWN: Final = 80

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


def is_sendable(given: Any) -> bool:
    """Whether something is text that a request can carry."""
    if not isinstance(given, str):
        return False
    try:
        return len(given.encode()) <= _MOST_BYTES
    except UnicodeEncodeError:
        return False


def topic_of(given: Any) -> str:
    """Returns the name of a topic; whether brokers allow it, they say.

    Raises:
        IllegalArgumentError: something else was given, or what no request can carry.

    >>> topic_of("orders")
    'orders'
    """
    if isinstance(given, str) and 0 < len(given) <= _MOST_CHARACTERS and is_sendable(given):
        return given
    raise IllegalArgumentError(
        f"{_shown(given)} is no name of a topic; expected a str of 1 to {_MOST_CHARACTERS} "
        "characters"
    )


def partition_number_of(given: Any) -> int:
    """Returns the number of a partition.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if isinstance(given, int) and 0 <= given <= MAX_INT:
        return given
    raise IllegalArgumentError(f"partition is {_shown(given)}; expected a number, 0 or more")


def partition_of(given: Any) -> TopicPartition:
    """Returns a partition that is given as a pair.

    Raises:
        IllegalArgumentError: it is none.

    >>> partition_of(("orders", 0))
    TopicPartition(topic='orders', partition=0)
    """
    if not (isinstance(given, tuple) and [type(one) for one in given] == [str, int]):
        raise IllegalArgumentError(
            f"{_shown(given)} is no partition: expected a pair of a topic and a number, as "
            "('orders', 0)"
        )
    return TopicPartition(topic_of(given[0]), partition_number_of(given[1]))


def offset_of(given: Any, what: str = "the offset") -> int:
    """Returns an offset, or a time.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MAX_LONG:
        return given
    raise IllegalArgumentError(f"{what} is {_shown(given)}; expected an int of 64 bits, 0 or more")


def group_of(given: Any) -> GroupMetadata:
    """Returns a group as `send_offsets_to_transaction` takes it: of a consumer, or by its name.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if isinstance(given, GroupMetadata):
        return given
    if isinstance(given, str) and given and is_sendable(given):
        warnings.warn(
            "send_offsets_to_transaction was given the name of a group alone, by which nobody is "
            "fenced who is no member of it any more: give it consumer.group_metadata()",
            DeprecationWarning,
            stacklevel=4,
        )
        return GroupMetadata(given)
    raise IllegalArgumentError(
        f"the group is {_shown(given)}; expected what consumer.group_metadata() returns"
    )


def offsets_to_commit(
    given: Mapping[AnyPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Returns offsets as applications give them, a number or more, in one form.

    Raises:
        IllegalArgumentError: something else was given.

    >>> offsets_to_commit({("orders", 0): 5})[TopicPartition("orders", 0)].offset
    5
    """
    if not isinstance(given, Mapping):
        raise IllegalArgumentError(
            f'the offsets are {_shown(given)}; expected a dict such as {{("orders", 0): 5}}'
        )
    offsets = {}
    for partition, one in given.items():
        if isinstance(one, bool) or not isinstance(one, (int, OffsetAndMetadata)):
            raise IllegalArgumentError(
                f"the offset of {partition} is {one!r}; expected an int or an OffsetAndMetadata"
            )
        whole = OffsetAndMetadata(one) if isinstance(one, int) else one
        offset_of(whole.offset, f"the offset of {partition}")
        if not (whole.metadata is None or is_sendable(whole.metadata)):
            raise IllegalArgumentError(
                f"the metadata of {partition} is {_shown(whole.metadata)}; expected a str of at "
                f"most {_MOST_BYTES} bytes"
            )
        offsets[partition_of(partition)] = whole
    return offsets


def _shown(given: Any) -> str:
    return visible(shortened(repr(given), _MOST_SHOWN))
