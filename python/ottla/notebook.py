"""What objects show in a notebook: tables of HTML.

Keys, values, headers and messages are the text of strangers: whatever is shown is made visible and
escaped, and so much of it as fits a table.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ottla.text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_ROWS", "fields_html", "rows_html", "text_html"]

MAX_ROWS = 20
"""Rows shown of a table."""

MAX_CHARACTERS = 100
"""Characters shown of a value."""

# The fields that say most of an object, by its class.
_FIELDS = {
    "Record": ("offset", "timestamp", "key", "value", "headers", "sequence", "control"),
    "ConsumerRecord": (
        *("topic", "partition", "offset", "timestamp_ms", "timestamp_type"),
        *("key", "value", "headers", "leader_epoch"),
    ),
    "RecordBatch": (
        *("position", "size", "magic", "base_offset", "last_offset", "record_count"),
        *("compression", "timestamp_type", "base_timestamp", "max_timestamp"),
        *("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"),
        *("is_transactional", "is_control", "crc"),
    ),
    "Verdict": (
        *("accepted", "error_name", "error", "error_message", "record_errors"),
        *("base_offset", "last_offset", "max_timestamp_ms", "is_rebuilt", "is_duplicate"),
    ),
}


def fields_html(thing: object) -> str:
    r"""Returns the fields of a record, a batch or a verdict as a table.

    >>> import ottla
    >>> "&lt;b&gt;\\x1b" in fields_html(ottla.Record(0, 1, b"<b>\x1b"))
    True
    """
    kind = type(thing).__name__
    rows = [(name, getattr(thing, name)) for name in _FIELDS[kind]]
    body = "".join(f"<tr><th>{name}</th>{_cell(value)}</tr>" for name, value in rows)
    return f"<table><caption>{kind}</caption><tbody>{body}</tbody></table>"


def rows_html(
    title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], count: int | None
) -> str:
    """Returns the first rows as a table that says how many there are, if that is known."""
    head = "".join(f"<th>{_escaped(name)}</th>" for name in names)
    shown = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    if count is None:
        said = f"the first {len(shown)} rows"
    else:
        said = f"{count:,} row{'' if count == 1 else 's'}"
        said += f", the first {len(shown)} shown" if len(shown) < count else ""
    return (
        f"<table><caption>{_escaped(title)}: {said}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(shown)}</tbody></table>"
    )


def text_html(text: str) -> str:
    """Returns a line of text as a paragraph.

    >>> text_html("<Table files>")
    '<p>&lt;Table files&gt;</p>'
    """
    return f"<p>{_escaped(text)}</p>"


def _cell(value: object) -> str:
    return f"<td>{_escaped(_text(value))}</td>"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        # Of a value of megabytes no more is looked at than is shown.
        more = len(value) - MAX_CHARACTERS
        shown = repr(value[:MAX_CHARACTERS])
        return f"{shown}… and {more} more bytes" if more > 0 else shown
    return shortened(value if isinstance(value, str) else repr(value), MAX_CHARACTERS)


def _escaped(text: str) -> str:
    return escape(visible(text))
