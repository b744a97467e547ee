"""Lines with styles: drawn on a terminal, and text alone where there is none.

Loading rich takes as long as auditing a small log, so only what is drawn loads it.
"""

from __future__ import annotations

import os
import sys
from typing import Protocol

from ottla.text import visible

Span = tuple[int, int, str]
"""Where in a line a style begins and ends, and its name in rich's words."""


class Page(Protocol):
    """Standard output, line by line. What lines quote is made visible."""

    width: int
    height: int

    def print(self, line: str = "", *spans: Span) -> None:
        """Prints a line, however long.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
        """


def whole(line: str, style: str) -> Span:
    """Returns the span of a whole line."""
    return 0, len(line), style


def open_page() -> Page:
    """Returns standard output as a page."""
    # Besides a terminal, these two have rich draw.
    is_drawn = sys.stdout.isatty() or any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))
    return _drawn() if is_drawn else _Plain()


class _Plain:
    """Lines without styles."""

    def __init__(self) -> None:
        self.width, self.height = _size()

    def print(self, line: str = "", *_: Span) -> None:
        """See `Page`."""
        sys.stdout.write(visible(line) + "\n")
        sys.stdout.flush()


def _size() -> tuple[int, int]:
    """Returns columns and lines as rich does: of the environment, of any stream, or as ever."""
    size = 80, 25
    for descriptor in range(3):
        try:
            columns, lines = os.get_terminal_size(descriptor)
        except (OSError, ValueError):
            continue
        size = columns or 80, lines or 25
        break
    given = (os.environ.get(name, "") for name in ("COLUMNS", "LINES"))
    columns, lines = (
        int(text) if text.isdigit() else known for text, known in zip(given, size, strict=True)
    )
    return columns, lines


def _drawn() -> Page:
    from rich.console import Console
    from rich.text import Text

    class Drawn(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Drawn(highlight=False, markup=False, emoji=False)

    class DrawnPage:
        width, height = console.size

        def print(self, line: str = "", *spans: Span) -> None:
            text = Text(line)
            for start, stop, style in spans:
                text.stylize(style, start, stop)
            # Styles end before what is quoted.
            text.plain = visible(line)
            console.print(text, soft_wrap=True)

    return DrawnPage()
