"""A record, and a moment, as a line of text has them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.logs.names import display
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Item", "JsonText", "ReadRecord", "quoted", "record_line", "time_text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class JsonText(str):
    """What a key or a value says, as JSON on one line, in place of its bytes."""

    __slots__ = ()


class ReadRecord(Protocol):
    """What is shown of a record."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def timestamp(self) -> int:
        """Its timestamp in ms, -1 for none."""

    @property
    def key(self) -> bytes | JsonText | None:
        """Its key."""

    @property
    def value(self) -> bytes | JsonText | None:
        """Its value."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its headers."""


class Item(NamedTuple):
    """A record with a key or a value that was deserialised; see `ReadRecord`."""

    offset: int
    timestamp: int
    key: bytes | JsonText | None
    value: bytes | JsonText | None
    headers: list[tuple[str, bytes | None]]


def record_line(
    offset: int,
    timestamp: int,
    key: bytes | JsonText | None,
    value: bytes | JsonText | None,
    headers: Iterable[tuple[str, bytes | None]],
    *,
    control: str | None = None,
) -> str:
    """A record as one line of text; a control record has its type in place of key and value."""
    parts = [f"{offset:>10}", f"{time_text(timestamp):<24}"]
    if control is not None:
        parts.append(f"control {control}")
    else:
        parts += [f"key={quoted(key)}", f"value={quoted(value)}"]
    if headers:
        pairs = (f"{quoted(name)}: {quoted(content)}" for name, content in headers)
        parts.append(f"headers={{{', '.join(pairs)}}}")
    return " ".join(parts)


def quoted(value: bytes | str | None) -> str:
    """A key, a value or a name between quotation marks; JSON as it is."""
    if value is None:
        return "null"
    if isinstance(value, JsonText):
        return value
    text = visible(value) if isinstance(value, str) else display(value)
    return f'"{text}"'


def time_text(timestamp: int | None) -> str:
    """A timestamp in ISO 8601, or as a number if it is out of range."""
    if timestamp is None or timestamp == -1:
        return "-"
    try:
        return (
            f"{_EPOCH + timedelta(milliseconds=timestamp):%Y-%m-%dT%H:%M:%S.}{timestamp % 1000:03}Z"
        )
    except OverflowError:
        return f"{timestamp} ms"
