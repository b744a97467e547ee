"""Every message of the protocol that is declared, and instances of them by chance."""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

from ottla.protocol import messages
from ottla.protocol.wire import Field, Kind, Message, Struct, schema

# Bounds of numbers, and the numbers around them where lengths change their size.
_SPECIAL = (-128, -1, 0, 1, 2, 127)


@cache
def modules() -> dict[str, ModuleType]:
    """The modules of messages by their names."""
    found = pkgutil.iter_modules(messages.__path__)
    return {module.name: import_module(f"{messages.__name__}.{module.name}") for module in found}


def messages_of(module: ModuleType) -> list[type[Message]]:
    """The messages that a module declares, in its order."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    ]


def all_messages() -> list[type[Message]]:
    """Every message."""
    return [message for module in modules().values() for message in messages_of(module)]


def pairs() -> Iterator[tuple[type[Message], int]]:
    """Every message in every version."""
    for message in all_messages():
        for version in schema(message).versions:
            yield message, version


def any_message(
    message: type[Message],
    version: int,
    random: Random,
    *,
    longest: int = 300,
    private: bool = True,
) -> Any:
    """A message with random values in all fields that the version has, defaults in the others.

    Args:
        longest: size of strings and byte strings; by default they need two bytes for a length.
        private: whether fields that Kafka does not know have values, too.
    """
    return Chance(version, random, longest, private=private).struct(message)


class Chance:
    """Makes values by chance; see `any_message`."""

    def __init__(self, version: int, random: Random, longest: int, *, private: bool) -> None:
        self.private = private
        self.version = version
        self.random = random
        self.longest = longest

    def struct(self, made: type[Struct]) -> Any:
        fields = [
            field
            for field in schema(made).fields
            if self.version in field.versions and (self.private or not field.private)
        ]
        return made(**{field.name: self.value(field) for field in fields})

    def value(self, field: Field) -> object:
        if self.version in field.null and self.random.random() < 0.2:
            return None
        if self.version in field.tagged and self.random.random() < 0.2:
            return field.new_default()
        if not field.is_array:
            return self.one(field)
        largest = self.longest if isinstance(field.kind, Kind) and field.kind.format else 2
        return [self.one(field) for _ in range(self.random.choice((0, 1, 2, largest)))]

    def one(self, field: Field) -> object:
        if not isinstance(field.kind, Kind):
            return self.struct(field.kind)
        random, name = self.random, field.kind.name
        if name == "bool":
            return random.random() < 0.5
        if name == "string":
            size = random.choice((0, 1, self.longest // 4))
            return "".join(random.choices("aZ.é语😀", k=size))
        if name in {"bytes", "records"}:
            return random.randbytes(random.choice((0, 1, self.longest)))
        if name == "uuid":
            return random.randbytes(16)
        if name == "float64":
            return random.uniform(-1e300, 1e300)
        return self.number(name)

    def number(self, name: str) -> int:
        bits = int(name.removeprefix("u").removeprefix("int"))
        low, high = (
            (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        )
        any_of_all = self.random.randint(low, high)
        number: int = self.random.choice((low, high, any_of_all, *_SPECIAL))
        return min(max(number, low), high)


def one_item_in_each_list(made: type[Struct], version: int) -> Any:
    """A struct with one item in each of its lists and a name in each string."""
    values: dict[str, object] = {}
    for field in schema(made).fields:
        if version not in field.versions or version in field.tagged or field.private:
            continue
        if isinstance(field.kind, Kind):
            one: object = "a" if field.kind.name == "string" else field.kind.default
        else:
            one = one_item_in_each_list(field.kind, version)
        if field.is_array:
            values[field.name] = [one]
        elif not isinstance(field.kind, Kind) or field.kind.name == "string":
            values[field.name] = one
    return made(**values)
