"""One option: its type, its default, what it may be, and what it is for.

Options are attributes of the classes in `ottla.client.options.settings`. There each has its name,
Kafka's with underscores for dots. `convert` takes what a program gives, and does not guess; `parse`
takes the text of a file of properties.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ottla.client.errors import InvalidConfigurationError
from ottla.client.network.addresses import parse_address
from ottla.client.partitions import is_sendable
from ottla.text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from ottla.client.groups.assignors import Assignor

__all__ = [
    "MAX_INT",
    "MAX_LONG",
    "Acks",
    "Addresses",
    "Choice",
    "ChoiceOrFunction",
    "Flag",
    "Function",
    "Integer",
    "OffsetReset",
    "Option",
    "OptionalInteger",
    "OptionalName",
    "OptionalText",
    "Strategies",
    "Text",
    "duration_ms",
]

T = TypeVar("T")

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
_MAX_SHOWN = 80
_EMPTY = '""'


class Option(Generic[T]):
    """What an option may be.

    Attributes:
        name: as a keyword.
        default: its value where it is not given.
        says: what it is for, a sentence.
        expected: what a value has to be, as messages and the documentation say it.
        is_secret: whether messages must not show its value.
        is_required: whether it has to be given.
    """

    expected = "an object"

    def __init__(
        self, default: T, says: str, *, is_secret: bool = False, is_required: bool = False
    ) -> None:
        self.name = ""
        self.default = default
        self.says = says
        self.is_secret = is_secret
        self.is_required = is_required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        # An object of settings has the value itself in its dictionary, which is looked at first.
        return self if instance is None else self.default

    @property
    def dotted(self) -> str:
        """Kafka's way to write the name."""
        return self.name.replace("_", ".")

    def convert(self, value: Any, name: str) -> T:
        """Returns the value that a program gives under a name.

        Raises:
            InvalidConfigurationError: it cannot be this option's.
        """
        try:
            return self._converted(value)
        except ValueError:
            raise self._refused(value, name) from None

    def parse(self, text: str, name: str) -> T:
        """Returns the value of a text.

        Raises:
            InvalidConfigurationError: it cannot be this option's.
        """
        try:
            return self._converted(self._parsed(text if self.is_secret else text.strip()))
        except ValueError:
            raise self._refused(text, name) from None

    def _converted(self, value: Any) -> T:
        """The value; any `ValueError` where it cannot be."""
        return cast("T", value)

    def _parsed(self, text: str) -> Any:
        """What a program would give instead of the text; any `ValueError` where it is none."""
        return text

    def _refused(self, value: object, name: str) -> InvalidConfigurationError:
        shown = "not shown" if self.is_secret else visible(shortened(repr(value), _MAX_SHOWN))
        return InvalidConfigurationError(f"{name} is {shown}; expected {self.expected}")


class Integer(Option[int]):
    """A whole number between bounds."""

    def __init__(self, default: int, says: str, *, low: int = 0, high: int = MAX_INT) -> None:
        super().__init__(default, says)
        self._low = low
        self._high = high
        is_open = high in {MAX_INT, MAX_LONG}
        self.expected = f"an integer {f'of {low} or more' if is_open else f'from {low} to {high}'}"

    def _converted(self, value: Any) -> int:
        number = _whole(value)
        if not self._low <= number <= self._high:
            raise ValueError
        return number

    def _parsed(self, text: str) -> int:
        return int(text)


class OptionalInteger(Option["int | None"]):
    """A whole number, or nothing."""

    expected = "an integer"

    def _converted(self, value: Any) -> int | None:
        return None if value is None else _whole(value)

    def _parsed(self, text: str) -> int:
        return int(text)


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError


