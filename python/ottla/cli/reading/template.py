r"""A format string as kcat has it: `%t [%p] %o: %s\n`.

| directive | |
| --- | --- |
| `%s`, `%S` | value, and its size in bytes, -1 for null |
| `%k`, `%K` | key, and its size in bytes, -1 for null |
| `%R` | the size of the value as four bytes, the most significant first |
| `%T` | timestamp in ms |
| `%h` | headers: `name=value`, separated by commas |
| `%t`, `%p`, `%o` | topic, partition, offset |
| `%%` | a percent sign |
| `\n`, `\r`, `\t`, `\e`, `\xNN`, `\\` | characters |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ottla.cli.record_text import JsonText
from ottla.logs.names import display

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.cli.reading.lines import Lines
    from ottla.cli.reading.sources import Source
    from ottla.cli.record_text import ReadRecord

    Part = bytes | Callable[[Source, ReadRecord], bytes]

__all__ = ["template_lines"]

_TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "e": b"\x1b", "\\": b"\\"}


def template_lines(text: str, *, null: bytes, is_terminal: bool) -> Lines:
    """Returns what writes records by a format string.

    Args:
        text: the format string.
        null: what stands for a null key or value.
        is_terminal: whether a terminal gets it, which must not obey what records hold.

    Raises:
        ValueError: it has a directive that there is none of, or no directive at all.
    """
    parts = list(_parts(text, _Cells(null, is_terminal)))
    if all(isinstance(part, bytes) for part in parts):
        raise ValueError(
            "it has no directive such as %s for the value or %o for the offset: every record would"
            " be the same"
        )

    def lines(source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
        for record in records:
            yield b"".join(
                part if isinstance(part, bytes) else part(source, record) for part in parts
            )

    return lines


def _parts(text: str, cells: _Cells) -> Iterator[Part]:
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() > end:
            yield text[end : token.start()].encode()
        end = token.end()
        yield _directive(token, cells) if token[1] is not None else _escaped(token)
    if end < len(text):
        yield text[end:].encode()


def _directive(token: re.Match[str], cells: _Cells) -> Part:
    if token[1] == "%":
        return b"%"
    part = cells.by_letter().get(token[1])
    if part is None:
        known = " ".join(f"%{letter}" for letter in cells.by_letter())
        raise ValueError(f"{token[0]} at character {token.start() + 1} is none of {known} and %%")
    return part


def _escaped(token: re.Match[str]) -> bytes:
    if token[2].startswith("x") and len(token[2]) > 1:
        return bytes([int(token[2][1:], 16)])
    found = _ESCAPES.get(token[2])
    if found is None:
        known = " ".join(f"\\{letter}" for letter in ("n", "r", "t", "e", "xNN", "\\"))
        raise ValueError(f"{token[0]} at character {token.start() + 1} is none of {known}")
    return found


class _Cells:
    """What directives stand for."""

    def __init__(self, null: bytes, is_terminal: bool) -> None:
        self._null = null
        self._is_terminal = is_terminal

    def by_letter(self) -> dict[str, Callable[[Source, ReadRecord], bytes]]:
        """The directives by their letters."""
        return {
            "s": lambda _, record: self._bytes(record.value),
            "S": lambda _, record: b"%d" % _size(record.value),
            "k": lambda _, record: self._bytes(record.key),
            "K": lambda _, record: b"%d" % _size(record.key),
            "R": lambda _, record: _size(record.value).to_bytes(4, "big", signed=True),
            "T": lambda _, record: b"%d" % record.timestamp,
            "h": lambda _, record: self._headers(record),
            "t": lambda source, _: self._bytes((source.topic or "").encode()),
            "p": lambda source, _: b"%d" % (-1 if source.partition is None else source.partition),
            "o": lambda _, record: b"%d" % record.offset,
        }

    def _bytes(self, value: bytes | JsonText | None) -> bytes:
        if value is None:
            return self._null
        if isinstance(value, JsonText):
            return value.encode()
        return display(value).encode() if self._is_terminal else value

    def _headers(self, record: ReadRecord) -> bytes:
        return b",".join(
            self._bytes(name.encode()) + b"=" + self._bytes(value) for name, value in record.headers
        )


def _size(value: bytes | JsonText | None) -> int:
    return -1 if value is None else len(value.encode() if isinstance(value, str) else value)
