"""The entries of files beside segments, as a table of text or as JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ottla.cli.record_text import time_text
from ottla.cli.terminal import complain
from ottla.logs.side_entries import side_entries
from ottla.text import json_text, visible
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.logs.side_entries import SideEntries

__all__ = ["print_entries"]

TIMES = frozenset({"timestamp", "last_timestamp"})
IO_ERROR = 3


def print_entries(
    data: bytes, name: str, kind: str, base_offset: int | None, *, is_json: bool
) -> int:
    """Prints the entries of a file, tells what is none, and returns the exit status."""
    found = side_entries(kind, data, base_offset)
    lines = _json_lines(found) if is_json else _text_lines(found)
    sys.stdout.writelines(line + "\n" for line in lines)
    if found.fault is None:
        return 0
    complain(f"{name}: {found.fault}")
    return IO_ERROR


def _json_lines(found: SideEntries) -> Iterator[str]:
    for row in found.rows:
        yield json_text(dict(zip(found.columns, row, strict=True)))


def _text_lines(found: SideEntries) -> Iterator[str]:
    cells = [[_cell(*pair) for pair in zip(found.columns, row, strict=True)] for row in found.rows]
    widths = [max(map(len, column)) for column in zip(found.columns, *cells, strict=True)]
    for row in ([*found.columns], *cells):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if found.unused:
        yield f"and {count(found.unused, 'byte')} of zeros that no entry uses yet"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    return time_text(value) if name in TIMES else visible(str(value))
