"""Records as lines: readable text, JSON, comma-separated values, or values as they are."""

from __future__ import annotations

import sys
from binascii import b2a_base64
from typing import TYPE_CHECKING, Protocol

from ottla.cli.record_text import JsonText, record_line
from ottla.text import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.cli.reading.sources import Source
    from ottla.cli.record_text import ReadRecord

__all__ = ["Lines", "csv_head", "csv_lines", "json_lines", "text_lines", "values"]


class Lines(Protocol):
    """Makes what is written of the records of a partition, ends of lines included."""

    def __call__(self, source: Source, records: Iterable[ReadRecord], /) -> Iterator[bytes]:
        """A piece a record."""


def text_lines(*, has_title: bool) -> Lines:
    """Returns what writes readable text; with topic and partition where there are several."""
    encoding = sys.stdout.encoding or "utf-8"

    def lines(source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
        title = f"{visible(source.title)} " if has_title else ""
        for r in records:
            line = record_line(r.offset, r.timestamp, r.key, r.value, r.headers)
            yield f"{title}{line}\n".encode(encoding, "backslashreplace")

    return lines


def json_lines(*, has_place: bool = True) -> Lines:
    """Returns what writes one JSON object a record; with topic and partition where asked for."""

    def lines(source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
        place = f'"topic": {json_text(source.topic)}, "partition": {json_text(source.partition)}, '
        head = place if has_place else ""
        for r in records:
            headers = ", ".join(f"[{json_text(name)}, {json_of(data)}]" for name, data in r.headers)
            yield (
                f'{{{head}"offset": {r.offset}, "timestamp": {r.timestamp},'
                f' "key": {json_of(r.key)}, "value": {json_of(r.value)},'
                f' "headers": [{headers}]}}\n'
            ).encode()

    return lines


def json_of(value: bytes | JsonText | None) -> str:
    """A key or a value in JSON: bytes that are no UTF-8 as `{"base64": …}`."""
    if isinstance(value, JsonText):
        return value
    if value is None:
        return "null"
    try:
        return json_text(value.decode())
    except UnicodeDecodeError:
        return f'{{"base64": "{b2a_base64(value, newline=False).decode()}"}}'


def values(_source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
    """Each value as it is, and the end of a line; a tombstone is an empty line."""
    return (_bytes_of(record.value) + b"\n" for record in records)


def _bytes_of(value: bytes | JsonText | None) -> bytes:
    return value.encode() if isinstance(value, JsonText) else value or b""


def csv_head(*, has_place: bool) -> bytes:
    """The names of the columns."""
    place = b"topic,partition," if has_place else b""
    return place + b"offset,timestamp,key,value,headers\n"


def csv_lines(*, is_terminal: bool, has_place: bool = True) -> Lines:
    """Returns what writes comma-separated values (RFC 4180, but lines end as those of Unix).

    Null is an empty cell, and empty text is `""`. Bytes that are no UTF-8 are what JSON lines have
    of them. A terminal gets none of what it would obey.
    """

    def lines(source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
        number = "" if source.partition is None else str(source.partition)
        topic = _cell(source.topic, is_terminal=is_terminal)
        head = f"{topic},{number}," if has_place else ""
        for r in records:
            pairs = ", ".join(f"[{json_text(name)}, {json_of(data)}]" for name, data in r.headers)
            cells = (_text_of(r.key), _text_of(r.value), f"[{pairs}]")
            row = ",".join(_cell(text, is_terminal=is_terminal) for text in cells)
            yield f"{head}{r.offset},{r.timestamp},{row}\n".encode()

    return lines


def _text_of(value: bytes | JsonText | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return json_of(value)


_IN_QUOTES = frozenset(',"\r\n')


def _cell(text: str | None, *, is_terminal: bool) -> str:
    if text is None:
        return ""
    if is_terminal:
        text = visible(text)
    if not text or not _IN_QUOTES.isdisjoint(text) or text[0].isspace() or text[-1].isspace():
        escaped = text.replace('"', '""')
        return f'"{escaped}"'
    return text
