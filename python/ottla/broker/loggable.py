"""What may be shown of a message: all but contents of records, secrets, and what is too much.

Of bytes there is their size: records, tokens, salts, passwords and what members of a group tell
each other are bytes in the protocol. Values of settings that are sensitive, or that nobody knows,
are hidden. What is left out of a list or a text is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.configs.broker import BROKER_SETTINGS
from ottla.broker.configs.topic import TOPIC_SETTINGS
from ottla.broker.uuids import base64_of
from ottla.protocol.wire import Struct, byte_string, records, schema, uuid
from ottla.text import shortened

if TYPE_CHECKING:
    from ottla.protocol.wire import Field

__all__ = ["loggable"]

MAX_STRUCTS: Final = 500
"""Of a message: some 50 KiB of a line."""

MAX_TEXT: Final = 1_000
"""Characters of a text: a name has 249."""

_HIDDEN: Final = "[hidden]"
_BYTES: Final = (byte_string, records)


def loggable(message: Struct, version: int) -> dict[str, Any]:
    """Returns a message in one of its versions as JSON has it, under Kafka's names."""
    return _Room(version).of(message)


class _Room:
    """How much more of a message is shown."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._left = MAX_STRUCTS

    def of(self, value: Struct) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for field in schema(type(value)).fields:
            if self._version in field.versions:
                name, item = _camel(field.name), getattr(value, field.name)
                if field.kind in _BYTES and not field.is_array:
                    shown[f"{name}SizeInBytes"] = None if item is None else len(item)
                elif field.kind in _BYTES:
                    shown[f"{name}SizeInBytes"] = [len(each) for each in item[:MAX_STRUCTS]]
                else:
                    shown[name] = self._value(field, item)
        if {"name", "value"} <= shown.keys() and not _is_open(shown["name"]):
            shown["value"] = _HIDDEN
        return shown

    def _value(self, field: Field, item: Any) -> Any:
        if field.is_array and item is not None:
            fitting = item[: max(0, self._left)]
            self._left -= len(fitting)
            shown = [self._one(field, each) for each in fitting]
            more = len(item) - len(fitting)
            return [*shown, f"{more} more"] if more else shown
        return self._one(field, item)

    def _one(self, field: Field, item: Any) -> Any:
        if isinstance(item, Struct):
            return self.of(item)
        if field.kind is uuid and item is not None:
            return base64_of(item)
        return shortened(item, MAX_TEXT) if isinstance(item, str) else item


def _is_open(name: object) -> bool:
    """Whether values of a setting may be shown."""
    setting = BROKER_SETTINGS.get(str(name)) or TOPIC_SETTINGS.get(str(name))
    return setting is not None and not setting.is_sensitive


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
