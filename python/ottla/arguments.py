"""Kinds of arguments that functions of the package take, checked where another would fail later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, SupportsIndex, TypeVar

from ottla.errors import OutOfRangeError

__all__ = ["check_kinds", "of_kinds"]

P = ParamSpec("P")
T = TypeVar("T")

_INTEGERS = range(-(1 << 63), 1 << 63)

Fits = Callable[[object], bool]


def _is_path(value: object) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _is_some(fits: Fits) -> Fits:
    """Whether it is one such thing or several."""

    def is_some(value: object) -> bool:
        # What can be gone through once is gone through by whoever takes it.
        if fits(value) or isinstance(value, Iterator):
            return True
        return (
            isinstance(value, Iterable) and not isinstance(value, bytes) and all(map(fits, value))
        )

    return is_some


_PATH = (_is_path, "a path")
_PATHS = (_is_some(_is_path), "a path or several")
_TEXTS = (_is_some(lambda value: isinstance(value, str)), "text or several texts")
_MAPPING = (lambda value: isinstance(value, Mapping), "a dictionary")
_ROWS = (
    lambda value: isinstance(value, Sequence) and all(isinstance(row, Sequence) for row in value),
    "a list of tuples",
)
_FUNCTION = (callable, "a function")
_COUNT = (lambda value: hasattr(value, "__index__"), "an int")
_NUMBER = (lambda value: hasattr(value, "__index__") or hasattr(value, "__float__"), "a number")


KINDS: dict[str, tuple[Fits, str]] = {
    "aborted": _ROWS,
    "directory": _PATH,
    "from_offset": _COUNT,
    "index_interval_bytes": _COUNT,
    "log_start_offset": _COUNT,
    "max_mb_per_s": _NUMBER,
    "on_damage": _FUNCTION,
    "partition_directory": _PATH,
    "progress": _FUNCTION,
    "recovery_point": _COUNT,
    "replicas": _MAPPING,
    "source": _PATHS,
    "split_bytes": _COUNT,
    "storage_options": _MAPPING,
    "threads": _COUNT,
    "to_offset": _COUNT,
    "topic_configs": _MAPPING,
    "topics": _TEXTS,
}
"""By the name of the argument, which is the same in each function."""


def of_kinds(function: Callable[P, T]) -> Callable[P, T]:
    """Checks what a function is given by its arguments' names; `None` is left to the function.

    >>> import ottla
    >>> ottla.read_partition("orders-0", from_offset="first")
    Traceback (most recent call last):
        ...
    TypeError: from_offset is of type str, expected an int
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        check_kinds(**dict(zip(names, args, strict=False)), **kwargs)
        return function(*args, **kwargs)

    return checked


def check_kinds(**arguments: object) -> None:
    """Checks arguments by their names.

    Raises:
        TypeError: one is of another kind.
        OutOfRangeError: an int is beyond 64 bits.
    """
    for name, value in arguments.items():
        if value is not None and name in KINDS:
            fits, expected = KINDS[name]
            if not fits(value):
                found = type(value).__name__
                raise TypeError(f"{name} is of type {found}, expected {expected}")
            if isinstance(value, SupportsIndex) and value.__index__() not in _INTEGERS:
                expected = f"{_INTEGERS.start} to {_INTEGERS.stop - 1}"
                raise OutOfRangeError(f"{name} is beyond 64 bits, expected {expected}")
