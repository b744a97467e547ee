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


def any_message(message: type[Message], version: int, random: Random) -> Any:
    """A message with random values in all fields that the version has, defaults in the others."""
    return _any_struct(message, version, random)


def _any_struct(made: type[Struct], version: int, random: Random) -> Any:
    fields = [field for field in schema(made).fields if version in field.versions]
    return made(**{field.name: _any_value(field, version, random) for field in fields})


def _any_value(field: Field, version: int, random: Random) -> object:
    if version in field.null and random.random() < 0.2:
        return None
    if version in field.tagged and random.random() < 0.2:
        return field.new_default()
    if field.is_array:
        return list(_elements(field, version, random))
    return _one(field, version, random)


def _elements(field: Field, version: int, random: Random) -> Iterator[object]:
    largest = 200 if isinstance(field.kind, Kind) and random.random() < 0.1 else 2
    for _ in range(random.randint(0, largest)):
        yield _one(field, version, random)


def _one(field: Field, version: int, random: Random) -> object:
    if not isinstance(field.kind, Kind):
        return _any_struct(field.kind, version, random)
    name = field.kind.name
    if name == "bool":
        return random.random() < 0.5
    if name == "string":
        return "".join(random.choices("aZ.é语😀", k=random.choice((0, 1, 7, 130))))
    if name in {"bytes", "records"}:
        return random.randbytes(random.choice((0, 1, 126, 127, 20_000)))
    if name == "uuid":
        return random.randbytes(16)
    if name == "float64":
        return random.uniform(-1e300, 1e300)
    return _any_number(name, random)


def _any_number(name: str, random: Random) -> int:
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    number: int = random.choice((low, high, random.randint(low, high), *_SPECIAL))
    return min(max(number, low), high)