class Flag(Option[bool]):
    """Yes or no."""

    expected = "True or False"

    def __init__(self, says: str, *, default: bool) -> None:
        super().__init__(default, says)

    def _converted(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise ValueError

    def _parsed(self, text: str) -> Any:
        return {"true": True, "false": False}.get(text.lower())


class Text(Option[str]):
    """Some text that requests carry."""

    expected = "a str of at most 32767 bytes"

    def _converted(self, value: Any) -> str:
        if is_sendable(value):
            return cast("str", value)
        raise ValueError


class OptionalText(Option["str | None"]):
    """Some text that is not empty, or nothing."""

    expected = "a str that is not empty"

    def _converted(self, value: Any) -> str | None:
        if value is None or (isinstance(value, str) and value):
            return value
        raise ValueError

    def _parsed(self, text: str) -> str | None:
        return text or None


class OptionalName(OptionalText):
    """A name that requests carry, or nothing."""

    expected = "a str of 1 to 32767 bytes"

    def _converted(self, value: Any) -> str | None:
        if value is None or (value and is_sendable(value)):
            return cast("str | None", value)
        raise ValueError


class Choice(Option[str]):
    """One of some words, in upper or lower case."""

    def __init__(self, default: str, says: str, *, choices: tuple[str, ...]) -> None:
        super().__init__(default, says)
        self._choices = {choice.lower(): choice for choice in choices}
        self.expected = f"one of {', '.join(choice or _EMPTY for choice in choices)}"

    def _converted(self, value: Any) -> str:
        choice = self._choices.get(value.lower()) if isinstance(value, str) else None
        if choice is None:
            raise ValueError
        return choice


class ChoiceOrFunction(Option["str | Callable[..., Any]"]):
    """One of some words, or something to call instead."""

    def __init__(self, default: str, says: str, *, choices: tuple[str, ...]) -> None:
        super().__init__(default, says)
        self._choices = choices
        self.expected = f"one of {', '.join(choices)}, or something that can be called"

    def _converted(self, value: Any) -> str | Callable[..., Any]:
        if callable(value) or (isinstance(value, str) and value in self._choices):
            return cast("str | Callable[..., Any]", value)
        raise ValueError


class Function(Option["Callable[..., Any] | None"]):
    """Something to call, or nothing."""

    expected = "something that can be called"

    def _converted(self, value: Any) -> Callable[..., Any] | None:
        if value is None or callable(value):
            return cast("Callable[..., Any] | None", value)
        raise ValueError


class Strategies(Option["Sequence[str | Assignor]"]):
    """How partitions are assigned: names of strategies, or assignors, the preferred first."""

    def __init__(self, default: tuple[str, ...], says: str, *, choices: tuple[str, ...]) -> None:
        super().__init__(default, says)
        self._choices = choices
        self.expected = f"one or more of {', '.join(choices)}, or of the application's assignors"

    def _converted(self, value: Any) -> Sequence[str | Assignor]:
        given = value.split(",") if isinstance(value, str) else value
        if not isinstance(given, (list, tuple)) or not given:
            raise ValueError
        return tuple(map(self._strategy, given))

    def _strategy(self, one: Any) -> str | Assignor:
        if isinstance(one, str):
            if one.strip() in self._choices:
                return one.strip()
        elif isinstance(getattr(one, "name", None), str) and hasattr(one, "assign"):
            return cast("Assignor", one)
        raise ValueError


class Addresses(Option[tuple[str, ...]]):
    """Hosts and ports."""

    expected = 'addresses, as "host:9092,other:9092" or a list of such'

    def _converted(self, value: Any) -> tuple[str, ...]:
        addresses = _words(value)
        for address in addresses:
            parse_address(address)
        return addresses


def _words(value: Any) -> tuple[str, ...]:
    """Words of a list or between commas, one at least."""
    words: tuple[Any, ...] = ()
    if isinstance(value, str):
        words = tuple(filter(None, (word.strip() for word in value.split(","))))
    elif isinstance(value, (list, tuple)):
        words = tuple(value)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError
    return words


class Acks(Option[int]):
    """Who has to have a batch before it counts as delivered."""

    expected = '"all" or -1, 0, or 1'

    def _converted(self, value: Any) -> int:
        if isinstance(value, str) and value.lower() == "all":
            return -1
        number = _whole(value)
        if number not in {-1, 0, 1}:
            raise ValueError
        return number

    def _parsed(self, text: str) -> str | int:
        return text if text.lower() == "all" else int(text)


class OffsetReset(Option[str]):
    """Where a group begins that has not committed, or whose offset is gone."""

    expected = "latest, earliest, none, or by_duration: and a duration, as by_duration:PT1H30M"

    def _converted(self, value: Any) -> str:
        if isinstance(value, str):
            word = value.lower()
            if word in {"latest", "earliest", "none"}:
                return word
            start, _, duration = value.partition(":")
            if start.lower() == "by_duration" and duration_ms(duration) is not None:
                return f"by_duration:{duration}"
        raise ValueError


def duration_ms(text: str) -> int | None:
    """Returns a duration of ISO 8601, of days at most, in milliseconds; `None` for what is none.

    >>> duration_ms("P1DT2H"), duration_ms("PT0.5S"), duration_ms("1h")
    (93600000, 500, None)
    """
    found = re.fullmatch(
        r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?",
        text,
        re.ASCII | re.IGNORECASE,
    )
    if not found or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
