"""Protobuf, with the descriptors of a file, with or without the prefix of a schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.cli.reading.plain import plain_json
from ottla.cli.reading.registry import PREFIX_BYTES
from ottla.errors import MalformedFrameError, MissingDependencyError, SchemaError
from ottla.protocol.varint import read_uvarint
from ottla.text import visible
from ottla.words import count, listed

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet
except ImportError as error:
    raise MissingDependencyError(
        "-s protobuf needs protobuf 5.26 or newer: pip install 'ottla[schemas]'"
    ) from error

if TYPE_CHECKING:
    from ottla.cli.record_text import JsonText

__all__ = ["Protobuf"]

NAMES_SHOWN = 10
MAX_INDEXES = 100
"""Messages inside each other; protobuf itself reads no more than so many."""

HOW_TO_MAKE = "protoc --include_imports --descriptor_set_out=FILE makes one"


class Protobuf:
    """The deserialiser.

    Args:
        file: a set of file descriptors, as protoc writes it.
        message: full name of the message; without it, what the prefix says, or the only one of the
            last file.

    Raises:
        SchemaError: the file has no such descriptors, or the message is not among them.
        OSError: the file cannot be read.
    """

    def __init__(self, file: str, message: str | None) -> None:
        self._name = visible(file)
        with open(file, "rb") as opened:
            self._pool, self._last = _descriptors(opened.read(), self._name)
        self._classes: dict[str, Any] = {}
        self._message = None if message is None else self._named(message)
        self._with_unknown = 0

    def __call__(self, data: bytes) -> JsonText:
        """Returns what the descriptors say of a key or a value, as JSON."""
        # No message begins with a NUL, which would be field 0.
        if data[:1] == b"\0":
            indexes, position = _indexes(data)
            descriptor = self._message or self._nested(indexes)
        else:
            position = 0
            descriptor = self._message or self._only()
        name = descriptor.full_name
        made = self._classes.get(name)
        if made is None:
            made = self._classes[name] = message_factory.GetMessageClass(descriptor)
        read = made()
        try:
            read.ParseFromString(data[position:])
            value = json_format.MessageToDict(
                read, preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except (DecodeError, json_format.Error, TypeError, ValueError, RecursionError) as error:
            raise SchemaError(f"it is no {name}: {visible(str(error))}") from None
        self._with_unknown += len(UnknownFieldSet(read)) > 0
        return plain_json(value)

    def left_out(self) -> str | None:
        """How many have fields that the descriptors lack."""
        if not self._with_unknown:
            return None
        return (
            f"{count(self._with_unknown, 'message')} with fields that {self._name} does not know,"
            " which are left out"
        )

    def _named(self, message: str) -> Any:
        try:
            return self._pool.FindMessageTypeByName(message)
        except KeyError:
            raise SchemaError(
                f"{self._name} has no message {visible(message)}, but {self._names()}"
            ) from None

    def _names(self) -> str:
        names = [message.full_name for message in self._last.message_types_by_name.values()]
        return listed([visible(name) for name in names], NAMES_SHOWN) if names else "none"

    def _only(self) -> Any:
        messages = [*self._last.message_types_by_name.values()]
        if len(messages) != 1:
            raise SchemaError(
                f"nothing says which message it is: name one of {self._names()} by --value-message"
                " or --key-message"
            )
        return messages[0]

    def _nested(self, indexes: list[int]) -> Any:
        """The message of a path of indexes in the last file."""
        descriptor: Any = None
        messages = [*self._last.message_types_by_name.values()]
        for index in indexes:
            if not 0 <= index < len(messages):
                raise SchemaError(f"its prefix names message {indexes}, which {self._name} lacks")
            descriptor = messages[index]
            messages = list(descriptor.nested_types)
        return descriptor


def _descriptors(data: bytes, name: str) -> tuple[Any, Any]:
    """Returns the pool of a set of descriptors, and its last file."""
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except DecodeError:
        files = []
    if not files:
        raise SchemaError(f"{name} is no set of Protobuf descriptors: {HOW_TO_MAKE}")
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
        return pool, pool.FindFileByName(files[-1].name)
    except (TypeError, KeyError, ValueError) as error:
        raise SchemaError(
            f"{name} lacks what its messages use ({visible(str(error))}): {HOW_TO_MAKE}"
        ) from None


def _indexes(data: bytes) -> tuple[list[int], int]:
    """Returns the indexes of a message behind the id of a schema, and where it begins."""
    size, position = _zigzag(data, PREFIX_BYTES)
    if not 0 <= size <= MAX_INDEXES:
        raise SchemaError(f"its prefix has {size} indexes of messages (position {PREFIX_BYTES})")
    indexes = []
    for _ in range(size):
        index, position = _zigzag(data, position)
        indexes.append(index)
    return indexes or [0], position


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    """Returns a number with a sign, and the position behind it."""
    try:
        number, position = read_uvarint(data, position)
    except IndexError:
        raise SchemaError(
            f"it ends inside the prefix of a schema registry ({len(data)} bytes)"
        ) from None
    except MalformedFrameError as error:
        raise SchemaError(f"the prefix of a schema registry has {error}") from None
    return (number >> 1) ^ -(number & 1), position
