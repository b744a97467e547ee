"""Avro behind the prefix of a schema registry, with schemas from files or from a registry."""

from __future__ import annotations

import json
import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ottla.cli.reading.plain import plain_json
from ottla.cli.reading.registry import PREFIX_BYTES, schema_id
from ottla.errors import MissingDependencyError, SchemaError
from ottla.text import shortened, visible

try:
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType
except ImportError as error:
    raise MissingDependencyError("-s avro needs fastavro: pip install 'ottla[schemas]'") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.reading.registry import Registry
    from ottla.cli.record_text import JsonText

__all__ = ["Avro"]

MAX_ID = 2**32 - 1
REASON_CHARACTERS = 200

# What fastavro raises for bytes that are none of a schema, of whatever kind they are.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)


class Avro:
    """The deserialiser.

    Args:
        files: `FILE`, or `ID=FILE`. One without an id is taken to be that of the first id it meets:
            nothing else tells which it is.
        registry: asked for ids that no file has.

    Raises:
        SchemaError: a file is no schema.
        OSError: a file cannot be read.
    """

    def __init__(self, files: Sequence[str], registry: Registry | None) -> None:
        self._registry = registry
        self._by_id: dict[int, Any] = {}
        self._unbound: tuple[str, Any] | None = None
        self._bound: tuple[str, int] | None = None
        for text in files:
            number, file = _id_and_file(text)
            with open(file, "rb") as opened:
                schema = _parsed([_text(opened.read(), file)], visible(file))
            if number is None and self._unbound is not None:
                raise SchemaError(
                    f"{visible(file)} and {visible(self._unbound[0])} are both without an id: write"
                    " ID=FILE"
                )
            if number is None:
                self._unbound = file, schema
            else:
                self._by_id[number] = schema

    def __call__(self, data: bytes) -> JsonText:
        """Returns what a schema says of a key or a value, as JSON."""
        number = schema_id(data)
        schema = self._by_id.get(number)
        if schema is None:
            schema = self._by_id[number] = self._schema(number)
        body = BytesIO(data)
        body.seek(PREFIX_BYTES)
        try:
            value = fastavro.schemaless_reader(body, schema, None)
        except UNREADABLE as error:
            reason = shortened(visible(f"{type(error).__name__}: {error}"), REASON_CHARACTERS)
            raise SchemaError(
                f"it does not fit schema id {number}, at or before position {body.tell()}: {reason}"
            ) from None
        if body.tell() != len(data):
            raise SchemaError(
                f"it does not fit schema id {number}: {len(data) - body.tell()} bytes are left"
                f" behind what the schema says (position {body.tell()})"
            )
        return plain_json(value)

    def left_out(self) -> None:
        """Nothing is left out of Avro."""

    def _schema(self, number: int) -> Any:
        if self._unbound is not None:
            file, schema = self._unbound
            self._unbound, self._bound = None, (file, number)
            return schema
        if self._registry is not None:
            return _parsed(self._registry.schemas(number), f"schema id {number}")
        known = ", ".join(map(str, sorted(self._by_id)))
        taken = ""
        if self._bound is not None:
            file, first = self._bound
            taken = f" ({visible(file)} was taken for that of id {first}, the first one met)"
        raise SchemaError(
            f"schema id {number} is not known, only {known}{taken}: add {number}=FILE, or the"
            " --registry"
        )


def _id_and_file(text: str) -> tuple[int | None, str]:
    number, equals, file = text.partition("=")
    if not equals or not (number.isascii() and number.isdigit()):
        return None, text
    if int(number) > MAX_ID or not file:
        raise SchemaError(f"{visible(text)} is not ID=FILE, with an id of 32 bits")
    return int(number), file


def _text(data: bytes, file: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SchemaError(f"{visible(file)} is no Avro schema: it is not UTF-8") from None


def _parsed(texts: Sequence[str], what: str) -> Any:
    """Returns the last of some schemas, each of which may use names of those before."""
    named: dict[str, Any] = {}
    schema: Any = None
    for text in texts:
        try:
            schema = fastavro.parse_schema(json.loads(text), named_schemas=named)
        except (SchemaParseException, UnknownType, *UNREADABLE) as error:
            reason = shortened(visible(str(error)), REASON_CHARACTERS)
            raise SchemaError(f"{what} is no Avro schema: {reason}") from None
    return schema
