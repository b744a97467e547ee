"""Messages of a capture as lines: their fields, and the batches of their record sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.audit.result.tables import jsonable
from ottla.broker.uuids import base64_of
from ottla.cli.inspecting.batches import batch_dicts, lines_of, record_dicts
from ottla.protocol.error_code import name_of
from ottla.protocol.wire import Field, Struct, records, schema, uuid
from ottla.storage import HeldPlace
from ottla.text import json_text, visible
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.cli.inspecting.captures import Captured

__all__ = ["message_json", "message_lines"]

INDENT = "  "


def message_json(kind: str, found: Captured, *, has_records: bool) -> str:
    """A message as one JSON object, with batches or records in place of record sets."""
    head: dict[str, Any] = {
        "message": kind,
        "versions": list(found.versions),
        "position": found.position,
        "size": found.size,
        "correlation_id": found.correlation_id,
        "client_id": found.client_id,
    }
    fields = _as_dict(found.message, found.versions[-1], has_records)
    return json_text(jsonable(head | fields))


def _as_dict(value: Struct, version: int, has_records: bool) -> dict[str, Any]:
    return {
        field.name: _plain(field, getattr(value, field.name), version, has_records)
        for field in _fields(value, version)
    }


def _plain(field: Field, item: Any, version: int, has_records: bool) -> Any:
    if field.kind is records and item is not None:
        place = HeldPlace(bytes(item))
        return list(record_dicts(place) if has_records else batch_dicts(place))
    if isinstance(item, Struct):
        return _as_dict(item, version, has_records)
    if field.is_array and item is not None:
        parts = [_as_dict(part, version, has_records) for part in item if isinstance(part, Struct)]
        return parts or [_scalar(field, part) for part in item]
    return _scalar(field, item)


def message_lines(kind: str, found: Captured, *, has_records: bool) -> Iterator[str]:
    """A message as text: a line a struct, and its record sets as `ottla inspect` has a segment."""
    first, last = found.versions[0], found.versions[-1]
    versions = f"version {last}" if first == last else f"version {first} or up to {last}"
    parts = [f"{kind.replace('-', ' ')}, {versions}"]
    if found.correlation_id is not None:
        parts.append(f"correlation id {found.correlation_id}")
    if found.client_id is not None:
        parts.append(f"client id {visible(found.client_id)}")
    parts.append(f"position {found.position}, {count(found.size, 'byte')}")
    yield ", ".join(parts)
    yield from _struct_lines(found.message, last, INDENT, has_records)


def _struct_lines(value: Struct, version: int, indent: str, has_records: bool) -> Iterator[str]:
    fields = _fields(value, version)
    items = [(field, getattr(value, field.name)) for field in fields]
    scalars = [(field, item) for field, item in items if not _is_nested(field)]
    if scalars:
        yield indent + " ".join(f"{field.name}={_text(field, item)}" for field, item in scalars)
    for field, item in items:
        if field.kind is records:
            yield from _record_set(item, indent + INDENT, has_records)
        elif _is_nested(field):
            parts = item if isinstance(item, list) else [item]
            for part in parts if item is not None else ():
                yield f"{indent}{field.name}:"
                yield from _struct_lines(part, version, indent + INDENT, has_records)


def _record_set(data: bytes | None, indent: str, has_records: bool) -> Iterator[str]:
    if data is None:
        yield f"{indent}no record set"
        return
    yield f"{indent}record set of {count(len(data), 'byte')}"
    place = HeldPlace(bytes(data))
    for line in lines_of(place, has_records=has_records, is_json=False):
        yield indent + line


def _fields(value: Struct, version: int) -> list[Field]:
    """Those on the wire in a version; tagged ones and Ottla's own only where they say something."""
    return [
        field
        for field in schema(type(value)).fields
        if version in field.versions
        and (
            (field.tag is None and not field.private)
            or getattr(value, field.name) != field.new_default()
        )
    ]


def _is_nested(field: Field) -> bool:
    return field.kind is records or isinstance(field.kind, type)


def _scalar(field: Field, item: Any) -> Any:
    return base64_of(item) if field.kind is uuid and item is not None else item


def _text(field: Field, item: Any) -> str:
    if item is None:
        return "null"
    if field.name == "error_code" and item:
        return f"{item} {name_of(item)}"
    if field.is_array:
        return json_text([jsonable(_scalar(field, part)) for part in item])
    item = _scalar(field, item)
    return visible(item) if isinstance(item, str) else json_text(jsonable(item))
