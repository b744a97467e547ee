"""Where to begin and to end, as kcat's option `-o` says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import MAX_OFFSET
from ottla.cli.reading.selection import MAX_TAIL
from ottla.cli.reading.times import TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bounds_of"]

_EXPECTED = "beginning, an offset, -N for the last N, s@TIME or e@TIME"


def bounds_of(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> dict[str, int]:
    """Returns what texts such as `42`, `-10`, `s@TIME` and `e@TIME` say, by names of a `Selection`.

    Raises:
        BadParameter: one says nothing, or two say the same.
    """
    bounds: dict[str, int] = {}
    for text in texts:
        name, value = _bound(text, context, parameter)
        if name in bounds:
            raise click.BadParameter(f"{text} says again what one before says", context, parameter)
        if name:
            bounds[name] = value
    return bounds


def _bound(text: str, context: click.Context, parameter: click.Parameter) -> tuple[str, Any]:
    if text == "beginning":
        return "", None
    if text.startswith(("s@", "e@")):
        name = "from_time" if text[0] == "s" else "to_time"
        return name, TIME.convert(text[2:], parameter, context)
    try:
        number = int(text)
    except ValueError:
        number = MAX_OFFSET + 1
    if text.startswith("-") and 0 < -number <= MAX_TAIL:
        return "tail", -number
    if not 0 <= number <= MAX_OFFSET:
        raise click.BadParameter(f"{text!r} is not {_EXPECTED}", context, parameter)
    return "from_offset", number
