"""Text of strangers, made harmless where somebody reads it.

Names of files, topics, groups and headers, transactional ids, and what side files and records hold
may be anything: sequences that a terminal obeys, characters that reverse a line or end it. Whatever
of that is displayed passes `visible`, whatever is written as JSON passes `json_text`.
"""

from __future__ import annotations

import re
from typing import Any

# Those that the engine escapes in the headers of records, and halves of surrogate pairs.
_HIDDEN = (
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

__all__ = ["json_text", "json_visible", "shortened", "visible", "visible_all"]


def visible(text: str) -> str:
    r"""Returns text for one line of a terminal, what is not printable as ``\xNN`` of its UTF-8.

    Not printable are control characters, C1 among them, marks of direction, separators of lines and
    paragraphs, blanks other than the usual one, and what has no character.

    >>> visible("café"), visible("a\x1b[2Jb\u202e\n")
    ('café', 'a\\x1b[2Jb\\xe2\\x80\\xae\\x0a')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    try:
        # As `os.fsdecode` has a byte that is no UTF-8.
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def shortened(text: str, max_characters: int) -> str:
    """Returns text of at most so many characters as it is, and of more of them how many more.

    >>> shortened("orders", 6), shortened("orders", 2)
    ('orders', 'or… and 4 more characters')
    """
    more = len(text) - max_characters
    return text if more <= 0 else f"{text[:max_characters]}… and {more} more characters"


def visible_all(value: Any) -> Any:
    r"""Returns lists, tuples and dictionaries with all text in them made visible.

    >>> visible_all({"group": "a\r", "members": [("b\x07", 1)]})
    {'group': 'a\\x0d', 'members': [('b\\x07', 1)]}
    """
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: visible_all(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = map(visible_all, value)
        return list(items) if isinstance(value, list) else tuple(items)
    return value


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Returns a value as JSON that displays as it is.

    What is displayed as nothing or changes how the rest is, is ``\uNNNN``: C1, marks of direction,
    separators of lines and paragraphs, tags, halves of surrogate pairs.

    >>> print(json_text({"name": "café\u202e\x9b"}))
    {"name": "café\u202e\u009b"}
    """
    import json

    return json_visible(json.dumps(value, ensure_ascii=False, indent=indent))


def json_visible(text: str) -> str:
    r"""Returns JSON that somebody else wrote as `json_text` would have it.

    >>> print(json_visible('{"name": "café\u202e"}'))
    {"name": "café\u202e"}
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_HIDDEN, _json_escaped, text)


def _json_escaped(match: re.Match[str]) -> str:
    import json

    return json.dumps(match[0])[1:-1]
