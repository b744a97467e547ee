"""Settings from a file of properties, as `server.properties` is one."""

from __future__ import annotations

__all__ = ["parse_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    r"""Returns the properties of a text in Java's format; of a name that is twice the last one.

    Comments begin with ``#`` or ``!``, a line that ends with a backslash goes on in the next one,
    and a name ends at ``=``, ``:`` or a blank.

    Raises:
        ValueError: an escape ``\u`` without four digits, with the number of the line.

    >>> from ottla.broker.configs.properties import parse_properties
    >>> parse_properties("# defaults\nnum.partitions = 3\nlog.dirs=/a,\\\n  /b\n")
    {'num.partitions': '3', 'log.dirs': '/a,/b'}
    """
    found = {}
    for number, line in _logical_lines(text):
        name, value = _halves(line)
        found[_plain(name, number)] = _plain(value, number)
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Returns lines without comments, each with the number of its first one."""
    lines: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(_BLANKS)
        if begun is None and (not line or line[0] in "#!"):
            continue
        first, before = (number, "") if begun is None else begun
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            begun = first, before + line[:-1]
        else:
            lines.append((first, before + line))
            begun = None
    return lines if begun is None else [*lines, begun]


def _halves(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in f"=:{_BLANKS}":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANKS)
    if value[:1] in {"=", ":"}:
        value = value[1:].lstrip(_BLANKS)
    return line[:end], value


def _plain(text: str, number: int) -> str:
    """Returns a text without its escapes."""
    if "\\" not in text:
        return text
    made = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            made.append(character)
            continue
        escaped = next(characters, "")
        if escaped == "u":
            digits = "".join(next(characters, "") for _ in range(4))
            try:
                made.append(chr(int(digits, 16)))
            except ValueError:
                raise ValueError(f"line {number}: \\u{digits} is no character") from None
        else:
            made.append(_ESCAPES.get(escaped, escaped))
    return "".join(made)
