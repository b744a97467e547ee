"""What a setting is: its name, its type, what it may be set to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BOOLEAN",
    "DOUBLE",
    "INT",
    "LIST",
    "LONG",
    "MAX_INT",
    "MAX_LONG",
    "STRING",
    "InvalidConfigError",
    "Setting",
    "Value",
    "parse",
]

BOOLEAN: Final = 1
"""Types have the numbers that DescribeConfigs says them by (KIP-569)."""
STRING: Final = 2
INT: Final = 3
LONG: Final = 5
DOUBLE: Final = 6
LIST: Final = 7

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1

Value = bool | int | float | str | tuple[str, ...]


class InvalidConfigError(ValueError):
    """A setting that is not known, or may not be set to this."""


class Setting(NamedTuple):
    """One setting.

    Attributes:
        name: as Kafka writes it.
        type: ``BOOLEAN``, ``STRING``, ``INT``, ``LONG``, ``DOUBLE`` or ``LIST``.
        default: as Kafka writes it.
        low, high: the least and the greatest number.
        choices: the strings that are allowed, or all.
        synonym: the broker's setting that a topic falls back to.
        documentation: what it does, in a sentence.
        is_supported: whether it has an effect here; what has none is kept and described.
    """

    name: str
    type: int
    default: str
    low: float = -MAX_LONG - 1
    high: float = MAX_LONG
    choices: tuple[str, ...] = ()
    synonym: str = ""
    documentation: str = ""
    is_supported: bool = True
    is_sensitive: bool = False


def _invalid(setting: Setting, text: str, why: str) -> InvalidConfigError:
    return InvalidConfigError(f"Invalid value {text} for configuration {setting.name}: {why}")


def _exactly(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def _number(setting: Setting, text: str) -> int | float:
    kind = {INT: "a number of type INT", LONG: "a number of type LONG"}.get(
        setting.type, "a number"
    )
    try:
        number = float(text) if setting.type == DOUBLE else int(text)
    except ValueError:
        raise _invalid(setting, text, f"Not {kind}") from None
    limits = (-MAX_INT - 1, MAX_INT) if setting.type == INT else (-MAX_LONG - 1, MAX_LONG)
    if not limits[0] <= number <= limits[1]:
        raise _invalid(setting, text, f"Not {kind}")
    if number < setting.low:
        raise _invalid(setting, text, f"Value must be at least {_exactly(setting.low)}")
    if number > setting.high:
        raise _invalid(setting, text, f"Value must be no more than {_exactly(setting.high)}")
    return number


def parse(setting: Setting, text: str) -> Value:
    """Returns the value of a text.

    Raises:
        InvalidConfigError: Kafka would refuse it.
    """
    text = text.strip()
    if setting.type == BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise _invalid(setting, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if setting.type in {INT, LONG, DOUBLE}:
        return _number(setting, text)
    parts = tuple(part.strip() for part in text.split(",")) if text else ()
    found = parts if setting.type == LIST else (text,)
    if setting.choices:
        for part in found:
            if part not in setting.choices:
                allowed = ", ".join(setting.choices)
                raise _invalid(setting, part, f"String must be one of: {allowed}")
    return found if setting.type == LIST else text


def values_of(settings: Mapping[str, Setting], texts: Mapping[str, str]) -> dict[str, Value]:
    """Returns the values of settings that are all known."""
    return {name: parse(settings[name], text) for name, text in texts.items()}
