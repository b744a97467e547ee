"""What applications pass to an admin client, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ottla.client.errors import IllegalArgumentError
from ottla.client.partitions import MAX_INT, TopicPartition, partition_of

__all__ = ["count", "each_of", "name", "names", "numbers_by_partition", "partitions", "whole"]

T = TypeVar("T")


def name(given: Any, what: str) -> str:
    """Returns a name, such as that of a topic or a group.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if not isinstance(given, str):
        raise IllegalArgumentError(f"{what} is {given!r}; expected a str")
    return given


def names(given: Any, what: str) -> list[str]:
    """Returns names, such as those of topics.

    Raises:
        IllegalArgumentError: something else was given, such as one name alone.

    >>> names(("orders", "invoices"), "topics")
    ['orders', 'invoices']
    """
    if isinstance(given, str):
        raise IllegalArgumentError(f"{what} is {given!r}; expected a list of names: [{given!r}]")
    return each_of(given, what, str)


def each_of(given: Any, what: str, kind: type[T]) -> list[T]:
    """Returns a list whose items are all of a kind.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if isinstance(given, kind) or not isinstance(given, Iterable):
        raise IllegalArgumentError(f"{what} is {given!r}; expected a list of {kind.__name__}")
    items: list[T] = []
    for one in given:
        if not isinstance(one, kind):
            raise IllegalArgumentError(f"{what} has {one!r}; expected a {kind.__name__}")
        items.append(one)
    return items


def partitions(given: Any) -> list[TopicPartition]:
    """Returns partitions that are given as pairs.

    Raises:
        IllegalArgumentError: something else was given.
    """
    is_one = isinstance(given, tuple) and given and isinstance(given[0], str)
    if is_one or isinstance(given, str) or not isinstance(given, Iterable):
        raise IllegalArgumentError(f'partitions is {given!r}; expected such as [("orders", 0)]')
    return [partition_of(one) for one in given]


def numbers_by_partition(given: Any, what: str) -> dict[TopicPartition, int]:
    """Returns whole numbers by partition.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if not isinstance(given, Mapping):
        raise IllegalArgumentError(
            f'{what} is {given!r}; expected a dict such as {{("orders", 0): 5}}'
        )
    found = {}
    for one, number in given.items():
        found[partition_of(one)] = whole(number, f"{what} of {one!r}")
    return found


def whole(given: Any, what: str, least: int | None = None) -> int:
    """Returns a whole number.

    Raises:
        IllegalArgumentError: something else was given, or a smaller one.
    """
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if not is_whole or (least is not None and given < least):
        bound = "" if least is None else f" of {least} or more"
        raise IllegalArgumentError(f"{what} is {given!r}; expected an int{bound}")
    return int(given)


def count(given: Any, what: str) -> int:
    """Returns a whole number that a request can carry.

    Raises:
        IllegalArgumentError: something else was given.
    """
    if whole(given, what) not in range(-MAX_INT - 1, MAX_INT + 1):
        raise IllegalArgumentError(f"{what} is {given!r}; expected an int of 32 bits")
    return int(given)
