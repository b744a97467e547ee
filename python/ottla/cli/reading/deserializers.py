"""What the bytes of keys and values say: JSON, Avro, Protobuf.

Each deserialiser makes one line of JSON of a key or a value, or raises a `SchemaError` that says
why it cannot. Their libraries are loaded when they are asked for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from ottla.cli.record_text import Item, JsonText
from ottla.errors import SchemaError
from ottla.text import json_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla import Record
    from ottla.cli.reading.registry import Registry
    from ottla.cli.reading.sources import Source

__all__ = ["NAMES", "Deserializers", "deserializers_of"]

NAMES = ("avro", "json", "protobuf")
PARTS: tuple[Literal["key", "value"], ...] = ("key", "value")


class Deserializer(Protocol):
    """Makes JSON of bytes."""

    def __call__(self, data: bytes, /) -> JsonText:
        """Raises SchemaError: they do not fit."""

    def left_out(self) -> str | None:
        """What was left out of what it made, if anything."""


class Deserializers:
    """The deserialisers of keys and of values; without one, bytes stay bytes, and null is null."""

    def __init__(self, by_part: Mapping[str, Deserializer]) -> None:
        self._by_part = by_part
        self.parsed = ("key" in by_part, "value" in by_part)
        """Whether there is one for keys, and for values."""

    def __call__(self, source: Source, records: Iterable[Record]) -> Iterator[Item]:
        """Yields records of a partition with JSON in place of bytes.

        Raises:
            SchemaError: a key or a value does not fit; it names the record.
        """
        for r in records:
            key, value = self._of("key", r.key, source, r), self._of("value", r.value, source, r)
            yield Item(r.offset, r.timestamp, key, value, r.headers)

    def _of(
        self, part: str, data: bytes | None, source: Source, record: Record
    ) -> bytes | JsonText | None:
        deserialize = self._by_part.get(part)
        if data is None or deserialize is None:
            return data
        try:
            return deserialize(data)
        except SchemaError as error:
            raise SchemaError(
                f"{source.name}: the {part} at offset {record.offset}: {error}; --from"
                f" {record.offset + 1} goes on behind it"
            ) from error

    def left_out(self) -> Iterator[str]:
        """Yields what was left out, in words."""
        for part, deserialize in self._by_part.items():
            what = deserialize.left_out()
            if what is not None:
                yield f"{part}s: {what}"


class Json:
    """Text that is JSON, with or without the prefix of a schema registry."""

    def __call__(self, data: bytes) -> JsonText:
        """Returns it on one line, numbers as they are written."""
        # No JSON begins with a NUL: what does has a prefix of five bytes.
        text = data[5:] if data[:1] == b"\0" else data
        try:
            written = text.decode()
            json.loads(written, parse_constant=_no_number)
        except RecursionError:
            raise SchemaError("JSON that is nested too deeply") from None
        except ValueError as error:
            raise SchemaError(f"no JSON: {error}") from None
        # In JSON, such characters stand between its parts alone.
        return JsonText(json_visible(written.translate(_ENDS_OF_LINES).strip()))

    def left_out(self) -> None:
        """Nothing is left out of JSON."""


_ENDS_OF_LINES = dict.fromkeys(map(ord, "\n\r\t"), " ")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def deserializers_of(options: Mapping[str, Any]) -> Deserializers | None:
    """Returns the deserialisers that options of the command line ask for.

    Raises:
        UsageError: they do not go together, or a schema is none.
        MissingDependencyError: a library is not installed.
        OSError: a file cannot be read.
    """
    names = _names(options["deserialize"])
    registry = None
    if options["registry"] is not None:
        from ottla.cli.reading.registry import Registry

        try:
            registry = Registry(options["registry"])
        except SchemaError as error:
            raise click.UsageError(str(error)) from error
    by_part: dict[str, Deserializer] = {}
    for part in PARTS:
        files, message = options[f"{part}_schema"], options[f"{part}_message"]
        try:
            deserialize = _deserializer(names.get(part), files, message, registry)
        except SchemaError as error:
            raise click.UsageError(str(error)) from error
        except _UnusedOptionError as error:
            raise click.UsageError(f"--{part}-{error}") from error
        if deserialize is not None:
            by_part[part] = deserialize
    if registry is not None and "avro" not in names.values():
        raise click.UsageError("--registry has the schemas of avro alone: say -s avro")
    return Deserializers(by_part) if by_part else None


class _UnusedOptionError(ValueError):
    """An option that does not go with a deserialiser, without the part that it is of."""


def _names(texts: Sequence[str]) -> dict[str, str]:
    """Returns the names of deserialisers by part, of texts such as `avro` and `key=json`."""
    names: dict[str, str] = {}
    for text in texts:
        part, equals, name = text.rpartition("=")
        if name not in NAMES or (equals and part not in PARTS):
            raise click.UsageError(
                f"-s {text}: it is one of {', '.join(NAMES)}, or key= or value= and one of them"
            )
        for of in [part] if equals else PARTS:
            if names.setdefault(of, name) != name:
                raise click.UsageError(f"-s says {names[of]} and {name} of the {of}")
    return names


def _deserializer(
    name: str | None, files: Sequence[str], message: str | None, registry: Registry | None
) -> Deserializer | None:
    if message is not None and name != "protobuf":
        raise _UnusedOptionError("message names a message of -s protobuf")
    if files and name not in {"avro", "protobuf"}:
        raise _UnusedOptionError("schema goes with -s avro or -s protobuf")
    if name == "json":
        return Json()
    if name == "avro":
        from ottla.cli.reading.avro import Avro

        if not files and registry is None:
            raise _UnusedOptionError("schema FILE or --registry URL is what -s avro needs")
        return Avro(files, registry)
    if name == "protobuf":
        from ottla.cli.reading.protobuf import Protobuf

        if len(files) != 1:
            raise _UnusedOptionError(
                "schema FILE is what -s protobuf needs, once: the output of protoc"
                " --include_imports --descriptor_set_out=FILE"
            )
        return Protobuf(files[0], message)
    return None
